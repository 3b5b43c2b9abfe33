// The charts of the page, made from the numbers of the runs: each is an object of series with their labels, and of the
// table that stands under it. Nothing is drawn here. `data` is what trainer report --json writes.
"use strict";

const kTableRows = 40;

// "12,345", "0.38536"; "-" for what is no number.
const count_text = (value) => Number.isFinite(value) ? Math.round(value).toLocaleString("en-US") : "-";
const number_text = (value) => {
  if (!Number.isFinite(value)) return "-";
  return Math.abs(value) >= 1e4 && Math.abs(value) < 1e15 ? Math.round(value).toLocaleString("en-US") : String(+value.toPrecision(5));
};
const percent_text = (value) => Number.isFinite(value) ? `${value.toFixed(1)} %` : "-";
const short_text = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

const sum_of = (values) => values.reduce((sum, value) => sum + value, 0);

// Several runs have their names before the labels of series, and behind the titles of charts.
const label_of = (data, run, label) => data.runs.length > 1 ? `${run.short_name}, ${label}` : label;
const title_of = (data, run, title) => data.runs.length > 1 ? `${title}: ${run.short_name}` : title;

// Indices of at most `most` values: the first, the last, and the least and the greatest of each stretch of equally many.
const kept_points = (values, most) => {
  if (values.length <= most) return values.map((value, index) => index);
  const stretches = Math.floor((most - 2) / 2);
  const kept = new Set([0]);
  for (let stretch = 0; stretch < stretches; ++stretch) {
    const begin = Math.floor(values.length * stretch / stretches);
    const end = Math.floor(values.length * (stretch + 1) / stretches);
    let [least, greatest] = [begin, begin];
    for (let i = begin; i < end; ++i) {
      if (values[i] === null) continue;
      if (values[least] === null || values[i] < values[least]) least = i;
      if (values[greatest] === null || values[i] > values[greatest]) greatest = i;
    }
    kept.add(Math.min(least, greatest)).add(Math.max(least, greatest));
  }
  return [...kept.add(values.length - 1)];
};

// One measure, such as the loss, of all runs and sets. The table joins the series by their steps.
const kSpeedMeasures = ["lr", "samples_per_second", "gradient_norm", "weight_norm"];

const curve_table = (title, series) => {
  const rows = new Map();
  let shown = 0;
  series.forEach((each, column) => {
    const points = kept_points(each.y, kTableRows);
    shown = Math.max(shown, points.length);
    for (const point of points) {
      if (!rows.has(each.step[point])) rows.set(each.step[point], series.map(() => ""));
      rows.get(each.step[point])[column] = number_text(each.y[point]);
    }
  });
  const longest = Math.max(...series.map((each) => each.points));
  const part = `: ${count_text(shown)} of ${count_text(longest)} points, with the least and the greatest`;
  return {
    caption: `${title} by step${shown < longest ? part : ""}`,
    head: ["step", ...series.map((each) => each.label)],
    rows: [...rows].sort(([a], [b]) => a - b).map(([step, cells]) => [count_text(step), ...cells]),
  };
};

const curve_summary = (title, series) => {
  const told = series.slice(0, 6).map((each) =>
    ` ${each.label} from ${number_text(each.y[0])} to ${number_text(each.y.at(-1))}`);
  return `${title}:${told.join(";")}${series.length > told.length ? "; and so on" : ""}.`;
};

const curve_charts = (data) => {
  const charts = new Map();
  data.runs.forEach((run, index) => run.curves.forEach((curve) => {
    if (!charts.has(curve.title)) charts.set(curve.title, {measure: curve.measure, series: []});
    charts.get(curve.title).series.push({...curve, label: label_of(data, run, curve.split), run: index});
  }));
  const kept = data.runs.flatMap((run, index) => run.kept ? [{run: index, ...run.kept}] : []);
  return [...charts].map(([title, {measure, series}]) => {
    const speed = kSpeedMeasures.includes(measure);
    return {
      kind: "curve", section: speed ? "speed" : "curves", measure, title, series, kept: speed ? [] : kept,
      summary: curve_summary(title, series),
      table: curve_table(title, series),
    };
  });
};

// Points, or lines through them, over numbers that are no steps or, with `times`, over these, by their number. The table
// has the points of all series but guides.
const x_text = (chart, x) => chart.times ? chart.times[x] || "" : number_text(x);

const point_chart = (chart) => {
  const shown = chart.series.filter((each) => each.style !== "guide");
  const most = Math.max(8, Math.floor(kTableRows / shown.length));
  return {
    kind: "points", section: "predictions", ...chart,
    table: {
      caption: chart.title,
      head: ["", chart.x_name, chart.y_name],
      rows: shown.flatMap((each) => kept_points(each.y, most).map((point) =>
        [each.label, x_text(chart, each.x[point]), number_text(each.y[point])])),
    },
  };
};

