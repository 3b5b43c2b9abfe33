"""Charts and tables as HTML that needs no script and no other file: bars are boxes, lines an SVG."""

import html
import math

COLOURS = ("#1f6fb4", "#d1590b", "#1e8a5f", "#a33f97", "#a67c00", "#b3304c")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "", "7 4")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 440, 260, 48, 40, 8  # of an SVG, in its own units

STYLE = """
:root { --back: #fff; --box: #f5f6f8; --text: #1b1f24; --soft: #59616b; --line: #d5d9de; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --back: #14171b; --box: #1d2126; --text: #e6e9ed; --soft: #a3acb6; --line: #373e46; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: anywhere; }
h1 { margin: 0 0 .5rem; font-size: 1.6rem; line-height: 1.25; }
h2 { margin: 2.2rem 0 .4rem; padding-top: .8rem; border-top: 1px solid var(--line); font-size: 1.25rem; }
.answer { margin: .4rem 0 .8rem; font-size: 1.05rem; }
figure { margin: 0 0 1rem; padding: .8rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--box); break-inside: avoid; }
figcaption { margin-bottom: .5rem; font-weight: 600; }
.bar { display: grid; grid-template-columns: minmax(7rem, 16rem) 1fr; gap: .1rem .6rem; margin: .25rem 0; font-size: .9rem; }
.bar div { display: flex; align-items: center; gap: .5rem; }
.bar i { flex: none; height: 1rem; min-width: 2px; border-radius: .15rem; }
.bar span:first-child { text-align: right; }
.bar div span { color: var(--soft); white-space: nowrap; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 0 0 .4rem; padding: 0; list-style: none; font-size: .9rem; }
.key svg { width: 1.8rem; height: .8rem; margin-right: .4rem; }
svg.plot { display: block; width: 100%; max-width: 46rem; }
svg text { fill: var(--soft); font-size: 11px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
code { font-size: .85em; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .9rem; }
@media (max-width: 34rem) { .bar { grid-template-columns: 1fr; margin: .5rem 0; } .bar span:first-child { text-align: left; }
  svg text { font-size: 15px; } }
"""


def short(value):
    """Four digits, with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def figure(caption, *content):
    return f"<figure><figcaption>{html.escape(caption)}</figcaption>{''.join(content)}</figure>\n"


def bars(caption, rows, unit=""):
    """Each row: its name, its value, and the number of its colour."""
    most = max(value for _, value, _ in rows) or 1
    lines = [
        f'<div class="bar"><span>{html.escape(name)}</span><div><i style="width: {62 * value / most:.2f}%; background: {COLOURS[colour % len(COLOURS)]}"></i>'
        f"<span>{short(value)}{unit}</span></div></div>"
        for name, value, colour in rows
    ]
    return figure(caption, *lines)


def ticks(low, high):
    """Round numbers between the two, about four."""
    least = (high - low) / 4
    size = 10 ** math.floor(math.log10(least))
    step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= least)
    return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def lines(caption, series, x_name, y_name):
    """Each of the series: its name, and its points."""
    points = [point for _, all_points in series for point in all_points]
    right, low, high = max(x for x, _ in points), min(y for _, y in points), max(y for _, y in points)
    high = high if high > low else low + 1
    at = lambda x, y: (LEFT + (WIDTH - LEFT - 8) * x / right, TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low))  # noqa: E731
    drawn = []
    for y in ticks(low, high):
        drawn.append(f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{at(0, y)[1]:.1f}" y2="{at(0, y)[1]:.1f}" stroke="var(--line)"/>'
                     f'<text x="{LEFT - 6}" y="{at(0, y)[1] + 4:.1f}" text-anchor="end">{y:.4g}</text>')  # fmt: skip
    for x in ticks(0, right):
        drawn.append(f'<text x="{at(x, low)[0]:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{short(x)}</text>')
    keys = []
    for i, (name, all_points) in enumerate(series):
        stroke = f'stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="2" stroke-dasharray="{DASHES[i % len(DASHES)]}" fill="none"'
        drawn.append(f'<polyline {stroke} points="{" ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in all_points)}"/>')
        keys.append(f'<li><svg viewBox="0 0 28 12" aria-hidden="true"><line x1="0" x2="28" y1="6" y2="6" {stroke}/></svg>{html.escape(name)}</li>')
    drawn.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(x_name)}</text>')
    label = html.escape(f"{caption}: {y_name} against {x_name}", quote=True)
    return figure(f"{caption}: {y_name}", f'<ul class="key">{"".join(keys)}</ul>',
                  f'<svg class="plot" role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(drawn)}</svg>')  # fmt: skip


def table(head, rows):
    cells = lambda kind, row: "".join(f"<{kind}>{html.escape(cell)}</{kind}>" for cell in row)  # noqa: E731
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{cells("th", head)}</tr></thead><tbody>{body}</tbody></table></div>\n'


def section(question, answer, *content):
    """A question that a student asks, and what the runs below answer."""
    return f'<section>\n<h2>{html.escape(question)}</h2>\n<p class="answer">{html.escape(" ".join(answer.split()))}</p>\n{"".join(content)}</section>\n'


def document(title, lead, sections, end):
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
<p>{html.escape(" ".join(lead.split()))}</p>
{"".join(sections)}<footer>{html.escape(" ".join(end.split()))}</footer>
</body>
</html>
"""
