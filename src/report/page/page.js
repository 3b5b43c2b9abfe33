// Puts the sections of the page (sections.js) into the document, and draws its charts (charts.js) by Chart.js.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const specs = make_charts(data);
  const main = document.getElementById("main");
  const axis = document.getElementById("axis");
  const titles = {step: "step", samples: "samples", seconds: "time of training"};
  // Lines by their set or style, and their keys in the legend.
  const dashes = new Map([["validation", [7, 4]], ["test", [2, 3]], ["guide", [5, 4]]]);
  const keys = new Map([["validation", "dash"], ["test", "dot"], ["guide", "dash"]]);
  let printed = false;

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const light = {"--text": "#1b1f24", "--soft": "#59616b", "--line": "#d5d9de"};
  const paint = (name) => (printed && light[name]) || color(name);
  const series_color = (index) => color(`--c${index % 8}`);
  const chosen = () => axis.querySelector("input[name=x]:checked").value;

  const show_x = (value) => chosen() === "seconds" ? duration_text(value) : number_text(value);
  // With as many digits as tell ticks apart that lie close together.
  const tick_text = (value, index, ticks) => {
    const apart = ticks && ticks.length > 1 ? Math.abs(ticks[1].value - ticks[0].value) : 0;
    const digits = apart > 0 ? Math.max(4, Math.ceil(Math.log10(Math.abs(value) / apart + 1)) + 2) : 4;
    for (const [unit, size, from] of [["G", 1e9, 1e9], ["M", 1e6, 1e6], ["k", 1e3, 1e4]]) {
      if (Math.abs(value) >= from) return `${+(value / size).toPrecision(digits)}${unit}`;
    }
    return String(+value.toPrecision(digits));
  };
  const compact = (value, ...others) => chosen() === "seconds" ? duration_text(value) : tick_text(value, ...others);

  // A curve that never changes lies in the middle, above zero, and not on an axis of its noise.
  const around = (series) => {
    const values = series.flatMap((each) => each.y).filter((y) => y !== null);
    const [first] = values;
    return first !== 0 && values.every((y) => y === first) ? {min: Math.min(0, 2 * first), max: Math.max(0, 2 * first)} : {};
  };

  // A line where the kept weights are from.
  const kept_marks = (spec) => ({
    id: "kept",
    afterDatasetsDraw(chart) {
      const {ctx, chartArea: area, scales: {x}} = chart;
      ctx.save();
      spec.kept.forEach((mark) => {
        const at = x.getPixelForValue(mark[chosen()]);
        if (!(at >= area.left - 1 && at <= area.right + 1)) return;
        ctx.strokeStyle = data.runs.length > 1 ? series_color(mark.run) : paint("--soft");
        ctx.lineWidth = 1;
        ctx.setLineDash([4, 3]);
        ctx.beginPath();
        ctx.moveTo(at, area.top);
        ctx.lineTo(at, area.bottom);
        ctx.stroke();
        if (data.runs.length > 1) return;
        ctx.fillStyle = paint("--soft");
        ctx.font = "12px system-ui, sans-serif";
        ctx.textAlign = at > (area.left + area.right) / 2 ? "right" : "left";
        ctx.fillText("kept", at + (ctx.textAlign === "right" ? -5 : 5), area.top + 12);
      });
      ctx.restore();
    },
  });

  const scale = (more) => ({
    grid: {color: paint("--line"), borderColor: paint("--line")},
    ...more,
    ticks: {color: paint("--soft"), maxRotation: 0, autoSkipPadding: 12, ...more.ticks},
    title: {color: paint("--soft"), display: Boolean(more.name), text: more.name},
  });

  const curve_options = (spec) => {
    const x = chosen();
    const colors = data.runs.length > 1 ? (each) => each.run : (each, i) => i;
    return {
      type: "line",
      data: {datasets: spec.series.map((each, i) => ({
        label: each.label,
        data: each.y.map((y, point) => ({x: each[x][point], y: y === null ? NaN : y})),
        borderColor: series_color(colors(each, i)),
        backgroundColor: series_color(colors(each, i)),
        borderDash: dashes.get(each.split) || [],
        borderWidth: 1.75,
        pointRadius: each.y.length <= 25 ? 2.5 : 0,
        pointHitRadius: 6,
      }))},
      options: {
        parsing: false,
        normalized: true,
        interaction: {mode: "nearest", axis: "x", intersect: false},
        scales: {
          x: scale({type: "linear", name: titles[x], bounds: "data", min: 0, ticks: {callback: compact}}),
          y: scale({type: spec.measure === "loss" && document.getElementById("log").checked ? "logarithmic" : "linear",
            ...around(spec.series), ticks: {callback: tick_text, maxTicksLimit: 8}}),
        },
        plugins: {tooltip: {callbacks: {
          title: (items) => items.length ? `${titles[x]} ${show_x(items[0].parsed.x)}` : "",
          label: (item) => `${item.dataset.label}: ${number_text(item.parsed.y)}`,
        }}},
      },
      plugins: [kept_marks(spec)],
    };
  };

  // Points, or lines through them, over numbers that are no steps.
  const point_options = (spec) => {
    const bounds = spec.unit ? {min: 0, max: 1} : {};
    const color_of = (each, i) => series_color(each.color ?? i);
    const widths = {guide: 1, points: 0, edge: 0.5, band: 0.5};
    return {
      type: "scatter",
      data: {datasets: spec.series.map((each, i) => ({
        label: each.label,
        data: each.x.map((x, point) => ({x, y: each.y[point] === null ? NaN : each.y[point]})),
        borderColor: each.style === "guide" ? paint("--soft") : color_of(each, i),
        backgroundColor: each.style === "guide" ? paint("--soft")
          : each.style === "points" ? `${color_of(each, i)}80` : each.style === "band" ? `${color_of(each, i)}30` : color_of(each, i),
        fill: each.style === "band" ? "-1" : false,
        borderDash: dashes.get(each.style) || [],
        borderWidth: widths[each.style] ?? 1.75,
        clip: 6,
        showLine: each.style !== "points",
        pointRadius: each.style === "points" ? 2 : each.style === "both" ? 3 : 0,
        pointHitRadius: each.style === "guide" ? 0 : 4,
      }))},
      options: {
        interaction: {mode: "nearest", intersect: false},
        scales: {
          x: scale({type: "linear", name: spec.x_name, ...bounds, bounds: spec.times ? "data" : "ticks",
            ticks: {callback: spec.times ? (value) => x_text(spec, value) : tick_text}}),
          y: scale({type: "linear", name: spec.y_name, ...bounds, ticks: {callback: tick_text}}),
        },
        plugins: {tooltip: {callbacks: {
          label: (item) => `${item.dataset.label}: ${x_text(spec, item.parsed.x)}, ${number_text(item.parsed.y)}`,
        }}},
      },
    };
  };

  const bar_options = (spec) => {
    const across = spec.across;
    const values = scale({stacked: true, max: spec.percent ? 100 : undefined,
      ticks: {callback: (value) => spec.percent ? `${value} %` : tick_text(value)}});
    const groups = scale({stacked: true, grid: {display: false}});
    return {
      type: "bar",
      data: {labels: spec.names.map((name) => short_text(name, 24)), datasets: spec.series.map((each, i) => ({
        label: each.label, data: each.y, backgroundColor: series_color(i), maxBarThickness: 40,
      }))},
      options: {
        indexAxis: across ? "y" : "x",
        interaction: {mode: "index", axis: across ? "y" : "x", intersect: false},
        scales: across ? {x: values, y: groups} : {x: groups, y: values},
        plugins: {tooltip: {callbacks: {label: (item) =>
          `${item.dataset.label}: ${spec.percent ? percent_text(item.raw) : number_text(item.raw)}`}}},
      },
    };
  };

  // The legend is made of buttons, so that the keyboard reaches it.
  const draw_legend = (box, spec, chart, hidden) => {
    box.replaceChildren(...chart.data.datasets.map((dataset, i) => {
      const key = element("span", {class: `key ${keys.get(spec.series[i].split || spec.series[i].style) || ""}`});
      key.style.borderTopColor = spec.kind === "bars" ? dataset.backgroundColor : dataset.borderColor;
      const button = element("button", {type: "button", "aria-pressed": String(!hidden.has(i))}, key, dataset.label);
      button.addEventListener("click", () => {
        hidden.has(i) ? hidden.delete(i) : hidden.add(i);
        button.setAttribute("aria-pressed", String(!hidden.has(i)));
        chart.setDatasetVisibility(i, !hidden.has(i));
        chart.update();
      });
      return button;
    }));
  };

  // A chart with its legend and its table; `hidden`: the series that are switched off.
  const figures = specs.map((spec) => {
    const canvas = element("canvas", {role: "img", "aria-label": spec.summary});
    const plot = element("div", {class: "plot"}, canvas);
    if (spec.across) plot.style.height = `${6 + (spec.names.length > 6 ? 1.5 : 2.6) * spec.names.length}rem`;
    const legend = element("div", {class: "legend"});
    const table = element("details", {class: "table"}, element("summary", null, `Table of ${spec.title}`), numbers_box(spec.table));
    const figure = element("figure", null, element("figcaption", null, spec.title), legend, plot, table);
    return {spec, canvas, legend, figure, hidden: new Set(), chart: null};
  });
  const figures_of = (section) => {
    const shown = figures.filter((each) => each.spec.section === section);
    return shown.length > 0 ? [element("div", {class: "grid"}, ...shown.map((each) => each.figure))] : [];
  };

  const draw = () => figures.forEach((each) => {
    if (each.chart) each.chart.destroy();
    const made = {bars: bar_options, points: point_options, curve: curve_options}[each.spec.kind](each.spec);
    Object.assign(made.options, {animation: false, responsive: true, maintainAspectRatio: false});
    made.options.plugins.legend = {display: false};
    each.chart = new Chart(each.canvas, made);
    each.hidden.forEach((i) => each.chart.setDatasetVisibility(i, false));
    if (each.hidden.size > 0) each.chart.update();
    draw_legend(each.legend, each.spec, each.chart, each.hidden);
  });

  const names = data.runs.slice(0, 3).map((run) => run.short_name).join(", ") + (data.runs.length > 3 ? ", ..." : "");
  document.title = `${names}: report of Lockstep`;
  document.getElementById("title").textContent = names;
  main.replaceChildren(...make_sections(data, figures_of).map(([id, title, content]) =>
    element("section", {"aria-labelledby": id}, element("h2", {id}, title), ...content)));
  axis.hidden = !specs.some((spec) => spec.kind === "curve");
  document.getElementById("log").parentElement.hidden = !specs.some((spec) => spec.measure === "loss");
  axis.addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  const opened = [];
  addEventListener("beforeprint", () => {
    printed = true;
    draw();
    document.querySelectorAll("details:not([open])").forEach((each) => {
      each.open = true;
      opened.push(each);
    });
  });
  addEventListener("afterprint", () => {
    printed = false;
    opened.splice(0).forEach((each) => { each.open = false; });
    draw();
  });
  draw();
})();
