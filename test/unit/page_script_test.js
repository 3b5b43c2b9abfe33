// What the script of the page makes of the numbers of runs: its charts, its tables, and names that stay texts.
"use strict";

const {deepEqual, equal, match, ok} = require("assert/strict");
const fs = require("fs");
const path = require("path");
const {draw} = require("../support/draw_page.js");

const root = path.join(__dirname, "../..");
const read = (file) => fs.readFileSync(path.join(root, "src/report/page", file), "utf8");

const draw_data = (data) => {
  const texts = {DATA: JSON.stringify(data).replaceAll("<", "\\u003c"),
                 SCRIPT: ["charts.js", "story.js", "sections.js", "page.js"].map(read).join("")};
  return draw(read("page.html").replace(/{{(\w+)}}/g, (whole, name) => texts[name] || ""));
};

const run_named = (name) => ({
  name: `runs/${name}`, short_name: name, state: "done", reason: "", scaled_label: "", positive: "", faults: [],
  warnings: [], slow: [],
  steps: 40, samples: 320, epochs: 2.5, seconds: 16,
  curves: [
    {measure: "loss", split: "train", points: 4, step: [10, 20, 30, 40], samples: [80, 160, 240, 320],
      seconds: [2.5, 5, 7.5, 10], y: [2, 1, 0.5, 0.75]},
    {measure: "loss", split: "validation", points: 2, step: [20, 40], samples: [160, 320], seconds: [5, 10],
     y: [1.5, 1.25]},
  ],
  results: [{name: "validation", step: 20, values: [["loss", 1.125]]},
            {name: "last validation", step: 40, values: [["loss", 1.25]]}],
  workers: [], forecasts: [], texts: [],
  predictions: {split: "", samples: 0, curves: [], fits: [], columns: [], worst: [], windows: []},
  plan: [], sentences: [], model: [], stages: [], config: [], launch: "", algorithm: "", placement: [],
});
const page_of = (...runs) => draw_data({runs, differing: []});
// A run for each way to choose a value of each key, the first the best.
const sweep_of = (keys) => {
  const choices = Object.entries(keys).reduce((all, [key, values]) =>
    all.flatMap((config) => values.map((value) => [...config, {key, value, default: ""}])), [[]]);
  return draw_data({differing: Object.keys(keys), runs: choices.map((config, i) => ({...run_named(`trial-${i}`), config,
    best: {split: "validation", measure: "loss", value: i + 1, smaller_is_better: true}}))});
};
const chart_named = (page, title) => page.charts.find((each) => each.title.startsWith(title));
const plain = (element) => element.textContent;
const notes_of = (run) => page_of(run).main.all("li").map(plain);

// The rows of a table by its caption, each by its first cell.
const table_named = (page, caption) => {
  const table = page.main.all("table").find((each) => plain(each.all("caption")[0]).startsWith(caption));
  return Object.fromEntries(table.all("tr").map((row) => row.children.map(plain))
    .map(([name, ...cells]) => [name, cells]));
};

// The functions that the scripts share.
const functions = new Function(`${["charts.js", "story.js"].map(read).join("")}
  return {count_text, number_text, plural_text, percent_text, short_text, short_value, kept_points, duration_text,
          value_text, small_first, rate_text};`)();

