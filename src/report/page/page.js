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
  // So many runs have colours, and places in a legend; the others are grey until they are touched.
  const kColoredRuns = 8;
  // A chart on paper, of which two stand in a row; its pixels are small.
  const paper = {width: 340, height: 170};
  let printed = false;

  const paint = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const series_color = (index) => paint(`--c${index % 10}`);
  const is_grey = (each) => each.run >= kColoredRuns;
  const color_of = (each, i) => is_grey(each) ? paint("--grey") : series_color(each.run ?? each.color ?? i);
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

  // Round numbers from the least to the greatest, about `count` of them. Of times they are whole parts of minutes and hours.
  const ticks_between = (min, max, count, sizes) => {
    const least = (max - min) / count;
    const size = 10 ** Math.floor(Math.log10(least));
    const step = (least > 1 && sizes.find((each) => each >= least)) || [1, 2, 5, 10].find((each) => each * size >= least * 0.999) * size;
    const first = Math.ceil(min / step - 1e-9);
    return Array.from({length: Math.floor(max / step + 1e-9) - first + 1}, (_, i) => ({value: +((first + i) * step).toPrecision(12)}));
  };
  const kTimes = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

  // An axis of powers as long as its values, so that it shows their change: with the decades, 1, 2 and 5 of each, or round numbers.
  const logarithmic = (values) => {
    const shown = values.filter((value) => value > 0);
    const [min, max] = [Math.min(...shown) / 1.05, Math.max(...shown) * 1.05];
    const decades = Math.log10(max / min);
    const kinds = decades > 4 ? [1] : [1, 2, 5];
    const all = Array.from({length: 80}, (_, i) => i - 40).flatMap((power) => kinds.map((kind) => ({value: +`${kind}e${power}`})));
    const ticks = decades < 1 ? ticks_between(min, max, 5, []) : all.filter(({value}) => value >= min && value <= max);
    return shown.length === 0 ? {type: "linear"} : {type: "logarithmic", min, max, afterBuildTicks: (axis) => { axis.ticks = ticks; }};
  };

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
        ctx.strokeStyle = paint("--soft");
        ctx.lineWidth = 1;
        ctx.setLineDash([4, 3]);
        ctx.beginPath();
        ctx.moveTo(at, area.top);
        ctx.lineTo(at, area.bottom);
        ctx.stroke();
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

  // The first of several runs is the best: its line is thick. A point alone is no line.
  const curve_options = (spec) => {
    const x = chosen();
    const points = (each) => each.y.map((y, point) => ({x: each[x][point], y: y === null ? NaN : y}));
    const long = Math.max(...spec.series.flatMap((each) => each[x].slice(-1)));
    const log = spec.measure === "loss" && document.getElementById("log").checked;
    return {
      type: "line",
      data: {datasets: spec.series.map((each, i) => ({
        label: each.label,
        data: points(each),
        borderColor: color_of(each, i),
        backgroundColor: color_of(each, i),
        borderDash: dashes.get(each.split) || [],
        borderWidth: each.run === 0 ? 2.75 : 1.75,
        pointRadius: each.y.length === 1 ? 4 : each.y.length <= 25 && spec.series.length <= 8 ? 2.5 : 0,
        pointHitRadius: 6,
        order: each.run ?? i,
      }))},
      options: {
        parsing: false,
        normalized: true,
        interaction: {mode: "nearest", axis: data.runs.length > 1 ? "xy" : "x", intersect: false},
        scales: {
          x: scale({type: "linear", name: titles[x], bounds: "data", min: 0, ticks: {callback: compact},
            afterBuildTicks: (axis) => { axis.ticks = ticks_between(0, long, 6, x === "seconds" ? kTimes : []); }}),
          y: scale({...log ? logarithmic(spec.series.flatMap((each) => each.y)) : {type: "linear", ...around(spec.series)},
            ticks: {callback: tick_text, maxTicksLimit: 8}}),
        },
        plugins: {tooltip: {callbacks: {
          title: (items) => items.length ? `${titles[x]} ${show_x(items[0].parsed.x)}` : "",
          label: (item) => `${item.dataset.label}: ${number_text(item.parsed.y)}`,
        }}},
      },
      plugins: [kept_marks(spec)],
    };
  };

  // Points, or lines through them, over numbers that are no steps; words as ticks have a place for each.
  const point_options = (spec) => {
    const bounds = spec.unit ? {min: 0, max: 1} : {};
    const words = spec.section === "search" && spec.times;
    // The range of an axis stands in a line of its own.
    const word_of = (value) => !Number.isInteger(value) ? "" : spec.parallel
      ? x_text(spec, value).split(": ").map((line) => short_text(line, 18)) : short_text(x_text(spec, value), words ? 16 : 40);
    const widths = {guide: 1, points: 0, edge: 0.5, band: 0.5};
    const colors = spec.series.map((each, i) => each.style === "guide" ? paint("--soft") : color_of(each, i));
    const shades = {points: spec.section === "search" ? "" : "80", band: "30"};
    const values = scale({type: "linear", name: spec.x_name, ...bounds, bounds: spec.times ? "data" : "ticks",
      ticks: {callback: spec.times ? word_of : tick_text}});
    const y = scale({type: "linear", name: spec.y_name, ...bounds, display: !spec.parallel, ticks: {callback: tick_text}});
    if (spec.wide_y) Object.assign(y, logarithmic(spec.series.flatMap((each) => each.y)));
    if (spec.wide) Object.assign(values, logarithmic(spec.series.flatMap((each) => each.x)));
    if (words) Object.assign(values, {min: spec.parallel ? 0 : -0.5, max: spec.times.length - (spec.parallel ? 1 : 0.5)});
    if (words) values.afterBuildTicks = (axis) => { axis.ticks = spec.times.map((_, value) => ({value})); };
    return {
      type: "scatter",
      data: {datasets: spec.series.map((each, i) => ({
        label: each.label,
        data: each.x.map((x, point) => ({x, y: each.y[point] === null ? NaN : each.y[point]})),
        borderColor: colors[i],
        backgroundColor: colors[i] + (shades[each.style] || ""),
        fill: each.style === "band" ? "-1" : false,
        borderDash: dashes.get(each.style) || [],
        borderWidth: widths[each.style] ?? (each.run === 0 ? 2.75 : 1.75),
        clip: 6,
        showLine: each.style !== "points",
        pointRadius: each.style === "points" ? (each.x.length === 1 ? 5 : 2) : each.style === "both" ? 3 : 0,
        pointHitRadius: each.style === "guide" ? 0 : 4,
        order: each.run ?? i,
      }))},
      options: {
        interaction: {mode: "nearest", intersect: false},
        scales: {x: values, y},
        plugins: {tooltip: {callbacks: {
          label: (item) => {
            const {texts} = spec.series[item.datasetIndex] || {};
            return `${item.dataset.label}: ${x_text(spec, item.parsed.x)}, ${texts ? texts[item.dataIndex] : number_text(item.parsed.y)}`;
          },
        }}},
      },
    };
  };

  const bar_options = (spec) => {
    const across = spec.across;
    const values = scale({stacked: true, max: spec.percent ? 100 : undefined,
      ticks: {callback: (value) => spec.percent ? `${value} %` : tick_text(value)}});
    const groups = scale({stacked: true, grid: {display: false}, ticks: {autoSkip: !across}});
    return {
      type: "bar",
      data: {labels: spec.names.map((name) => short_text(name, 30)), datasets: spec.series.map((each, i) => ({
        label: each.label, data: each.y, backgroundColor: color_of(each, i), maxBarThickness: 40,
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

  // The names of a series in a legend: curves of several runs have that of the run and that of the set, switched apart.
  const names_of = (spec, each) => {
    if (is_grey(each)) return [`${data.runs.length - kColoredRuns} more: touch a line`];
    return each.run !== undefined && spec.kind === "curve" ? [data.runs[each.run].short_name, each.split] : [each.label];
  };

  // The legend is made of buttons, so that the keyboard reaches it.
  const draw_legend = (box, spec, chart, hidden) => {
    if (spec.section === "search") return;  // the curves below have the same colours
    const names = spec.series.map((each) => names_of(spec, each));
    const show = () => names.forEach((all, i) => chart.setDatasetVisibility(i, !all.some((name) => hidden.has(name))));
    const buttons = new Map();
    [0, 1].forEach((part) => names.forEach((all, i) => {
      const name = all[part];
      if (!name || buttons.has(name)) return;
      const each = spec.series[i];
      const dash = all.length > 1 && part === 0 ? "" : keys.get(each.split || each.style) || "";
      const key = element("span", {class: `key ${dash}`});
      key.style.borderTopColor = part > 0 ? paint("--soft") : spec.kind === "bars" ? chart.data.datasets[i].backgroundColor
        : chart.data.datasets[i].borderColor;
      const button = element("button", {type: "button", "aria-pressed": String(!hidden.has(name))}, key, name);
      button.addEventListener("click", () => {
        hidden.has(name) ? hidden.delete(name) : hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        show();
        chart.update();
      });
      buttons.set(name, button);
    }));
    box.replaceChildren(...buttons.values());
    if (hidden.size === 0) return;
    show();
    chart.update();
  };

  // A grey line has the colour of the text, and lies above the others, while the mouse or a finger is on it.
  const touch = (spec) => (event, items, chart) => {
    const touched = items.length > 0 && is_grey(spec.series[items[0].datasetIndex]) ? items[0].datasetIndex : -1;
    if (chart.touched === touched) return;
    chart.touched = touched;
    chart.data.datasets.forEach((each, i) => {
      if (!is_grey(spec.series[i])) return;
      each.borderColor = each.backgroundColor = paint(i === touched ? "--text" : "--grey");
      each.order = i === touched ? -1 : spec.series[i].run;
    });
    chart.update("none");
  };

  // A chart with its legend and its table; `hidden`: the series that are switched off.
  const figures = specs.map((spec) => {
    const canvas = element("canvas", {role: "img", "aria-label": spec.summary});
    const plot = element("div", {class: "plot"}, canvas);
    const rows = spec.across ? 6 + (spec.names.length > 6 ? 1.5 : 2.6) * spec.names.length : 0;
    if (spec.across) plot.style.height = `${rows}rem`;
    const legend = element("div", {class: "legend"});
    const table = element("details", {class: "table"}, element("summary", null, `Table of ${spec.title}`), numbers_box(spec.table));
    const figure = element("figure", null, element("figcaption", null, spec.title), legend, plot, table);
    // The training curves of many runs hide those of the validation set.
    const crowded = data.runs.length > 3 && spec.kind === "curve" && spec.series.some((each) => each.split !== "train" && each.y.length > 1);
    return {spec, canvas, legend, figure, rows, hidden: new Set(crowded ? ["train"] : []), chart: null};
  });
  const figures_of = (section) => {
    const shown = figures.filter((each) => each.spec.section === section);
    return shown.length > 0 ? [element("div", {class: "grid"}, ...shown.map((each) => each.figure))] : [];
  };

  const draw = () => figures.forEach((each) => {
    if (each.chart) each.chart.destroy();
    Chart.defaults.font.size = printed ? 9 : 12;
    const made = {bars: bar_options, points: point_options, curve: curve_options}[each.spec.kind](each.spec);
    Object.assign(made.options, {animation: false, responsive: !printed, maintainAspectRatio: false, onHover: touch(each.spec)});
    if (printed) made.options.devicePixelRatio = 3;
    made.options.plugins.legend = {display: false};
    each.chart = new Chart(each.canvas, made);
    if (printed) each.chart.resize(paper.width, each.rows ? Math.min(14 * each.rows, 600) : paper.height);
    draw_legend(each.legend, each.spec, each.chart, each.hidden);
  });

  const names = data.runs.length > 1 ? `${data.runs.length} runs${data.runs[0].best ? `, best: ${data.runs[0].short_name}` : ""}` : data.runs[0].short_name;
  document.title = `${names}: report of Lockstep`;
  document.getElementById("title").textContent = names;
  main.replaceChildren(...make_sections(data, figures_of).map(([id, title, content]) =>
    element("section", {"aria-labelledby": id}, element("h2", {id}, title), ...content)));
  axis.hidden = !specs.some((spec) => spec.kind === "curve");
  document.getElementById("log").parentElement.hidden = !specs.some((spec) => spec.measure === "loss");
  axis.addEventListener("change", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // Paper is light. Its charts have another width, and the colours that the class gives.
  const print = (on) => () => {
    printed = on;
    document.documentElement.classList.toggle("paper", on);
    draw();
  };
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));
  draw();
})();
