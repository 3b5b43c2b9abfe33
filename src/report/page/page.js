// Draws the charts of the page from the numbers in #data. Without it the tables under the charts are there.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const canvases = [...document.querySelectorAll("canvas[data-chart]")];
  const axis = document.getElementById("axis");
  const titles = {step: "step", samples: "samples", seconds: "time of training"};
  const dashes = {train: [], validation: [7, 4], test: [2, 3]};
  const keys = {validation: "dash", test: "dot", guide: "dash"};
  let printed = false;
  let charts = [];

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const light = {"--text": "#1b1f24", "--soft": "#59616b", "--line": "#d5d9de"};
  const paint = (name) => (printed && light[name]) || color(name);
  const series_color = (index) => color(`--c${index % 8}`);
  const chosen = () => axis.querySelector("input[name=x]:checked").value;

  const duration = (seconds) => {
    if (seconds < 120) return `${+seconds.toPrecision(4)} s`;
    if (seconds < 7200) return `${+(seconds / 60).toPrecision(4)} min`;
    return `${+(seconds / 3600).toPrecision(4)} h`;
  };
  const number = (value) => Math.abs(value) >= 1e4 && Math.abs(value) < 1e15
    ? Math.round(value).toLocaleString("en-US") : String(+value.toPrecision(5));
  const show_x = (value) => chosen() === "seconds" ? duration(value) : number(value);
  // With as many digits as tell ticks apart that lie close together.
  const short_number = (value, index, ticks) => {
    const apart = ticks && ticks.length > 1 ? Math.abs(ticks[1].value - ticks[0].value) : 0;
    const digits = apart > 0 ? Math.max(4, Math.ceil(Math.log10(Math.abs(value) / apart + 1)) + 2) : 4;
    for (const [unit, size, from] of [["G", 1e9, 1e9], ["M", 1e6, 1e6], ["k", 1e3, 1e4]]) {
      if (Math.abs(value) >= from) return `${+(value / size).toPrecision(digits)}${unit}`;
    }
    return String(+value.toPrecision(digits));
  };
  const compact = (value, ...others) => chosen() === "seconds" ? duration(value) : short_number(value, ...others);

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
        borderDash: dashes[each.split] || [],
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
          y: scale({type: spec.log && document.getElementById("log").checked ? "logarithmic" : "linear",
            ...around(spec.series), ticks: {callback: short_number, maxTicksLimit: 8}}),
        },
        plugins: {tooltip: {callbacks: {
          title: (items) => items.length ? `${titles[x]} ${show_x(items[0].parsed.x)}` : "",
          label: (item) => `${item.dataset.label}: ${number(item.parsed.y)}`,
        }}},
      },
      plugins: [kept_marks(spec)],
    };
  };

  // Points, or lines through them, over numbers that are no steps.
  const point_options = (spec) => {
    const bounds = spec.unit ? {min: 0, max: 1} : {};
    return {
      type: "scatter",
      data: {datasets: spec.series.map((each, i) => ({
        label: each.label,
        data: each.x.map((x, point) => ({x, y: each.y[point] === null ? NaN : each.y[point]})),
        borderColor: each.style === "guide" ? paint("--soft") : series_color(i),
        backgroundColor: each.style === "guide" ? paint("--soft")
          : each.style === "points" ? `${series_color(i)}80` : series_color(i),
        borderDash: each.style === "guide" ? [5, 4] : [],
        borderWidth: each.style === "guide" ? 1 : each.style === "points" ? 0 : 1.75,
        clip: 6,
        showLine: each.style !== "points",
        pointRadius: each.style === "points" ? 2 : each.style === "both" ? 3 : 0,
        pointHitRadius: each.style === "guide" ? 0 : 4,
      }))},
      options: {
        interaction: {mode: "nearest", intersect: false},
        scales: {
          x: scale({type: "linear", name: spec.x_name, ...bounds, ticks: {callback: short_number}}),
          y: scale({type: "linear", name: spec.y_name, ...bounds, ticks: {callback: short_number}}),
        },
        plugins: {tooltip: {callbacks: {
          label: (item) => `${item.dataset.label}: ${number(item.parsed.x)}, ${number(item.parsed.y)}`,
        }}},
      },
    };
  };

  const bar_options = (spec) => {
    const across = spec.across;
    const names = spec.names.map((name) => name.length > 24 ? `${name.slice(0, 23)}…` : name);
    const values = scale({stacked: true, max: spec.percent ? 100 : undefined,
      ticks: {callback: (value) => spec.percent ? `${value} %` : short_number(value)}});
    const groups = scale({stacked: true, grid: {display: false}});
    return {
      type: "bar",
      data: {labels: names, datasets: spec.series.map((each, i) => ({
        label: each.label, data: each.y, backgroundColor: series_color(i), maxBarThickness: 40,
      }))},
      options: {
        indexAxis: across ? "y" : "x",
        interaction: {mode: "index", axis: across ? "y" : "x", intersect: false},
        scales: across ? {x: values, y: groups} : {x: groups, y: values},
        plugins: {tooltip: {callbacks: {label: (item) =>
          `${item.dataset.label}: ${spec.percent ? `${item.raw.toFixed(1)} %` : number(item.raw)}`}}},
      },
    };
  };

  // The legend is made of buttons, so that the keyboard reaches it.
  const draw_legend = (box, spec, chart, hidden) => {
    box.replaceChildren(...chart.data.datasets.map((dataset, i) => {
      const button = document.createElement("button");
      const key = document.createElement("span");
      key.className = `key ${keys[spec.series[i].split || spec.series[i].style] || ""}`;
      key.style.borderTopColor = spec.kind === "bars" ? dataset.backgroundColor : dataset.borderColor;
      button.type = "button";
      button.append(key, dataset.label);
      button.setAttribute("aria-pressed", String(!hidden.has(i)));
      button.addEventListener("click", () => {
        hidden.has(i) ? hidden.delete(i) : hidden.add(i);
        button.setAttribute("aria-pressed", String(!hidden.has(i)));
        chart.setDatasetVisibility(i, !hidden.has(i));
        chart.update();
      });
      return button;
    }));
  };

  const hidden = canvases.map(() => new Set());
  const draw = () => {
    charts.forEach((chart) => chart.destroy());
    charts = canvases.map((canvas, index) => {
      const spec = data.charts[Number(canvas.dataset.chart)];
      spec.log = spec.title === "Loss";
      if (spec.across) canvas.parentElement.style.height = `${6 + (spec.names.length > 6 ? 1.5 : 2.6) * spec.names.length}rem`;
      const made = {bars: bar_options, points: point_options, curve: curve_options}[spec.kind](spec);
      Object.assign(made.options, {animation: false, responsive: true, maintainAspectRatio: false});
      made.options.plugins.legend = {display: false};
      const chart = new Chart(canvas, made);
      hidden[index].forEach((i) => chart.setDatasetVisibility(i, false));
      if (hidden[index].size > 0) chart.update();
      draw_legend(canvas.closest("figure").querySelector(".legend"), spec, chart, hidden[index]);
      return chart;
    });
  };

  document.documentElement.classList.add("js");
  axis.hidden = !data.charts.some((spec) => spec.kind === "curve");
  document.querySelector("label:has(#log)").hidden = !data.charts.some((spec) => spec.title === "Loss");
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