const tests = {
  numbers_become_texts() {
    const config = (value) => ({config: [{key: "k", value}]});
    for (const [name, ...cases] of [
      ["count_text", [12345.5, "12,346"], [1, "1"], [undefined, "-"]],
      ["number_text", [9999.94, "9999.9"], [10000.4, "10,000"], [-12345.6, "-12,346"], [0.1234567, "0.12346"],
        [999999999999999, "999,999,999,999,999"], [1e15, "1000000000000000"], [0, "0"], [null, "-"], [Infinity, "-"]],
      ["percent_text", [12.345, "12.3 %"], [NaN, "-"]],
      ["plural_text", ["1", "step", "1 step"], ["2 of 1", "step", "2 of 1 step"], ["11", "step", "11 steps"],
       ["0", "step", "0 steps"]],
      ["short_text", ["abcd", 4, "abcd"], ["abcde", 4, "abc…"]],
      ["duration_text", [119.5, "119.5 s"], [0.123456, "0.1235 s"], [120, "2 min"], [7199, "120 min"], [7200, "2 h"],
       [12345, "3.429 h"]],
      ["rate_text", [{samples: 99, seconds: 10}, "9.9"], [{samples: 100, seconds: 10}, "10"],
       [{samples: 12345, seconds: 1}, "12,345"]],
      ["value_text", ["accuracy", 0.5, "50.00 %"], ["precision", 0.25, "25.00 %"], ["f1", 0.25, "0.25"],
        ["precisions", 0.25, "0.25"], ["loss", 0.5, "0.5"], ["recall", null, "-"]],
      ["small_first", ["Rank correlation", "rank correlation"], ["AUC", "AUC"], ["R²", "R²"],
        ["Brier score", "Brier score"],
        ["Matthews correlation", "Matthews correlation"]],
      ["short_value", [["a b c", "d b c", "b c"].map(config), config("d b c"), "k", "d b..."],
        [["a b", "a c", ""].map(config), config(""), "k", "not given"]],
      ["kept_points", [[5, 1, 9, 3], 4, [0, 1, 2, 3]], [[3, 5, 1, 9, 4, 4, 4, 4, 4, 2], 5, [0, 2, 3, 5, 9]],
        [[3, null, 1, 9, 4, 4, 4, 4, 4, 2], 6, [0, 2, 3, 4, 8, 9]]],
    ])
      for (const each of cases)
        deepEqual(functions[name](...each.slice(0, -1)), each.at(-1), `${name}(${JSON.stringify(each)})`);
  },

  curves_are_joined_by_their_steps() {
    const run = {...run_named("a"), kept: {step: 20, samples: 160, seconds: 5}};
    const page = page_of(run);
    const chart = chart_named(page, "Loss");
    deepEqual(chart.series.map((each) => [each.label, each.y]),
      [["train", [2, 1, 0.5, 0.75]], ["validation", [1.5, 1.25]]]);
    deepEqual(chart.kept, [{run: 0, step: 20, samples: 160, seconds: 5}]);
    equal(chart.summary, "Loss: train from 2 to 0.75; validation from 1.5 to 1.25.");
    deepEqual(table_named(page, "Loss by step"),
      {step: ["train", "validation"], 10: ["2", ""], 20: ["1", "1.5"], 30: ["0.5", ""], 40: ["0.75", "1.25"]});
    deepEqual(page.drawn[0].map((datasets) => datasets[0].data.map(({x}) => x)),
      [[10, 20, 30, 40], [80, 160, 240, 320], [2.5, 5, 7.5, 10], [10, 20, 30, 40]]);
    deepEqual(page.drawn[0][0].map((each) => each.borderDash), [[], [7, 4]]);
    equal(page.title, "a: report of Lockstep");
    const later = (each, step) => ({...each, step, y: [1, 2], points: 2});
    const joined = page_of({...run,
      curves: [later(run.curves[0], [9, 1000]), later(run.curves[1], [20, 100])]}).main.all("table").at(-1);
    deepEqual(joined.all("tr").map((row) => plain(row.children[0])), ["step", "9", "20", "100", "1,000"], "as numbers");
    deepEqual(chart_named(page_of(run, run_named("b")), "Loss").series.map((each) => each.label),
      ["a, train", "a, validation", "b, train", "b, validation"]);
  },

  samples_stay_texts_with_their_lines() {
    const run = {...run_named("a"), texts: [{step: 20, text: "<b>In the\nbeginning"}, {step: 40, text: "In"}]};
    const texts = page_of(run).main.all("pre");
    deepEqual(texts.map(plain), ["<b>In the\nbeginning", "In"]);
  },

  a_long_table_keeps_the_peaks() {
    const run = run_named("a");
    const steps = Array.from({length: 1000}, (_, i) => i + 1);
    const y = steps.map((step) => step === 777 ? 99 : step > 400 && step < 600 ? null : Math.sin(step));
    run.curves = [{...run.curves[0], points: 5000, step: steps, samples: steps, seconds: steps, y}];
    const page = page_of(run);
    const [, shown] = plain(
      page.main.all("caption")[1]).match(/^Loss by step: (\d+) of 5,000 points, with the least and the greatest$/);
    const rows = table_named(page, "Loss by step");
    equal(Object.keys(rows).length, 1 + Number(shown), "and a head");
    ok(shown > 25 && shown <= 40, shown);
    deepEqual(rows["777"], ["99"]);
    ok(rows["1"] && rows["1,000"], "both ends");
    ok(Object.values(rows).some(([value]) => value === "-"), "the gap");
  },

  times_are_in_percent_and_of_ranks_in_seconds() {
    const run = {...run_named("a"),
                 time: {compute: 0.5, communication: 0.25, waiting: 0.125, data: 0.0625, idle: 0.0625}};
    const shown = [{rank: 0, host: "n1", compute: 2, exchange: 3, waiting: 4, data: 1},
      {rank: 7, host: "n2", compute: 6, exchange: 7, waiting: 0.5, data: 5}];
    run.ranks = {count: 1234, shown};
    const page = page_of(run);
    deepEqual(table_named(page, "Where the time of the steps went").a,
      ["50.0 %", "25.0 %", "12.5 %", "6.3 %", "6.3 %"]);
    deepEqual(chart_named(page, "Where the time of the steps went").series.map((each) => each.label),
      ["compute", "communication", "waiting for other ranks", "data", "idle for other stages"]);
    const rows = table_named(
      page, "Where the time of each rank went, in seconds: the 2 of 1,234 ranks that waited least");
    deepEqual(rows["7 (n2)"], ["6 s", "7 s", "0.5 s", "5 s"]);
    run.time.idle = 0;
    equal(chart_named(page_of(run), "Where the time of the steps went").series.length, 4);
  },

  staleness_above_the_last_bar_is_in_it() {
    const worker = {computed: 1500, samples: 3000, dropped: 20, staleness: new Array(40).fill(1)};
    const run = {...run_named("a"), workers: [worker, {computed: 400, samples: 1000, dropped: 0, staleness: [5, 7]}]};
    const page = page_of(run);
    const {names, series} = chart_named(page, "Gradients by staleness");
    deepEqual([names.length, names[32]], [33, "32 and more"]);
    deepEqual(series[0].y.slice(31), [1, 8], "32 to 39");
    deepEqual(series[1].y.slice(0, 3), [5, 7, 0]);
    const rows = table_named(page, "What each worker gave");
    deepEqual([rows[0], rows[1]], [["1,500", "3,000", "1.50", "20"], ["400", "1,000", "0.50", "0"]]);
    run.workers = new Array(20).fill(run.workers[1]);
    const many = chart_named(page_of(run), "Gradients by staleness").series;
    deepEqual([many.length, many[15].label, many[15].y], [16, "worker 15 and above", [25, 35]]);
  },

  predictions_have_their_curves_and_bars() {
    const run = run_named("a");
    run.predictions = {...run.predictions, split: "test",
      curves: [{class: "1 (yes)", area: 0.8125, recall: [0.5, 1], false_positive_rate: [0.25, 1],
                precision: [0.75, 0.5]}],
      fits: [{samples: 3, target: [1, 4, 2], prediction: [1.5, 3, 2], residual_width: 2.5,
              residuals: [1, 0, 2, 0, 4]}]};
    run.reliability = {split: "validation", predicted: [0.25], observed: [0.5], samples: [30]};
    const page = page_of(run);
    const points = (title) => chart_named(page, title).series.map((each) => [each.label, each.x, each.y]);
    deepEqual(points("ROC curves"),
      [["class 1 (yes), area 0.8125", [0, 0.25, 1], [0, 0.5, 1]], ["by chance", [0, 1], [0, 1]]]);
    deepEqual(points("Precision-recall curves"), [["class 1 (yes)", [0.5, 1], [0.75, 0.5]]]);
    deepEqual(points("Reliability")[0], ["validation", [0.25], [0.5]]);
    deepEqual(table_named(page, "Predictions by their probability")["0.25"], ["30"]);
    deepEqual(points("Predicted against true"), [["test", [1, 4, 2], [1.5, 3, 2]], ["exact", [1, 4], [1, 4]]]);
    const residuals = chart_named(page, "Residuals (prediction - target)");
    deepEqual(residuals.names, ["-2", "-1", "0", "1", "2"], "middles of bins from -2.5 to 2.5");
    deepEqual(residuals.series[0].y, [1, 0, 2, 0, 4]);
  },

  forecasts_stand_beside_those_that_need_no_model() {
    const run = run_named("a");
    run.forecasts = [{split: "test", name: "the model", mean_absolute_error: 3, by_step: [2, null]},
      {split: "test", name: "repeating the last value", mean_absolute_error: 4, by_step: [3, 5]}];
    const page = page_of(run);
    equal(chart_named(page, "Mean absolute error at each step ahead, validation"), undefined, "there is none");
    const chart = chart_named(page, "Mean absolute error at each step ahead, test set");
    deepEqual(chart.series.map((each) => [each.label, each.x, each.y]),
      [["the model, mean 3", [1, 2], [2, null]], ["repeating the last value, mean 4", [1, 2], [3, 5]]]);
    ok(plain(page.main).includes("Forecasts"));
  },

  a_window_is_drawn_over_its_times() {
    const run = run_named("a");
    const shown = {name: "north", times: ["Mon", "Tue", "Wed"], past: [7], truth: [8, 9], forecast: [8.5, null]};
    run.predictions = {...run.predictions, split: "test",
                       windows: [shown, {...shown, name: "south", low: [5, 6], high: [10, 11]}]};
    const page = page_of(run);
    const points = (title) => chart_named(page, title).series.map((each) => [each.label, each.x, each.y]);
    deepEqual(points("Forecast against truth: north"),
      [["past", [0], [7]], ["truth", [1, 2], [8, 9]], ["forecast", [1, 2], [8.5, null]]]);
    deepEqual(points("Forecast against truth: south").slice(3),
      [["lowest level", [1, 2], [5, 6]], ["highest level", [1, 2], [10, 11]]]);
    const place = page.charts.findIndex((each) => each.title.endsWith("south"));
    deepEqual(page.drawn[place][0].map((each) => each.fill), [false, false, false, false, "-1"]);
    const rows = page.main.all("table")
      .find((each) => plain(each).startsWith("Forecast against truth: north")).all("tr");
    deepEqual(rows.map((row) => row.children.map(plain)).slice(1, 3), [["past", "Mon", "7"], ["truth", "Tue", "8"]]);
  },

  importance_is_that_of_the_columns() {
    const run = {...run_named("a"),
      importance: {measure: "auc", set: "test", baseline: 0.875, columns: [{column: "c0", importance: 0.5}]}};
    const chart = chart_named(page_of(run), "By how much the auc of the test set gets worse");
    deepEqual([chart.names, chart.series[0].y], [["c0"], [0.5]]);
    ok(chart.summary.includes("the auc is 0.875 with all columns"));
  },

  runs_stand_in_a_table_and_the_best_of_each_measure_is_bold() {
    const a = {...run_named("a"), planned: {global_batch: 8, times_each_seen: 2},
      kept: {step: 1234, samples: 9872, seconds: 2},
      best: {split: "validation", measure: "loss", value: 1.125, smaller_is_better: true},
      workers: [{computed: 7, samples: 7, dropped: 0, staleness: [4, 2, 1]},
                {computed: 1, samples: 1, dropped: 0, staleness: [1]}],
      sentences: ["Each step is one."],
      config: [{key: "train.lr", value: "0.1", default: ""}, {key: "data.test", value: "", default: ""}]};
    const b = {...run_named("b"), state: "failed", steps: 5000, samples: 20000, seconds: 90, config: [],
      curves: [{...a.curves[1], split: "test", y: [1, 0.25]}],
      results: [{name: "test", step: 5000, values: [["loss", 0.25, true]]}]};
    const page = draw_data({runs: [a, b], differing: ["train.lr", "data.test"]});
    const rows = table_named(page, "The runs, the best first");
    const numbers = (name) => Object.fromEntries(rows.run.map((head, i) => [head, rows[name][i]]));
    deepEqual(numbers("a"), {
      "train.lr": "0.1", "data.test": "(not given)", state: "done", "validation: Loss": "1.125",
      "last validation: Loss": "1.25", "train: Loss": "0.75", steps: "40", samples: "320", "samples of a step": "8",
      "global batch": "8", "each example seen (planned)": "2 times", "mean staleness": "0.5", "kept step": "1,234",
      "time of training": "16 s", "samples a second": "20", "test: Loss": "-", directory: "runs/a",
    });
    deepEqual([numbers("b")["train.lr"], numbers("b")["test: Loss"], numbers("b")["samples a second"]],
      ["-", "0.25", "222"]);
    ok(plain(page.main).includes("The best of 2 runs by the loss of the validation set, 1.125, is a."));
    deepEqual(table_named(page, "What a step and an epoch are").a, ["Each step is one.", ""]);
    ok(plain(page_of(a, a).main).includes("All keys have the same values."));
    const result = (value) => [{name: "test", step: 40, values: [["loss", value, true], ["accuracy", value, false]]}];
    const bold = page_of({...a, results: result(0.25)}, {...b, results: result(0.5)}).main.all("strong").map(plain);
    deepEqual(bold.slice(0, 3), ["a", "0.25", "50.00 %"], "less of the loss, more of the accuracy");
  },

  trials_are_called_by_what_was_searched() {
    const page = sweep_of({"train.lr": ["0.01", "0.1", "1"], "model.layers": ["dense(8) relu", "dense(16) relu"]});
    deepEqual(Object.keys(table_named(page, "The runs")).slice(1, 3),
      ["lr 0.01, layers dense(8)...", "lr 0.01, layers dense(16)..."]);
    equal(table_named(page, "The runs").run[0], "directory", "the keys are in the names, and all numbers are the same");
    const alike = "validation: Loss 1.125; last validation: Loss 1.25; train: Loss 0.75; steps 40;";
    ok(plain(page.main).includes(`The same for all runs: ${alike}`));
    const chart = chart_named(page, "Loss, validation set, against train.lr");
    deepEqual(chart.series.map((each) => [each.x[0], each.y[0]]),
      [[0.01, 1], [0.01, 2], [0.1, 3], [0.1, 4], [1, 5], [1, 6]]);
    ok(chart.wide, "a hundredfold range");
    deepEqual(chart_named(page, "Loss, validation set, against model.layers").times, ["dense(8)...", "dense(16)..."]);
    const grid = page.main.all("table").find((each) => each.attributes.class === "confusion keys");
    deepEqual(grid.all("tr").map((row) => row.children.map(plain)),
      [["train.lr \\ model.layers", "dense(8)...", "dense(16)..."],
      ["0.01", "1", "2"], ["0.1", "3", "4"], ["1", "5", "6"]]);
    deepEqual(grid.all("td").map((cell) => cell.style["--s"]), ["1.00", "0.83", "0.67", "0.50", "0.33", "0.17"]);
    equal(chart_named(page, "All keys together"), undefined, "two keys have a grid");
    const three = sweep_of({a: ["1", "3"], b: ["1", "2"], c: ["x", "y"]});
    const lines = chart_named(three, "All keys together").series;
    deepEqual([lines[1].y, lines[1].texts], [[0, 0, 1, 1 / 7], ["1", "1", "y", "2"]]);
  },

  a_legend_has_eight_runs_and_the_others_are_grey() {
    const page = sweep_of({"train.lr": Array.from({length: 12}, (_, i) => String(i + 1))});
    const figure = page.main.all("figure").find((each) => plain(each.all("figcaption")[0]) === "Loss");
    const buttons = figure.all("button");
    deepEqual(buttons.map(plain),
      [..."12345678".split("").map((lr) => `lr ${lr}`), "4 more: touch a line", "train", "validation"]);
    equal(buttons[9].attributes["aria-pressed"], "false", "training curves would hide the others");
  },

  classes_have_their_scores_and_their_colours() {
    const run = run_named("a");
    run.confusion = {split: "validation", step: 1234, classes: ["0 (ant)", "1 (bee)"], counts: [[1000, 250], [3, 897]],
      scores: [{samples: 1250, precision: 0.90909, recall: 0.8, f1: 0.85106},
               {samples: 900, precision: 0.78261, recall: null, f1: 0.83721}]};
    const page = page_of(run);
    const scores = table_named(page, "Each class:");
    deepEqual(scores["0 (ant)"], ["1,250", "90.9 %", "80.0 %", "85.1 %"]);
    deepEqual(scores["1 (bee)"], ["900", "78.3 %", "-", "83.7 %"]);
    const matrix = page.main.all("table").find((each) => each.attributes.class === "confusion");
    equal(plain(matrix.all("caption")[0]),
      "Samples of the validation set after step 1,234: rows are true classes, columns predicted ones");
    const cells = matrix.all("td").map((cell) => [plain(cell), cell.attributes.class, cell.style["--s"]]);
    deepEqual(cells, [["1000", "y", "0.89"], ["250", "n", "0.45"], ["3", undefined, undefined], ["897", "y", "1.00"]]);
    run.confusion.threshold = {probability: 0.31, counts: [[900, 350], [1, 899]], accuracy: 0.8367, precision: 0.7198,
                               recall: 0.9989, f1: null};
    const both = page_of(run);
    deepEqual(table_named(both, "The validation set, with 1 (bee) from a probability of 0.31 on")["1 (bee)"],
      ["83.7 %", "72.0 %", "99.9 %", "-"]);
    const matrices = both.main.all("table").filter((each) => each.attributes.class === "confusion");
    deepEqual(matrices.map((each) => plain(each.all("td")[1])), ["350", "250"], "that of the threshold is the first");
    ok(plain(matrices[1].all("caption")[0]).includes(", at 0.5: rows"));
  },

  pictures_have_their_pixels() {
    const run = run_named("a");
    const record = {record: 1234, file: "a.idx", loss: 2.5, target: "no", prediction: "yes", cells: []};
    run.predictions = {...run.predictions, split: "test", samples: 5000,
      worst: [{...record, picture: {width: 2, height: 1, channels: 1, pixels: "AP8="}}]};
    const page = page_of(run);
    deepEqual(page.pictures, [[0, 255]]);
    const coloured = {...record, picture: {width: 1, height: 2, channels: 3, pixels: "AAcA/wAA"}};
    deepEqual(page_of({...run, predictions: {...run.predictions, worst: [coloured]}}).pictures, [[0, 255]]);
    const words = plain(page.main);
    ok(words.includes("The 1 of 5,000 records of the test set with the largest losses, of a.idx; "
      + "records are counted from 0."));
    ok(words.includes("true: nopredicted: yesloss 2.5, record 1,234"));
    run.predictions.worst.push({...record, file: "b.idx", cells: ["5"]});
    run.predictions.columns = ["size", "age"];
    const table = table_named(page_of(run), "The 2 of 5,000");
    deepEqual(table["record"], ["loss", "target", "prediction", "file", "size", "age"]);
    deepEqual(table["1,234"], ["2.5", "no", "yes", "b.idx", "5", ""]);
    run.predictions.worst = [{...record, position: 17}];
    deepEqual(table_named(page_of(run), "The 1 of 5,000")["1,234"].slice(0, 2), ["17", "2.5"]);
  },

  plans_and_configs_have_what_was_done_and_given() {
    const run = {...run_named("a"), sentences: ["Each <b>"], placement: [["0", "n1", "0-3"]], launch: "1 rank",
      algorithm: "ring",
      planned: {steps: 60, samples: 480, epochs: 3, rows: 128, times_each_seen: 3.75}, plan: [["rows", "128"]],
      model: [["layer", "output"], ["0 dense(2)", "2"]],
      columns: {count: 300, rows: [["x", "feature", "number", "0", "1 to 2"]]},
      config: [{key: "train.lr", value: "0.1", default: "0.01"}, {key: "data.test", value: "", default: ""}]};
    const page = page_of(run);
    deepEqual(table_named(page, "Planned and done"), {"": ["planned", "done"], steps: ["60", "40"],
      samples: ["480", "320"], epochs: ["3", "2.5"], "each example seen": ["3.75 times", "2.5 times"]});
    deepEqual(table_named(page, "What differs from the defaults"),
      {key: ["value", "default"], "train.lr": ["0.1", "0.01"]});
    deepEqual(table_named(page, "All other keys"), {key: ["value"], "data.test": ["(not given)"]});
    deepEqual(table_named(page, "The first 1 of 300 columns").x, ["feature", "number", "0", "1 to 2"]);
    deepEqual(table_named(page, "The layers of the model"), {layer: ["output"], "0 dense(2)": ["2"]});
    deepEqual(table_named(page, "The plan").rows, ["128"]);
    deepEqual(table_named(page, "Where each rank ran"), {rank: ["host", "cores"], 0: ["n1", "0-3"]});
    ok(page.main.all("p").map(plain).includes("Each <b>"));
    deepEqual(page.main.all("h2").map(plain).slice(-3), ["The plan and what happened", "Config", "Environment"]);
  },

  a_run_begins_with_four_figures_and_its_story() {
    const run = {...run_named("a"), state: "stopped early", reason: "no better loss", seconds: 90, steps: 1200,
      samples: 9600,
      kept: {step: 1000, best: true},
      best: {split: "validation", measure: "accuracy", value: 0.8125, smaller_is_better: false},
      planned: {ranks: 4, rows: 3840, parameters: 1234, steps: 1500},
      results: [{name: "validation", step: 1000, values: [["loss", 0.5, true], ["accuracy", 0.8125, false]]},
        {name: "test", step: 1000, values: [["loss", 0.4375, true], ["auc", 0.96875, false], ["accuracy", 0.75, false],
          ["precision", 0.625, false]]}],
      positive: "yes",
      config: [["model.layers", "dense(2)"], ["data.train", "a.csv"], ["train.loss", "softmax_cross_entropy"],
               ["train.optimizer", "adam"]]
        .map(([key, value]) => ({key, value, default: value}))};
    const page = page_of(run);
    deepEqual(page.main.all("dl")[0].children.map((each) => each.children.map(plain)),
      [["Accuracy, test set", "75.00 %"],
      ["Loss, test set", "0.4375"], ["Time of training", "90 s"], ["State", "stopped early"]]);
    const [verdict, story] = page.main.all("p").map(plain);
    equal(verdict, "The model is right about 75.00 % of the test set, which it has not learnt from.");
    deepEqual(story.split("\n"), [
      'A model "dense(2)" of 1,234 parameters was trained on a.csv (3,840 records), '
        + "with the loss softmax_cross_entropy and the optimizer adam.",
      "It made 1,200 of 1,500 steps, 2.5 epochs with 9,600 samples, on 4 ranks, "
        + "in 90 s of training (107 samples a second).",
      "It ended early: no better loss.",
      "Kept are the weights of step 1,000, with the best accuracy 81.25 % of the validation set."]);
    deepEqual(table_named(page, "What the kept weights came to"), {"": ["validation, step 1,000", "test, step 1,000"],
      Loss: ["0.5", "0.4375"], Accuracy: ["81.25 %", "75.00 %"], AUC: ["", "0.96875"],
      "Precision of 'yes'": ["", "62.50 %"]});
    const last = page_of({...run, kept: {step: 1200, best: false}, results: [], best: undefined,
                          scaled_label: "price: standard"});
    ok(plain(last.main).includes("Kept are the last weights, those of step 1,200."));
    ok(plain(last.main).includes("Nothing but the training was measured."));
    ok(plain(last.main).includes("of the scaled label (price: standard; other measures are in its own units) and"));
    deepEqual(last.main.all("dt").map(plain), ["Loss of the scaled label, training", "Time of training", "State"]);
  },

  titles_are_words() {
    const titles = (run) =>
      page_of({...run, curves: ["lr", "mean_squared_error", "f1", "auc", "constructor", "my <b>"].map((measure) =>
      ({...run_named("a").curves[0], measure}))}).charts.map((each) => each.title);
    deepEqual(titles({...run_named("a"), positive: "fraud"}),
      ["Learning rate", "Mean squared error", "F1 of 'fraud'", "AUC", "Constructor", "my <b>"]);
    deepEqual(page_of({...run_named("a"), scaled_label: "price: log"}).charts.map((each) => each.title),
      ["Loss of the scaled label"]);
  },

  notes_say_where_the_validation_set_was_best() {
    const run = {...run_named("a"), steps: 1200, kept: {step: 1000, best: true}, time: {}};
    const notes = (change) => notes_of({...run, ...change});
    deepEqual(notes({}), []);
    deepEqual(notes({kept: {step: 840, best: true}}), [], "just 70 %");
    deepEqual(notes({kept: {step: 839, best: true}}),
      ["The validation set was best at step 839 of 1,200, and no better afterwards. "
        + "train.early_stopping would end such a run."]);
    deepEqual(notes({kept: {step: 1199, best: true}}), []);
    const last = {kept: {step: 1200, best: true},
                  best: {split: "validation", measure: "accuracy", value: 0.5, smaller_is_better: false}};
    deepEqual(notes(last), ["The validation set was best at the last step: a longer run may be better still."]);
    deepEqual(notes({...last, best: {...last.best, value: 1}}), [], "nothing is better than right");
    deepEqual(notes({kept: {step: 1200, best: false}}), []);
    const tested = {...run.curves[1], split: "test"};
    match(notes({curves: [{...run.curves[0]}, tested]})[0], /^There was no validation set/, "a test set is none");
  },

  notes_say_that_a_model_fits_too_closely_if_only_the_training_loss_falls() {
    const notes = (train, validation, config = []) =>
      notes_of({...run_named("a"), steps: 40, kept: {step: 30, best: true}, time: {}, config,
      curves: [["train", train], ["validation", validation]].map(([split, loss]) =>
        ({measure: "loss", split, points: 2, step: [30, 40], samples: [1, 2], seconds: [1, 2],
          y: [0.5, loss]}))}).join();
    const stopping = {key: "train.early_stopping", value: "5 epochs", default: ""};
    const decay = {key: "train.weight_decay", value: "0.01", default: "0"};
    match(notes(0.25,
      0.75), /too closely after that\. train\.early_stopping would end such a run, or train\.weight_decay may help\.$/);
    match(notes(0.25, 0.75,
      [stopping]), /too closely after that\. train\.weight_decay may help\.$/, "stopping was tried");
    match(notes(0.25, 0.75, [stopping, decay]), /too closely after that\.$/, "both were tried");
    equal(notes(0.625, 0.75), "", "the training loss rises, too");
    equal(notes(0.25, 0.51), "", "hardly worse");
    equal(notes(0.25, 0.375), "", "better");
  },

  notes_say_what_took_more_than_a_quarter_of_the_time() {
    const run = {...run_named("a"), kept: {step: 35, best: true}};
    const notes = (time, config = []) => notes_of({...run, time, config});
    deepEqual(notes({waiting: 0.25, communication: 0.25, data: 0.25, idle: 0.25}), []);
    const shown = notes({waiting: 0.26, communication: 0.4, data: 0.3, idle: 0.3});
    equal(shown[2], "30 % of the time was spent in waiting for samples: "
      + "data.prefetch prepares them ahead, or train.threads shares the work out.");
    [/^26 % of the time was spent in waiting for the slowest rank/,
     /^40 % of the time went into the exchange of gradients/, /^30 % of the time was spent in waiting for samples/,
     /^30 % of the time stages waited/].forEach((words, i) => match(shown[i], words));
    const tried = ["data.prefetch", "train.threads"].map((key) => ({key, value: "4", default: "1"}));
    deepEqual(notes({data: 0.5}, tried), ["50 % of the time was spent in waiting for samples."]);
    run.seconds = 0.05;
    deepEqual(notes({data: 0.5}), [], "too short to matter");
  },

  what_has_not_begun_is_not_told() {
    const run = {...run_named("a"), steps: 0, samples: 0, epochs: 0, seconds: 0};
    const begun = {...run_named("b"), steps: 1, samples: 8, epochs: 0.5, seconds: 0.5};
    ok(plain(page_of(run).main).includes("It made 0 steps."), plain(page_of(run).main));
    ok(plain(page_of(
      begun).main).includes("It made 1 step, 0.5 epochs with 8 samples, in 0.5 s of training (16 samples a second)."));
    const text = [["data.tokens", "characters"], ["data.window", "64"]].map(([key, value]) => ({key, value, default: ""}));
    ok(plain(page_of({...begun, config: text}).main).includes("(16 samples, 1,024 tokens a second)"));
    const page = page_of(run, begun);
    const {run: head, a, b} = table_named(page, "The runs");
    deepEqual(head, ["steps", "samples", "directory", "samples of a step", "time of training", "samples a second"]);
    deepEqual([a, b], [["0", "0", "runs/a", "-", "-", "-"], ["1", "8", "runs/b", "8", "0.5 s", "16"]]);
    deepEqual(page.main.all("h2").map(plain)[0], "The runs");
    equal(plain(page_of({...run, curves: [], results: []}).main.all("p")[0]),
      "metrics.jsonl has no training line, so there are no curves of it.");
  },

  the_verdict_is_of_the_measure_that_chose_the_weights() {
    const verdict = (values, best) =>
      page_of({...run_named("a"), best: best && {split: "validation", measure: best, value: 1},
      results: [{name: "validation", step: 40, values}]}).main.all("p").map(plain)[0];
    const where = "the validation set, which it has not learnt from.";
    equal(verdict([["loss", 0.5], ["auc", 0.75], ["mean_absolute_error", 2]], "mean_absolute_error"),
      `The model is off by 2 on average on ${where}`);
    equal(verdict([["loss", 0.5], ["auc", 0.75],
                   ["r2", 2]], "loss"), `The model has the AUC 0.75 on ${where}`, "not the loss");
    equal(verdict([["loss", 0.5]], ""), `The model has the loss 0.5 on ${where}`);
  },

  counts_of_one_are_singular() {
    const planned = {steps: 1, samples: 1, epochs: 1, rows: 1, times_each_seen: 1, ranks: 1};
    const page = page_of({...run_named("a"), steps: 1, samples: 1, epochs: 1, planned});
    ok(plain(page.main).includes("It made 1 of 1 step, 1 epoch with 1 sample, on 1 rank, in 16 s"), plain(page.main));
    deepEqual(table_named(page, "Planned and done")["each example seen"], ["1 time", "1 time"]);
  },

  runs_that_differ_in_nothing_that_matters_say_in_what() {
    const of_page = (value) =>
      ({...run_named(value), config: [{key: "run.dir", value, default: ""}, {key: "report.html", value, default: ""}]});
    const page = page_of(of_page("a"), of_page("b"));
    ok(plain(page.main).includes("The runs differ in report.html alone, which changes no result."), plain(page.main));
  },

  refused_trials_are_counted_and_named() {
    const trial = (name, lr) => ({...run_named(name), config: [{key: "train.lr", value: lr, default: ""}]});
    const refused = {...run_named("trial-0003"), state: "failed", reason: "train.lr is 0", curves: [], results: [],
                     steps: 0, samples: 0};
    const page = draw_data({differing: ["train.lr"],
                            runs: [trial("trial-0001", "0.1"), trial("trial-0002", "0.2"), refused]});
    deepEqual(table_named(page, "1 run of 3 failed")["trial-0003"], ["train.lr is 0"]);
    deepEqual(Object.keys(table_named(page, "The runs")).slice(1),
      ["lr 0.1", "lr 0.2", "trial-0003"], "others are called by their keys");
  },

  runs_of_other_tokens_are_compared_by_characters() {
    const of_tokens = (tokens, loss, bits) =>
      ({...run_named(tokens), config: [{key: "data.tokens", value: tokens, default: ""}],
      best: {split: "validation", measure: "bits_per_character", value: bits, smaller_is_better: true},
      results: [{name: "validation", step: 40, values: [["loss", loss, true], ["bits_per_character", bits, true]]}]});
    const page = draw_data({differing: ["data.tokens"],
                            runs: [of_tokens("characters", 1.5, 2), of_tokens("bytes", 1, 3)]});
    ok(plain(page.main).includes("They divide the text in other ways"));
    deepEqual(page.main.all("strong").map(plain), ["tokens characters", "2"], "no loss is the best");
  },

  notes_name_what_went_wrong() {
    const run = {...run_named("a"), state: "failed", reason: "line 2: it is no JSON",
      faults: ["line 2: it is no JSON", "line 4: it has no step"],
      warnings: ["disk full"], config: [{key: "train.clip_norm", value: "1", default: "0"}],
      slow: [{rank: 1, host: "n2", slowness: "chronic", to_best: 1.5, to_own: 1.25, cost: 0.125}]};
    run.curves[0].bad_step = 20;
    deepEqual(notes_of(run), ["The run failed: line 2: it is no JSON",
      "metrics.jsonl is damaged: line 4: it has no step. The other lines are shown.",
      "The training loss is not a finite number (NaN or infinite), first in the line of step 20. "
        + "A lower learning rate (train.lr), or a warm-up (train.warmup) may help.",
      "Rank 1 on host n2 is slow (chronic): its data and compute take 1.50 times those of the fastest rank and 1.25 "
        + "times its own best, and waiting for it costs 12.5 % of the time of all ranks.",
      "The log warns: disk full"]);
  },

  // Rows are true classes. Of class 1 three of ten are right, and five are taken for class 2.
  notes_name_the_class_of_which_less_than_half_is_recognised() {
    const notes = (counts, recalls) => notes_of({...run_named("a"), kept: {step: 35, best: true}, time: {},
      confusion: {split: "test", step: 1, classes: ["0 (ant)", "1 (bee)", "2 (cow)"], counts,
        scores: recalls
          .map((recall, i) => ({samples: counts[i].reduce((a, b) => a + b), precision: 1, recall, f1: 1}))}});
    deepEqual(notes([[9, 1, 0], [2, 3, 5], [4, 0, 6]], [0.9, 0.3, 0.6]),
      ["Class 1 (bee) is recognised least: 30.0 % of its "
      + "samples in the test set. It is most often taken for class 2 (cow) (5 of 10)."]);
    deepEqual(notes([[4, 0, 0], [0, 4, 0], [0, 0, 0]], [1, 1, null]), [], "all are right");
    deepEqual(notes([[2, 2, 0], [0, 4, 0], [0, 0, 0]], [0.5, 1, null]), [], "half of them are right");
  },

  // How each kind of chart is drawn: its axes with their ticks, what a touch tells, marks, and each series' style.
  charts_are_drawn_as_ever() {
    const words = (value) => Array.isArray(value) ? value.map(words).join(" ")
      : Number.isFinite(value) ? String(+value.toPrecision(4)) : String(value);
    const named = (object, keys) => keys.filter((key) => object[key] !== undefined)
      .map((key) => `${key.replace(/^(border|point)|ground/, "")} ${words(object[key])}`).join(", ");
    const told = ({type, datasets, axes, marks, touched, options}) => [
      `${type}, ${named({...options.interaction, ...options}, ["indexAxis", "mode", "axis"])}; `
        + `touched: ${touched.join(", ")}; marks: ${marks}`,
      Object.entries(options.scales).map(([name, axis]) =>
        `${name}: ${named(axis, ["type", "min", "max", "bounds", "display", "stacked"])}: ${words(axes[name])}`)
          .join("; "),
      ...datasets.slice(-2)
        .map(({label, data, ...style}) => `${label.slice(-20)}, ${data.length}: ${named(style, Object.keys(style))}`)];
    const steps = Array.from({length: 26}, (_, i) => 3 * i + 1);
    const train = {...run_named("a").curves[0], points: 26, step: steps, samples: steps, seconds: steps,
                   y: steps.map((step) => 1e5 / step ** 3)};
    const run = {...run_named("a"), kept: {step: 20, samples: 60, seconds: 5}, time: {compute: 1},
      curves: [train, run_named("a").curves[1], {...train, measure: "lr", y: steps.map(() => -0.5)}],
      importance: {measure: "auc", set: "test", baseline: 1,
                   columns: [{column: "x", importance: 0.5}, {column: "y", importance: 0.25}]}};
    const levels = {name: "w", past: [3, 4], truth: [5], forecast: [6], low: [5.5], high: [7],
                    times: ["t0", "t1", "t2"]};
    run.predictions = {...run.predictions,
      curves: [{class: "1", area: null, recall: [0.5, 1], false_positive_rate: [0.25, 1], precision: [0.75, 0.5]}],
      fits: [{samples: 2, target: [1, 4], prediction: [2, 3], residual_width: 2, residuals: [1, 2]}],
      windows: [levels]};
    run.reliability = {split: "validation", predicted: [0.25], observed: [0.5], samples: [30]};
    run.ranks = {count: 2, shown: [{rank: 0, host: "n1", compute: 2, exchange: 3, waiting: 4, data: 1}]};
    run.workers = [{computed: 12, samples: 24, dropped: 0, staleness: new Array(33).fill(1)}];
    run.forecasts = [{split: "test", name: "model", mean_absolute_error: 0.5, by_step: [0.25, 0.75]}];
    const searched = sweep_of({"train.lr": ["0.1", "1", "3"], "model.layers": ["dense(2) relu dense(1)", "dense(10)"],
                               "train.epochs": ["1", "2"]});
    const found = {};
    for (const [page, of_loss, behind] of [[page_of(run), [2, 4], ""], [searched, [4], ", of runs"]])
      page.main.all("figcaption").map(plain).forEach((title, figure) => {
        const draws = title === "Loss" ? of_loss : [0];
        found[title + behind] = page.all_drawn[figure].filter((_, i) => draws.includes(i)).flatMap(told);
      });
    deepEqual(found, JSON.parse(fs.readFileSync(path.join(__dirname, "drawn_charts.json"), "utf8")));
  },

  a_run_of_which_nothing_is_known_is_shown() {
    const page = page_of({...run_named("a"), state: "damaged", curves: [], story: [], reason: "it is a file",
      steps: 0, samples: 0, epochs: 0, seconds: 0});
    deepEqual(page.main.all("li").map(plain), ["The run is damaged: it is a file"]);
    deepEqual(page.main.all("h2").map(plain), ["Summary"]);
  },

  names_stay_texts() {
    const hostile = "</script><img src=x onerror=alert(1)>\"'&{{DATA}}";
    const spoiled = (value) => typeof value === "string" ? hostile : Array.isArray(value) ? value.map(spoiled)
      : value && typeof value === "object"
        ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, spoiled(each)])) : value;
    const run = spoiled({...run_named("a"), warnings: ["x"], columns: {count: 1, rows: [["x"]]},
      config: [{key: "x", value: "y", default: ""}],
      confusion: {split: "test", step: 1, classes: ["x"], counts: [[1]],
                  scores: [{samples: 1, precision: 1, recall: 1, f1: 1}]},
      importance: {measure: "auc", set: "test", baseline: 1, columns: [{column: "x", importance: 1}]}, launch: "x",
      placement: [["x", "x", "x"]],
      ranks: {count: 1, shown: [{rank: 0, host: "x", compute: 1, exchange: 1, waiting: 1, data: 1}]}});
    for (const split of ["constructor", "__proto__"]) run.curves.push({...run.curves[0], split});
    for (const runs of [[run], [run, run], [run, run, run]]) {
      const page = draw_data({runs, differing: [hostile]});
      const known = "section h2 h3 p ul li dl dt dd strong details summary div figure figcaption canvas button span "
        + "table caption thead tbody tr th td pre";
      const all = (element) => [element.name, ...element.children.filter((each) => each.name).flatMap(all)];
      deepEqual([...new Set(all(page.main))].filter((name) => name !== "main" && !known.split(" ").includes(name)), []);
      ok(plain(page.main).includes(hostile));
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
