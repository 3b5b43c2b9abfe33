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
const plural_text = (text, noun) => `${text} ${noun}${/(^| )1$/.test(text) ? "" : "s"}`;
const percent_text = (value) => Number.isFinite(value) ? `${value.toFixed(1)} %` : "-";
const short_text = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

const sum_of = (values) => values.reduce((sum, value) => sum + value, 0);

const value_of = (run, key) => (run.config.find((line) => line.key === key) || {}).value || "";

// A value without the last words that all runs have: "dense(16)..." of "dense(16) relu dense(10)".
const short_value = (runs, run, key) => {
  const [words, all] = [value_of(run, key).split(" "), runs.map((each) => value_of(each, key).split(" "))];
  let common = 0;
  while (all.every((each) => common + 1 < each.length && each.at(-1 - common) === words.at(-1 - common))) ++common;
  return short_text(words.slice(0, words.length - common).join(" ") + (common > 0 ? "..." : "") || "not given", 28);
};

// Several runs are called by the values in which they differ: "lr 0.1, epochs 2"; by their directories where these values
// are many, or do not tell them apart. Keys that some runs lack follow from others, as an optimizer's from its name.
const name_runs = (data) => {
  const {differing} = data;
  const runs = data.runs.filter((run) => run.config.length > 0);
  const called = (keys) => runs.map((run) =>
    keys.map((key) => `${key.slice(key.lastIndexOf(".") + 1)} ${short_value(runs, run, key)}`).join(", "));
  const given = differing.filter((key) => runs.every((run) => value_of(run, key)));
  const keys = runs.length > 1 && [given, differing].find((each) => each.length > 0 && each.length <= 4 && new Set(called(each)).size === runs.length);
  data.keys = keys || differing;
  data.named = Boolean(keys);
  if (keys) called(keys).forEach((name, i) => { runs[i].short_name = name; });
};

// Several runs have their names before the labels of series, and behind the titles of charts.
const label_of = (data, run, label) => data.runs.length > 1 ? `${run.short_name}, ${label}` : label;
// Charts of a single run are drawn of few runs: the best that have something to show.
const few_runs = (data, has) => data.runs.filter(has).slice(0, data.runs.length > 3 ? 1 : 3);
const run_of = (data, index) => data.runs.length > 1 ? {run: index} : {};
const title_of = (data, run, title) => data.runs.length > 1 ? `${title}: ${run.short_name}` : title;

