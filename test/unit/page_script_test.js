// What the script of the page makes of the numbers of runs: its charts, its tables, and names that stay texts.
"use strict";

const assert = require("assert");
const fs = require("fs");
const path = require("path");
const {draw} = require("../support/draw_page.js");

const root = path.join(__dirname, "../..");
const read = (file) => fs.readFileSync(path.join(root, "src/report/page", file), "utf8");

const draw_data = (data) => {
  const texts = {DATA: JSON.stringify(data).replaceAll("<", "\\u003c"), SCRIPT: ["charts.js", "sections.js", "page.js"].map(read).join("")};
  return draw(read("page.html").replace(/{{(\w+)}}/g, (whole, name) => texts[name] || ""));
};

const run_named = (name) => ({
  name: `runs/${name}`, short_name: name, state: "done", story: ["It ran."], look_at: [],
  steps: 40, samples: 320, epochs: 2.5, seconds: 16,
  curves: [
    {measure: "loss", title: "Loss", split: "train", points: 4, step: [10, 20, 30, 40], samples: [80, 160, 240, 320],
      seconds: [2.5, 5, 7.5, 10], y: [2, 1, 0.5, 0.75]},
    {measure: "loss", title: "Loss", split: "validation", points: 2, step: [20, 40], samples: [160, 320], seconds: [5, 10], y: [1.5, 1.25]},
  ],
  results: [{name: "validation", step: 20, values: [["Loss", 1.125]]}, {name: "last validation", step: 40, values: [["Loss", 1.25]]}],
  workers: [], forecasts: [], texts: [], predictions: {split: "", samples: 0, curves: [], fits: [], columns: [], worst: [], windows: []},
  plan: [], sentences: [], model: [], stages: [], config: [], launch: "", algorithm: "", placement: [],
});
const page_of = (...runs) => draw_data({runs, differing: []});
const chart_named = (page, title) => page.charts.find((each) => each.title.startsWith(title));
const plain = (element) => element.textContent;

// The rows of a table by its caption, each by its first cell.
const table_named = (page, caption) => {
  const table = page.main.all("table").find((each) => plain(each.all("caption")[0]).startsWith(caption));
  return Object.fromEntries(table.all("tr").map((row) => row.children.map(plain)).map(([name, ...cells]) => [name, cells]));
};