// Stacked bars: one for each name, of a piece for each series.
const bar_chart = (chart) => {
  const value_text = chart.percent ? percent_text : chart.seconds ? (value) => `${number_text(value)} s` : number_text;
  return {
    kind: "bars", summary: `${chart.title}, as stacked bars; the table below has the numbers.`, ...chart,
    table: {
      caption: chart.title,
      head: [chart.of_names, ...chart.series.map((each) => each.label)],
      rows: chart.names.map((name, i) => [name, ...chart.series.map((each) => value_text(each.y[i]))]),
    },
  };
};

const time_charts = (data) => {
  const runs = data.runs.filter((run) => run.time);
  if (runs.length === 0) return [];
  const parts = [["compute", "compute"], ["communication", "communication"], ["waiting for other ranks", "waiting"], ["data", "data"]];
  if (runs.some((run) => run.time.idle > 0)) parts.push(["idle for other stages", "idle"]);
  return [bar_chart({
    section: "time", title: "Where the time of the steps went, averaged over the ranks", of_names: "run", percent: true, across: true,
    names: runs.map((run) => run.short_name),
    series: parts.map(([label, part]) => ({label, y: runs.map((run) => 100 * run.time[part])})),
  })];
};

// Of many ranks the data has those that wait least, as the others wait for them.
const rank_charts = (data) => data.runs.filter((run) => run.ranks).map((run) => {
  const {shown, count} = run.ranks;
  const title = title_of(data, run, "Where the time of each rank went, in seconds");
  const parts = [["compute", "compute"], ["exchange", "exchange"], ["waiting for other ranks", "waiting"], ["data", "data"]];
  return bar_chart({
    section: "time", of_names: "rank", seconds: true,
    title: shown.length < count ? `${title}: the ${shown.length} of ${count_text(count)} ranks that waited least` : title,
    names: shown.map((each) => `${each.rank} (${each.host})`),
    series: parts.map(([label, part]) => ({label, y: shown.map((each) => each[part])})),
  });
});

// How often each staleness was seen: all above the last bar are in it, and all workers above the last series in that.
const staleness_charts = (data) => data.runs.filter((run) => run.workers.some((worker) => worker.staleness.length > 0)).map((run) => {
  const [most_bars, most_workers] = [33, 16];
  const bins = Math.max(...run.workers.map((worker) => worker.staleness.length));
  const bars = Math.min(bins, most_bars);
  const series = run.workers.slice(0, most_workers).map((worker, i) => ({
    label: `worker ${i}${i + 1 === most_workers && run.workers.length > most_workers ? " and above" : ""}`,
    y: new Array(bars).fill(0),
  }));
  run.workers.forEach((worker, i) => worker.staleness.forEach((gradients, staleness) => {
    series[Math.min(i, most_workers - 1)].y[Math.min(staleness, bars - 1)] += gradients;
  }));
  return bar_chart({
    section: "workers", title: title_of(data, run, "Gradients by staleness"), of_names: "staleness", series,
    names: Array.from({length: bars}, (_, bar) => `${bar}${bar + 1 === bars && bars < bins ? " and more" : ""}`),
  });
});

const threshold_charts = (data) => {
  const curves = data.runs.flatMap((run) => run.predictions.curves.map((curve) => {
    const label = label_of(data, run, `class ${curve.class}`);
    return {...curve, label, measured: curve.area === null ? label : `${label}, area ${curve.area.toFixed(4)}`};
  }));
  if (curves.length === 0) return [];
  return [
    point_chart({
      title: "ROC curves", x_name: "false positive rate", y_name: "true positive rate (recall)", unit: true,
      summary: `ROC curves: ${curves.map((curve) => curve.measured).join("; ")}; the table below has the numbers.`,
      series: [
        ...curves.map((curve) => ({label: curve.measured, style: "line", x: [0, ...curve.false_positive_rate], y: [0, ...curve.recall]})),
        {label: "by chance", style: "guide", x: [0, 1], y: [0, 1]},
      ],
    }),
    point_chart({
      title: "Precision-recall curves", x_name: "recall", y_name: "precision", unit: true,
      summary: "Precision against recall, from the highest threshold to the lowest: "
        + `${curves.map((curve) => curve.label).join("; ")}; the table below has the numbers.`,
      series: curves.map((curve) => ({label: curve.label, style: "line", x: curve.recall, y: curve.precision})),
    }),
  ];
};