// Indices of at most `most` values: evenly spaced ones, the last, and the least and the greatest.
const kept_points = (values, most) => {
  const all = values.map((_, index) => index);
  if (values.length <= most) return all;
  const numbers = values.filter((value) => value !== null);
  const kept = new Set([values.indexOf(Math.min(...numbers)), values.indexOf(Math.max(...numbers)), values.length - 1]);
  return all.filter((index) => index % Math.ceil(values.length / (most - 3)) === 0 || kept.has(index));
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

const kSplits = ["train", "validation", "test"];

const curve_charts = (data) => {
  const charts = new Map();
  data.runs.forEach((run, index) => run.curves.forEach((curve) => {
    if (!charts.has(curve.title)) charts.set(curve.title, {measure: curve.measure, series: []});
    const color = Math.max(kSplits.indexOf(curve.split), 0);
    charts.get(curve.title).series.push({...curve, label: label_of(data, run, curve.split), color, ...run_of(data, index)});
  }));
  const kept = data.runs.slice(0, 1).flatMap((run) => run.kept ? [{run: 0, ...run.kept}] : []);
  // A point alone is no curve: the tables have its number.
  return [...charts].filter(([, {series}]) => series.some((each) => each.y.length > 1)).map(([title, {measure, series}]) => {
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
        [each.label, x_text(chart, each.x[point]), each.texts ? each.texts[point] : number_text(each.y[point])])),
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

const kWaiting = [["waiting for other ranks", "waiting"], ["data", "data"]];

const time_charts = (data) => {
  const runs = data.runs.filter((run) => run.time);
  if (runs.length === 0) return [];
  const parts = [["compute", "compute"], ["communication", "communication"], ...kWaiting];
  if (runs.some((run) => run.time.idle > 0)) parts.push(["idle for other stages", "idle"]);
  return [bar_chart({
    section: "time", title: "Where the time of the steps went, averaged over the ranks", of_names: "run", percent: true, across: true,
    names: runs.map((run) => run.short_name),
    series: parts.map(([label, part], i) => ({label, color: 3 + i, y: runs.map((run) => 100 * run.time[part])})),
  })];
};

// Of many ranks the data has those that wait least, as the others wait for them.
const rank_charts = (data) => few_runs(data, (run) => run.ranks).map((run) => {
  const {shown, count} = run.ranks;
  const title = title_of(data, run, "Where the time of each rank went, in seconds");
  const parts = [["compute", "compute"], ["exchange", "exchange"], ...kWaiting];
  return bar_chart({
    section: "time", of_names: "rank", seconds: true,
    title: shown.length < count ? `${title}: the ${shown.length} of ${count_text(count)} ranks that waited least` : title,
    names: shown.map((each) => `${each.rank} (${each.host})`),
    series: parts.map(([label, part], i) => ({label, color: 3 + i, y: shown.map((each) => each[part])})),
  });
});

// How often each staleness was seen: all above the last bar are in it, and all workers above the last series in that.
const staleness_charts = (data) => few_runs(data, (run) => run.workers.some((worker) => worker.staleness.length > 0)).map((run) => {
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
  const curves = data.runs.flatMap((run, index) => run.predictions.curves.map((curve) => {
    const label = label_of(data, run, `class ${curve.class}`);
    return {...curve, label, measured: curve.area === null ? label : `${label}, area ${curve.area.toFixed(4)}`, of: run_of(data, index)};
  }));
  if (curves.length === 0) return [];
  return [
    point_chart({
      title: "ROC curves", x_name: "false positive rate", y_name: "true positive rate", unit: true,
      summary: `ROC curves: ${curves.map((curve) => curve.measured).join("; ")}; the table below has the numbers.`,
      series: [
        ...curves.map((curve) => ({label: curve.measured, ...curve.of, style: "line", x: [0, ...curve.false_positive_rate], y: [0, ...curve.recall]})),
        {label: "by chance", style: "guide", x: [0, 1], y: [0, 1]},
      ],
    }),
    point_chart({
      title: "Precision-recall curves", x_name: "recall", y_name: "precision", unit: true,
      summary: "Precision against recall, from the highest threshold to the lowest: "
        + `${curves.map((curve) => curve.label).join("; ")}; the table below has the numbers.`,
      series: curves.map((curve) => ({label: curve.label, ...curve.of, style: "line", x: curve.recall, y: curve.precision})),
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
          label: label_of(data, run, run.reliability.split), ...run_of(data, data.runs.indexOf(run)), style: "both", x: run.reliability.predicted, y: run.reliability.observed,
        })),
        {label: "as predicted", style: "guide", x: [0, 1], y: [0, 1]},
      ],
    }),
    // A point of the diagram that few predictions have made says little.
    ...few_runs(data, (run) => run.reliability).map((run) => bar_chart({
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
    return Math.abs(middle) < 1e-9 ? "0" : String(+(fit.residual_width * middle).toPrecision(3));
  }),
  series: [{label: "samples", y: fit.residuals}],
});

const fit_charts = (data) => few_runs(data, (run) => run.predictions.fits.length > 0).flatMap((run) => run.predictions.fits.flatMap((fit, target) => {
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
      ...low && high ? [series("lowest level", "edge", 1, low), series("highest level", "band", 1, high)] : [],
    ],
  });
}));

const importance_charts = (data) => few_runs(data, (run) => run.importance).map((run) => {
  const {measure, set, baseline, columns} = run.importance;
  return bar_chart({
    section: "importance", of_names: "column", across: true,
    title: title_of(data, run, `By how much the ${measure} of the ${set} set gets worse when a column is shuffled`),
    summary: `Permutation importance: the ${measure} is ${number_text(baseline)} with all columns as they are.`,
    names: columns.map((each) => each.column),
    series: [{label: "mean over the permutations", y: columns.map((each) => each.importance)}],
  });
});