const tests = {
  curves_are_joined_by_their_steps() {
    const run = {...run_named("a"), kept: {step: 20, samples: 160, seconds: 5}};
    const page = page_of(run);
    const chart = chart_named(page, "Loss");
    assert.deepStrictEqual(chart.series.map((each) => [each.label, each.y]), [["train", [2, 1, 0.5, 0.75]], ["validation", [1.5, 1.25]]]);
    assert.deepStrictEqual(chart.kept, [{run: 0, step: 20, samples: 160, seconds: 5}]);
    assert.strictEqual(chart.summary, "Loss: train from 2 to 0.75; validation from 1.5 to 1.25.");
    assert.deepStrictEqual(table_named(page, "Loss by step"),
      {step: ["train", "validation"], 10: ["2", ""], 20: ["1", "1.5"], 30: ["0.5", ""], 40: ["0.75", "1.25"]});
    assert.deepStrictEqual(page.drawn[0].map((datasets) => datasets[0].data.map(({x}) => x)),
      [[10, 20, 30, 40], [80, 160, 240, 320], [2.5, 5, 7.5, 10], [10, 20, 30, 40]]);
    assert.deepStrictEqual(page.drawn[0][0].map((each) => each.borderDash), [[], [7, 4]]);
    assert.strictEqual(page.title, "a: report of Lockstep");
    assert.deepStrictEqual(chart_named(page_of(run, run_named("b")), "Loss").series.map((each) => each.label),
      ["a, train", "a, validation", "b, train", "b, validation"]);
  },

  samples_stay_texts_with_their_lines() {
    const run = {...run_named("a"), texts: [{step: 20, text: "<b>In the\nbeginning"}, {step: 40, text: "In"}]};
    const texts = page_of(run).main.all("pre");
    assert.deepStrictEqual(texts.map(plain), ["<b>In the\nbeginning", "In"]);
  },

  a_long_table_keeps_the_peaks() {
    const run = run_named("a");
    const steps = Array.from({length: 1000}, (_, i) => i + 1);
    const y = steps.map((step) => step === 777 ? 99 : step > 400 && step < 600 ? null : Math.sin(step));
    run.curves = [{...run.curves[0], points: 5000, step: steps, samples: steps, seconds: steps, y}];
    const page = page_of(run);
    const [, shown] = plain(page.main.all("caption")[0]).match(/^Loss by step: (\d+) of 5,000 points, with the least and the greatest$/);
    const rows = table_named(page, "Loss by step");
    assert.strictEqual(Object.keys(rows).length, 1 + Number(shown), "and a head");
    assert.ok(shown > 25 && shown <= 40, shown);
    assert.deepStrictEqual(rows["777"], ["99"]);
    assert.ok(rows["1"] && rows["1,000"], "both ends");
    assert.ok(Object.values(rows).some(([value]) => value === "-"), "the gap");
  },

  times_are_in_percent_and_of_ranks_in_seconds() {
    const run = {...run_named("a"), time: {compute: 0.5, communication: 0.25, waiting: 0.125, data: 0.0625, idle: 0.0625}};
    const shown = [{rank: 0, host: "n1", compute: 2, exchange: 3, waiting: 4, data: 1},
      {rank: 7, host: "n2", compute: 6, exchange: 7, waiting: 0.5, data: 5}];
    run.ranks = {count: 1234, shown};
    const page = page_of(run);
    assert.deepStrictEqual(table_named(page, "Where the time of the steps went").a, ["50.0 %", "25.0 %", "12.5 %", "6.3 %", "6.3 %"]);
    assert.deepStrictEqual(chart_named(page, "Where the time of the steps went").series.map((each) => each.label),
      ["compute", "communication", "waiting for other ranks", "data", "idle for other stages"]);
    const rows = table_named(page, "Where the time of each rank went, in seconds: the 2 of 1,234 ranks that waited least");
    assert.deepStrictEqual(rows["7 (n2)"], ["6 s", "7 s", "0.5 s", "5 s"]);
    run.time.idle = 0;
    assert.strictEqual(chart_named(page_of(run), "Where the time of the steps went").series.length, 4);
  },

  staleness_above_the_last_bar_is_in_it() {
    const worker = {computed: 1500, samples: 3000, dropped: 20, staleness: new Array(40).fill(1)};
    const run = {...run_named("a"), workers: [worker, {computed: 400, samples: 1000, dropped: 0, staleness: [5, 7]}]};
    const page = page_of(run);
    const {names, series} = chart_named(page, "Gradients by staleness");
    assert.deepStrictEqual([names.length, names[32]], [33, "32 and more"]);
    assert.deepStrictEqual(series[0].y.slice(31), [1, 8], "32 to 39");
    assert.deepStrictEqual(series[1].y.slice(0, 3), [5, 7, 0]);
    const rows = table_named(page, "What each worker gave");
    assert.deepStrictEqual([rows[0], rows[1]], [["1,500", "3,000", "1.50", "20"], ["400", "1,000", "0.50", "0"]]);
    run.workers = new Array(20).fill(run.workers[1]);
    const many = chart_named(page_of(run), "Gradients by staleness").series;
    assert.deepStrictEqual([many.length, many[15].label, many[15].y], [16, "worker 15 and above", [25, 35]]);
  },

  predictions_have_their_curves_and_bars() {
    const run = run_named("a");
    run.predictions = {...run.predictions, split: "test",
      curves: [{class: "1 (yes)", area: 0.8125, recall: [0.5, 1], false_positive_rate: [0.25, 1], precision: [0.75, 0.5]}],
      fits: [{samples: 3, target: [1, 4, 2], prediction: [1.5, 3, 2], width: 2.5, residuals: [1, 0, 2, 0, 4]}]};
    run.reliability = {split: "validation", predicted: [0.25], observed: [0.5], samples: [30]};
    const page = page_of(run);
    const points = (title) => chart_named(page, title).series.map((each) => [each.label, each.x, each.y]);
    assert.deepStrictEqual(points("ROC curves"), [["class 1 (yes), area 0.8125", [0, 0.25, 1], [0, 0.5, 1]], ["by chance", [0, 1], [0, 1]]]);
    assert.deepStrictEqual(points("Precision-recall curves"), [["class 1 (yes)", [0.5, 1], [0.75, 0.5]]]);
    assert.deepStrictEqual(points("Reliability")[0], ["validation", [0.25], [0.5]]);
    assert.deepStrictEqual(table_named(page, "Predictions by their probability")["0.25"], ["30"]);
    assert.deepStrictEqual(points("Predicted against true"), [["test", [1, 4, 2], [1.5, 3, 2]], ["exact", [1, 4], [1, 4]]]);
    const residuals = chart_named(page, "Residuals (prediction - target)");
    assert.deepStrictEqual(residuals.names, ["-2", "-1", "0", "1", "2"], "middles of bins from -2.5 to 2.5");
    assert.deepStrictEqual(residuals.series[0].y, [1, 0, 2, 0, 4]);
  },

  forecasts_stand_beside_those_that_need_no_model() {
    const run = run_named("a");
    run.forecasts = [{split: "test", name: "the model", mean_absolute_error: 3, by_step: [2, null]},
      {split: "test", name: "repeating the last value", mean_absolute_error: 4, by_step: [3, 5]}];
    const page = page_of(run);
    assert.strictEqual(chart_named(page, "Mean absolute error at each step ahead, validation"), undefined, "there is none");
    const chart = chart_named(page, "Mean absolute error at each step ahead, test set");
    assert.deepStrictEqual(chart.series.map((each) => [each.label, each.x, each.y]),
      [["the model, mean 3", [1, 2], [2, null]], ["repeating the last value, mean 4", [1, 2], [3, 5]]]);
    assert.ok(plain(page.main).includes("Forecasts"));
  },

  a_window_is_drawn_over_its_times() {
    const run = run_named("a");
    const shown = {name: "north", times: ["Mon", "Tue", "Wed"], past: [7], truth: [8, 9], forecast: [8.5, null]};
    run.predictions = {...run.predictions, split: "test", windows: [shown, {...shown, name: "south", low: [5, 6], high: [10, 11]}]};
    const page = page_of(run);
    const points = (title) => chart_named(page, title).series.map((each) => [each.label, each.x, each.y]);
    assert.deepStrictEqual(points("Forecast against truth: north"), [["past", [0], [7]], ["truth", [1, 2], [8, 9]], ["forecast", [1, 2], [8.5, null]]]);
    assert.deepStrictEqual(points("Forecast against truth: south").slice(3), [["lowest level", [1, 2], [5, 6]], ["highest level", [1, 2], [10, 11]]]);
    const place = page.charts.findIndex((each) => each.title.endsWith("south"));
    assert.deepStrictEqual(page.drawn[place][0].map((each) => each.fill), [false, false, false, false, "-1"]);
    const rows = page.main.all("table").find((each) => plain(each).startsWith("Forecast against truth: north")).all("tr");
    assert.deepStrictEqual(rows.map((row) => row.children.map(plain)).slice(1, 3), [["past", "Mon", "7"], ["truth", "Tue", "8"]]);
  },

  importance_is_that_of_the_columns() {
    const run = {...run_named("a"), importance: {measure: "auc", set: "test", baseline: 0.875, columns: [{name: "c0", mean: 0.5}]}};
    const chart = chart_named(page_of(run), "By how much the auc of the test set gets worse");
    assert.deepStrictEqual([chart.names, chart.series[0].y], [["c0"], [0.5]]);
    assert.ok(chart.summary.includes("the auc is 0.875 with all columns"));
  },

  runs_stand_side_by_side() {
    const a = {...run_named("a"), plan: [["global batch", "8"], ["each example seen", "2 times"]], kept: {step: 1234, samples: 9872, seconds: 2},
      workers: [{computed: 7, samples: 7, dropped: 0, staleness: [4, 2, 1]}, {computed: 1, samples: 1, dropped: 0, staleness: [1]}],
      sentences: ["Each step is one."], config: [{key: "train.lr", value: "0.1", default: ""}, {key: "data.test", value: "", default: ""}]};
    const b = {...run_named("b"), state: "failed", steps: 5000, samples: 20000, seconds: 90, config: [],
      curves: [{...a.curves[1], split: "test", y: [1, 0.25]}], results: [{name: "test", step: 5000, values: [["Loss", 0.25]]}]};
    const page = draw_data({runs: [a, b], differing: ["train.lr", "data.test"]});
    assert.deepStrictEqual(table_named(page, "The numbers of each run"), {
      "": ["a", "b"], state: ["done", "failed"], "validation: Loss": ["1.125", "-"], "last validation: Loss": ["1.25", "-"], "train: Loss": ["0.75", "-"],
      steps: ["40", "5,000"], samples: ["320", "20,000"], "samples of a step": ["8", "4"], "global batch": ["8", "-"],
      "each example seen (planned)": ["2 times", "-"], "mean staleness": ["0.5", "-"], "kept step": ["1,234", "-"],
      "time of training": ["16 s", "90 s"], "samples a second": ["20", "222"], "test: Loss": ["-", "0.25"],
    });
    assert.deepStrictEqual(table_named(page, "Keys that differ"),
      {"": ["a", "b"], "train.lr": ["0.1", "-"], "data.test": ["(not given)", "-"]});
    assert.deepStrictEqual(table_named(page, "What a step and an epoch are").a, ["Each step is one.", ""]);
    assert.ok(plain(page_of(a, a).main).includes("All keys have the same values."));
  },

  classes_have_their_scores_and_their_colours() {
    const run = run_named("a");
    run.confusion = {split: "validation", step: 1234, classes: ["0 (ant)", "1 (bee)"], counts: [[1000, 250], [3, 897]],
      scores: [{samples: 1250, precision: 0.90909, recall: 0.8, f1: 0.85106}, {samples: 900, precision: 0.78261, recall: null, f1: 0.83721}]};
    const page = page_of(run);
    const scores = table_named(page, "Each class:");
    assert.deepStrictEqual(scores["0 (ant)"], ["1,250", "90.9 %", "80.0 %", "85.1 %"]);
    assert.deepStrictEqual(scores["1 (bee)"], ["900", "78.3 %", "-", "83.7 %"]);
    const matrix = page.main.all("table").find((each) => each.attributes.class === "confusion");
    assert.strictEqual(plain(matrix.all("caption")[0]), "Samples of the validation set after step 1,234: rows are true classes, columns predicted ones");
    const cells = matrix.all("td").map((cell) => [plain(cell), cell.attributes.class, cell.style["--s"]]);
    assert.deepStrictEqual(cells, [["1000", "y", "0.89"], ["250", "n", "0.45"], ["3", undefined, undefined], ["897", "y", "1.00"]]);
  },

  pictures_have_their_pixels() {
    const run = run_named("a");
    const record = {record: 1234, file: "a.idx", loss: 2.5, target: "no", prediction: "yes", cells: []};
    run.predictions = {...run.predictions, split: "test", samples: 5000,
      worst: [{...record, picture: {width: 2, height: 1, channels: 1, pixels: "AP8="}}]};
    const page = page_of(run);
    assert.deepStrictEqual(page.pictures, [[0, 255]]);
    const coloured = {...record, picture: {width: 1, height: 2, channels: 3, pixels: "AAcA/wAA"}};
    assert.deepStrictEqual(page_of({...run, predictions: {...run.predictions, worst: [coloured]}}).pictures, [[0, 255]]);
    const words = plain(page.main);
    assert.ok(words.includes("The 1 of 5,000 records of the test set with the largest losses, of a.idx; records are counted from 0."));
    assert.ok(words.includes("true: nopredicted: yesloss 2.5, record 1,234"));
    run.predictions.worst.push({...record, file: "b.idx", cells: ["5"]});
    run.predictions.columns = ["size", "age"];
    const table = table_named(page_of(run), "The 2 of 5,000");
    assert.deepStrictEqual(table["record"], ["loss", "target", "prediction", "file", "size", "age"]);
    assert.deepStrictEqual(table["1,234"], ["2.5", "no", "yes", "b.idx", "5", ""]);
    run.predictions.worst = [{...record, position: 17}];
    assert.deepStrictEqual(table_named(page_of(run), "The 1 of 5,000")["1,234"].slice(0, 2), ["17", "2.5"]);
  },

  plans_and_configs_have_what_was_done_and_given() {
    const run = {...run_named("a"), sentences: ["Each <b>"], placement: [["0", "n1", "0-3"]], launch: "1 rank", algorithm: "ring",
      plan: [["steps", "60"], ["samples", "480"], ["epochs", "3"], ["rows", "128"], ["each example seen", "3.75 times"]],
      model: [["layer", "output"], ["0 dense(2)", "2"]],
      columns: {count: 300, rows: [["x", "feature", "number", "0", "1 to 2"]]},
      config: [{key: "train.lr", value: "0.1", default: "0.01"}, {key: "data.test", value: "", default: ""}]};
    const page = page_of(run);
    assert.deepStrictEqual(table_named(page, "Planned and done"), {"": ["planned", "done"], steps: ["60", "40"],
      samples: ["480", "320"], epochs: ["3", "2.5"], "each example seen": ["3.75 times", "2.5 times"]});
    assert.deepStrictEqual(table_named(page, "What differs from the defaults"), {key: ["value", "default"], "train.lr": ["0.1", "0.01"]});
    assert.deepStrictEqual(table_named(page, "Every key"), {key: ["value"], "train.lr *": ["0.1"], "data.test": ["(not given)"]});
    assert.deepStrictEqual(table_named(page, "The first 1 of 300 columns").x, ["feature", "number", "0", "1 to 2"]);
    assert.deepStrictEqual(table_named(page, "The layers of the model"), {layer: ["output"], "0 dense(2)": ["2"]});
    assert.deepStrictEqual(table_named(page, "The plan").rows, ["128"]);
    assert.deepStrictEqual(table_named(page, "Where each rank ran"), {rank: ["host", "cores"], 0: ["n1", "0-3"]});
    assert.ok(page.main.all("p").map(plain).includes("Each <b>"));
    assert.deepStrictEqual(page.main.all("h2").map(plain).slice(-3), ["The plan and what happened", "Config", "Environment"]);
  },

  a_run_of_which_nothing_is_known_is_shown() {
    const page = page_of({...run_named("a"), state: "damaged", curves: [], story: [], look_at: ["The run is damaged: it is a file"],
      steps: 0, samples: 0, epochs: 0, seconds: 0});
    assert.deepStrictEqual(page.main.all("li").map(plain), ["The run is damaged: it is a file"]);
    assert.deepStrictEqual(page.main.all("h2").map(plain), ["Summary"]);
  },

  names_stay_texts() {
    const hostile = "</script><img src=x onerror=alert(1)>\"'&{{DATA}}";
    const spoiled = (value) => typeof value === "string" ? hostile : Array.isArray(value) ? value.map(spoiled)
      : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, spoiled(each)])) : value;
    const run = spoiled({...run_named("a"), look_at: ["x"], columns: {count: 1, rows: [["x"]]}, config: [{key: "x", value: "y", default: ""}],
      confusion: {split: "test", step: 1, classes: ["x"], counts: [[1]], scores: [{samples: 1, precision: 1, recall: 1, f1: 1}]},
      importance: {measure: "auc", set: "test", baseline: 1, columns: [{name: "x", mean: 1}]}, launch: "x", placement: [["x", "x", "x"]],
      ranks: {count: 1, shown: [{rank: 0, host: "x", compute: 1, exchange: 1, waiting: 1, data: 1}]}});
    for (const split of ["constructor", "__proto__"]) run.curves.push({...run.curves[0], split});
    for (const runs of [[run], [run, run], [run, run, run]]) {
      const page = draw_data({runs, differing: [hostile]});
      const known = ["section", "h2", "h3", "p", "ul", "li", "details", "summary", "div", "figure", "figcaption", "canvas", "button", "span", "table",
        "caption", "thead", "tbody", "tr", "th", "td", "pre"];
      const all = (element) => [element.name, ...element.children.filter((each) => each.name).flatMap(all)];
      assert.deepStrictEqual([...new Set(all(page.main))].filter((name) => name !== "main" && !known.includes(name)), []);
      assert.ok(plain(page.main).includes(hostile));
    }
  },
};

for (const [name, test] of Object.entries(tests)) {
  try {
    test();
    console.log(`ok      ${name}`);
  } catch (error) {
    console.log(`FAILED  ${name}\n${error.stack}`);
    process.exitCode = 1;
  }
}