const reliability_charts = (data) => {
  const runs = data.runs.filter((run) => run.reliability);
  if (runs.length === 0) return [];
  return [
    point_chart({
      title: "Reliability: does what is predicted come true as often?", unit: true,
      x_name: "predicted probability", y_name: "share that came true",
      summary: "Reliability: the share that came true against the predicted probability. On the diagonal both are the same; "
        + "below it the model is too sure.",
      series: [
        ...runs.map((run) => ({
          label: label_of(data, run, run.reliability.split), style: "both", x: run.reliability.predicted, y: run.reliability.observed,
        })),
        {label: "as predicted", style: "guide", x: [0, 1], y: [0, 1]},
      ],
    }),
    // A point of the diagram that few predictions have made says little.
    ...runs.map((run) => bar_chart({
      section: "predictions", title: title_of(data, run, "Predictions by their probability"), of_names: "mean probability",
      names: run.reliability.predicted.map((value) => value === null ? "-" : value.toFixed(2)),
      series: [{label: "predictions", y: run.reliability.samples}],
    })),
  ];
};

const residual_chart = (fit, title) => bar_chart({
  section: "predictions", title, of_names: "middle of the bin",
  summary: "How often each residual occurs; the outer bins have all that lie beyond. The table below has the numbers.",
  names: fit.residuals.map((_, i) => {
    const middle = (2 * i + 1) / fit.residuals.length - 1;
    return Math.abs(middle) < 1e-9 ? "0" : String(+(fit.width * middle).toPrecision(3));
  }),
  series: [{label: "samples", y: fit.residuals}],
});

const fit_charts = (data) => data.runs.flatMap((run) => run.predictions.fits.flatMap((fit, target) => {
  if (fit.target.length === 0) return [];
  const titled = (title) => title_of(data, run, title) + (run.predictions.fits.length > 1 ? `, target ${target}` : "");
  const ends = [fit.target.reduce((a, b) => Math.min(a, b)), fit.target.reduce((a, b) => Math.max(a, b))];
  return [
    point_chart({
      title: titled("Predicted against true"), x_name: "target", y_name: "prediction",
      summary: `Predictions against targets of ${fit.samples} samples, drawn at random; on the diagonal a prediction is exact.`,
      series: [
        {label: run.predictions.split, style: "points", x: fit.target, y: fit.prediction},
        {label: "exact", style: "guide", x: ends, y: ends},
      ],
    }),
    residual_chart(fit, titled("Residuals (prediction - target)")),
  ];
}));

// The model beside forecasts that need none, by the position of the horizon, with the means of all positions.
const error_charts = (data) => ["validation", "test"].flatMap((split) => {
  const series = data.runs.flatMap((run) => run.forecasts.filter((each) => each.split === split).map((each) => ({
    label: `${label_of(data, run, each.name)}, mean ${number_text(each.mean_absolute_error)}`,
    style: "line", x: each.by_step.map((_, i) => i + 1), y: each.by_step,
  })));
  if (series.length === 0) return [];
  return [point_chart({
    section: "forecasts", title: `Mean absolute error at each step ahead, ${split} set`, x_name: "step ahead", y_name: "mean absolute error",
    summary: `Mean absolute error at each step ahead: ${series.map((each) => each.label).join("; ")}; the table below has the numbers.`, series,
  })];
});

const window_charts = (data) => data.runs.flatMap((run) => run.predictions.windows.map((shown) => {
  const {name, past, truth, forecast, low, high, times} = shown;
  const series = (label, style, color, y, begin = past.length) => ({label, style, color, x: y.map((_, i) => begin + i), y});
  return point_chart({
    section: "forecasts", title: title_of(data, run, `Forecast against truth: ${name}`), x_name: "", y_name: "", times,
    summary: `The last window of the ${run.predictions.split} set: its past, then truth and forecast from ${times[past.length]} to ${times.at(-1)}.`,
    series: [
      series("past", "line", 0, past, 0), series("truth", "line", 0, truth), series("forecast", "line", 1, forecast),
      ...low ? [series("lowest level", "edge", 1, low), series("highest level", "band", 1, high)] : [],
    ],
  });
}));

const importance_charts = (data) => data.runs.filter((run) => run.importance).map((run) => {
  const {measure, set, baseline, columns} = run.importance;
  return bar_chart({
    section: "importance", of_names: "column", across: true,
    title: title_of(data, run, `By how much the ${measure} of the ${set} set gets worse when a column is shuffled`),
    summary: `Permutation importance: the ${measure} is ${number_text(baseline)} with all columns as they are.`,
    names: columns.map((column) => column.name),
    series: [{label: "mean over the permutations", y: columns.map((column) => column.mean)}],
  });
});

const make_charts = (data) => [curve_charts, time_charts, rank_charts, staleness_charts, threshold_charts, reliability_charts,
  error_charts, window_charts, fit_charts, importance_charts].flatMap((make) => make(data));