// The runs whose best values are of one measure, in the order of these values, and the keys that were searched: each with the
// values that it takes, in their order, and where each run stands among them.
const search_of = (data) => {
  const [{best}] = data.runs;
  const runs = data.runs.map((run, index) => ({...run, index}))
    .filter((run) => best && run.best && run.best.split === best.split && run.best.title === best.title && run.best.value !== null);
  const keys = data.keys.map((key) => {
    const texts = runs.map((run) => short_value(runs, run, key));
    const numeric = texts.every((text) => Number.isFinite(Number(text)));
    const values = [...new Set(texts)].sort(numeric ? (a, b) => a - b : (a, b) => a.localeCompare(b, "en", {numeric: true}));
    return {key, numeric, values, texts, at: texts.map((text) => values.indexOf(text))};
  }).filter((each) => each.values.length > 1);
  return {runs, keys, name: best && `${best.title}, ${best.split} set`};
};

const kMaxKeys = 10;  // of a search: runs that differ in more are no search
const kMaxKeyCharts = 6;
const is_wide = (values) => Math.min(...values) > 0 && Math.max(...values) >= 10 * Math.min(...values);

const search_charts = (data) => {
  const {runs, keys, name} = search_of(data);
  if (runs.length < 2 || keys.length === 0 || keys.length > kMaxKeys) return [];
  const of_keys = keys.slice(0, kMaxKeyCharts).map(({key, numeric, values, texts, at}) => point_chart({
    section: "search", title: `${name}, against ${key}`, x_name: key, y_name: name, times: numeric ? null : values,
    wide: numeric && is_wide([values[0], values.at(-1)]), wide_y: is_wide(runs.map((run) => run.best.value)),
    summary: `${name} of each run against its ${key}; the best is that of ${runs[0].short_name}.`,
    series: runs.map((run, i) => ({label: run.short_name, style: "points", run: run.index, y: [run.best.value],
      x: [numeric ? Number(texts[i]) : at[i]]})),
  }));
  if (keys.length < 3) return of_keys;
  const results = runs.map((run) => run.best.value).sort((a, b) => a - b);
  const axes = [...keys.map(({key, values}) => `${key.slice(key.lastIndexOf(".") + 1)}: ${values[0]} to ${values.at(-1)}`),
    `result: ${number_text(results[0])} to ${number_text(results.at(-1))}`];
  return [...of_keys, point_chart({
    section: "search", title: "All keys together", x_name: "", y_name: "value", times: axes, unit: true, parallel: true,
    summary: "A line for each run through its value of each key, from the smallest to the largest, to its result.",
    series: runs.map((run, i) => ({label: run.short_name, style: "both", run: run.index, x: axes.map((_, axis) => axis),
      y: [...keys.map(({values, at}) => at[i] / (values.length - 1)), (run.best.value - results[0]) / (results.at(-1) - results[0] || 1)],
      texts: [...keys.map(({texts}) => texts[i]), number_text(run.best.value)]})),
  })];
};

// Measures get titles beside their names, and runs their names.
const prepare = (data) => {
  for (const run of data.runs) {
    const scaled = (measure) => measure === "loss" && run.scaled_label ? " of the scaled label" : "";
    for (const curve of run.curves) curve.title = measure_title(run, curve.measure) + scaled(curve.measure);
    for (const result of run.results)
      result.values = result.values.map(([measure, value, less]) => ({measure, title: measure_title(run, measure), value, less}));
    if (run.best) run.best.title = measure_title(run, run.best.measure);
  }
  name_runs(data);
};

const make_charts = (data) => {
  prepare(data);
  return [search_charts, curve_charts, time_charts, rank_charts, staleness_charts, threshold_charts, reliability_charts,
    error_charts, window_charts, fit_charts, importance_charts].flatMap((make) => make(data));
};
