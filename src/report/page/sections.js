// The parts of the page that are texts and tables, as elements. Whatever a name holds becomes a text of the document, never
// markup: texts and attributes are set, and no HTML is read.
"use strict";

const kManyClasses = 30;

// element("a", {href: "#x"}, "text", node, ...): attributes that are null or false are left out.
const element = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
};

const folded = (summary, ...content) => element("details", null, element("summary", null, summary), ...content);

// A box that scrolls by the keyboard, too. The first cell of a row is its head; `row` makes the others, of numbers as a rule.
const table_box = (kind, {caption, head, rows}, cell = (text) => element("td", null, text)) => element("div",
  {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
  element("table", {class: head.length > 10 ? `${kind} wide` : kind},
    element("caption", null, element("span", null, caption)),
    element("thead", null, element("tr", null, ...head.map((text) => element("th", {scope: "col"}, text)))),
    element("tbody", null, ...rows.map(([name, ...cells], row) => element("tr", null,
      element("th", {scope: "row"}, name), ...cells.map((text, column) => cell(text, row, column)))))));
const numbers_box = (table) => table_box("numbers", table);
const words_box = (table) => table_box(null, table);

// With several runs each has its part, under its name.
const for_each_run = (data, part, title = "") => {
  const parts = data.runs.map((run) => [run, part(run)]).filter(([, content]) => content.length > 0);
  if (data.runs.length === 1) return parts.flatMap(([, content]) => content);
  const folds = parts.map(([run, content]) => folded(`${run.short_name} (${run.name})`, ...content));
  const one_fold = folds.length > 3 || (title && folds.length > 0);
  return one_fold ? [folded(`${title || "Each"} of ${folds.length} runs`, ...folds)] : folds;
};

// Four figures: the result, the loss, the time, and how the run is.
const figures_of_run = (run) => {
  const {set, main, loss} = result_of(run) || {};
  const trained = run.curves.find((each) => each.split === "train" && each.measure === "loss");
  const figures = [
    ...main ? [[`${main.title}, ${set} set`, value_text(main.measure, main.value)]] : [],
    ...loss && loss !== main ? [[`${loss.title}, ${set} set`, number_text(loss.value)]]
      : trained ? [[`${trained.title}, training`, number_text(trained.y.at(-1))]] : [],
    ...run.seconds > 0 ? [["Time of training", duration_text(run.seconds)]] : [],
    ["State", run.state],
  ];
  return element("dl", {class: "figures"}, ...figures.map(([name, text]) => element("div", null, element("dt", null, name),
    element("dd", {class: name === "State" ? `state${text === "done" ? " done" : ""}` : null}, text))));
};

const results_of = ({results}) => {
  const titles = [...new Set(results.flatMap(({values}) => values.map(({title}) => title)))];
  const cell = ({values}, title) => values.filter((each) => each.title === title).map(({measure, value}) => value_text(measure, value))[0] || "";
  return results.length === 0 ? [] : [numbers_box({
    caption: "What the kept weights came to, and the last ones where they are others",
    head: ["", ...results.map(({name, step}) => `${name}, step ${count_text(step)}`)],
    rows: titles.map((title) => [title, ...results.map((each) => cell(each, title))]),
  })];
};

const notes_box = (run) => {
  const notes = notes_of(run);
  return notes.length === 0 ? [] : [
    element("h3", null, "What to look at"), element("ul", null, ...notes.map((note) => element("li", null, note))),
  ];
};

// Whether the runs divide one text into different tokens: then measures per token cannot be compared.
const kBits = "bits_per_character";
const has_other_tokens = ({differing}) => differing.includes("data.tokens") && !["data.train", "data.format"].some((key) => differing.includes(key));

const times_text = (count) => plural_text(count, "time");

// The numbers of a run: rows of a name, a text and, of a result, its measure.
const numbers_of = (run) => {
  const training = run.curves.filter((each) => each.split === "train" && each.measure === "loss");
  const known = (name, text) => text ? [[name, text]] : [];
  return [
    ...run.results.flatMap(({name, values}) => values.map((each) => [`${name}: ${each.title}`, value_text(each.measure, each.value), each])),
    ...training.map((each) => [`train: ${each.title}`, number_text(each.y.at(-1))]),
    ["steps", count_text(run.steps)],
    ["samples", count_text(run.samples)],
    ...known("samples of a step", run.steps > 0 && number_text(run.samples / run.steps)),
    ...known("global batch", run.planned && count_text(run.planned.global_batch)),
    ...known("each example seen (planned)", run.planned && times_text(number_text(run.planned.times_each_seen))),
    ...known("mean staleness", run.workers.length > 0 && number_text(mean_staleness(run))),
    ...known("kept step", run.kept && count_text(run.kept.step)),
    ...known("time of training", run.seconds > 0 && duration_text(run.seconds)),
    ...known("samples a second", run.seconds > 0 && rate_text(run)),
    ...known("tokens a second", token_rate(run)),
    ["state", run.state],
    ["directory", run.name],
  ];
};

// A row for each run, the best first; of each measure the best is bold. Keys that do not name the runs stand last.
const runs_table = (data) => {
  const all = data.runs.map((run) => new Map(numbers_of(run).map(([name, ...rest]) => [name, rest])));
  const known = [...new Set(all.flatMap((numbers) => [...numbers.keys()]))];
  const names = known.filter((name) => new Set(all.map((numbers) => (numbers.get(name) || ["-"])[0])).size > 1);
  const same = known.filter((name) => !names.includes(name)).map((name) => `${name} ${all[0].get(name)[0]}`);
  const keys = data.named ? [] : data.differing;
  const shown = (run, key) => run.config.length === 0 ? "-" : value_of(run, key) || "(not given)";
  const compared = all.filter((_, i) => !has_other_tokens(data) || (data.runs[i].best || {}).measure === kBits);
  const is_best = (name, numbers) => {
    const {measure, value, less} = (numbers.get(name) || [])[1] || {};
    return Number.isFinite(value) && compared.includes(numbers) && (!has_other_tokens(data) || measure === kBits)
      && compared.map((each) => ((each.get(name) || [])[1] || {}).value)
        .every((other) => !Number.isFinite(other) || (less ? value <= other : value >= other));
  };
  return [numbers_box({
    caption: "The runs, the best first", head: ["run", ...names, ...keys],
    rows: data.runs.map((run, i) => [i === 0 && run.best ? element("strong", null, run.short_name) : run.short_name,
      ...names.map((name) => {
        const [number] = all[i].get(name) || ["-"];
        return is_best(name, all[i]) ? element("strong", null, number) : number;
      }), ...keys.map((key) => element("span", {class: "word"}, shown(run, key)))]),
  }), ...same.length > 0 ? [element("p", null, `The same for all runs: ${same.join("; ")}.`)] : []];
};

const failures_of = ({runs}) => {
  const rows = runs.filter((run) => run.state === "failed").map((run) => [run.short_name, run.reason]);
  return rows.length === 0 ? [] : [words_box({caption: `${plural_text(rows.length, "run")} of ${runs.length} failed`, head: ["run", "reason"], rows})];
};

// A sentence for runs that differ in no key that decides a result.
const idle_keys = ({runs}) => {
  const begun = runs.filter((run) => run.steps > 0);
  const keys = runs[0].config.map(({key}) => key).filter((key) => !key.endsWith(".dir") && new Set(begun.map((run) => value_of(run, key))).size > 1);
  return keys.length > 0 ? `The runs differ in ${keys.join(", ")} alone, which changes no result.` : "All keys have the same values.";
};

const summary_section = (data) => {
  const [run] = data.runs;
  if (data.runs.length > 1) {
    const tokens = has_other_tokens(data) ? " They divide the text in other ways, so that their losses per token cannot be compared: compare bits_per_character." : "";
    const best = run.best ? `The best of ${data.runs.length} runs by the ${small_first(run.best.title)} of the ${run.best.split} set, `
      + `${value_text(run.best.measure, run.best.value)}, is ${run.short_name}.${tokens}` : "None of the runs has a measure.";
    return [element("p", {class: "verdict"}, best), ...failures_of(data), ...runs_table(data), ...meanings(data),
      ...data.differing.length === 0 ? [element("p", null, idle_keys(data))] : [], ...for_each_run(data, notes_box, "What to look at: in each")];
  }
  const told = run.curves.length > 0 ? story_of(run) : story_of(run).slice(0, 1);
  return [figures_of_run(run), element("p", {class: "verdict"}, verdict_of(run)), element("p", null, told.join("\n")),
    ...notes_box(run), ...results_of(run)];
};

// Two keys that were searched make a grid: a cell is the darker, the better the best of its runs is.
const search_grid = (data) => {
  const {runs, keys, name} = search_of(data);
  if (keys.length !== 2) return [];
  const [down, across] = keys;
  const cells = down.values.map((_, y) => across.values.map((__, x) =>
    runs.find((___, i) => down.at[i] === y && across.at[i] === x)));
  return [table_box("confusion keys", {
    caption: `${name}: rows are ${down.key}, columns ${across.key}`,
    head: [`${down.key} \\ ${across.key}`, ...across.values],
    rows: cells.map((row, y) => [down.values[y], ...row]),
  }, (run) => {
    if (!run) return element("td", null, "-");
    const text = value_text(run.best.measure, run.best.value);
    const cell = element("td", {class: "y"}, run === runs[0] ? element("strong", null, text) : text);
    cell.style.setProperty("--s", (1 - runs.indexOf(run) / runs.length).toFixed(2));
    return cell;
  })];
};

const mean_staleness = (run) => {
  const counts = run.workers.flatMap((worker) => worker.staleness.map((gradients, staleness) => [gradients, staleness]));
  const gradients = sum_of(counts.map(([count]) => count));
  return gradients > 0 ? sum_of(counts.map(([count, staleness]) => count * staleness)) / gradients : 0;
};

// What the runs mean by a step and an epoch, in the words of their plans; nothing if all mean the same.
const meanings = (data) => {
  const sentences = (run, words) => run.sentences.filter((line) => line.startsWith(words)).join(" ");
  const rows = data.runs.map((run) => [run.short_name, sentences(run, "Each "), sentences(run, "An epoch ")]);
  const different = new Set(rows.map(([, ...words]) => words.join("\n"))).size > 1;
  const caption = "What a step and an epoch are";
  return different ? [folded(caption, words_box({caption, head: ["run", "step", "epoch"], rows}))] : [];
};

const workers_of = (run) => {
  if (run.workers.length === 0) return [];
  const even = sum_of(run.workers.map((worker) => worker.samples)) / run.workers.length;
  return [numbers_box({
    caption: "What each worker gave",
    head: ["worker", "gradients", "samples applied", "times an even share", "gradients dropped"],
    rows: run.workers.map((worker, i) => [String(i), count_text(worker.computed), count_text(worker.samples),
      even > 0 ? (worker.samples / even).toFixed(2) : "-", count_text(worker.dropped)]),
  })];
};

// A cell is coloured by its share of the samples of the true class.
const confusion_box = ({split, step, classes, counts}, at) => table_box("confusion", {
  caption: `Samples of the ${split} set after step ${count_text(step)}${at}: rows are true classes, columns predicted ones`,
  head: ["true", ...classes],
  rows: counts.map((row, i) => [classes[i], ...row]),
}, (samples, row, column) => {
  const share = samples / Math.max(1, sum_of(counts[row]));
  const cell = element("td", {class: share < 0.005 ? null : row === column ? "y" : "n"}, String(samples));
  if (share >= 0.005) cell.style.setProperty("--s", Math.sqrt(share).toFixed(2));
  return cell;
});

const answers_at = (threshold, confusion, share_text) => {
  const yes = confusion.classes[1];
  const at = `, with ${yes} from a probability of ${number_text(threshold.probability)} on`;
  return [
    confusion_box({...confusion, counts: threshold.counts}, at),
    numbers_box({
      caption: `The ${confusion.split} set${at}`,
      head: ["class", "accuracy", "precision", "recall", "F1"],
      rows: [[yes, ...["accuracy", "precision", "recall", "f1"].map((name) => share_text(threshold[name]))]],
    }),
  ];
};

const classes_of = ({confusion}) => {
  if (!confusion) return [];
  const {threshold} = confusion;
  const matrix = confusion_box(confusion, threshold ? ", at 0.5" : "");
  const share_text = (share) => share === null ? "-" : percent_text(100 * share);
  return [
    ...threshold ? answers_at(threshold, confusion, share_text) : [],
    confusion.classes.length > kManyClasses ? folded("Confusion matrix", matrix) : matrix,
    numbers_box({
      caption: "Each class: of its samples, how many are recognised (recall); of those that are taken for it, how many are it (precision)",
      head: ["class", "samples", "precision", "recall", "F1"],
      rows: confusion.scores.map((score, i) => [confusion.classes[i], count_text(score.samples), share_text(score.precision),
        share_text(score.recall), share_text(score.f1)]),
    }),
  ];
};

// The pixels of an image: rows from the top, a byte for each of its one or three channels, in base64.
const picture_of = ({width, height, channels, pixels}, label) => {
  const bytes = atob(pixels);
  const canvas = element("canvas", {width, height, role: "img", "aria-label": label});
  const context = canvas.getContext("2d");
  const image = context.createImageData(width, height);
  for (let pixel = 0; pixel < width * height; ++pixel) {
    for (let color = 0; color < 3; ++color)
      image.data[4 * pixel + color] = bytes.charCodeAt(channels * pixel + (channels === 3 ? color : 0));
    image.data[4 * pixel + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return canvas;
};

const gallery_of = (worst) => element("div", {class: "gallery"}, ...worst.map((record) => {
  const place = `record ${count_text(record.record)}`;
  return element("figure", {class: "worst"},
    picture_of(record.picture, `Picture of ${place}`),
    element("figcaption", null, `true: ${short_text(record.target, 80)}`, element("br"),
      `predicted: ${short_text(record.prediction, 120)}`, element("br"),
      element("span", null, `loss ${number_text(record.loss)}, ${place}`)));
}));

const worst_of = ({predictions}) => {
  const {worst, samples, split, columns} = predictions;
  if (worst.length === 0) return [];
  const several_files = worst.some((record) => record.file !== worst[0].file);
  const of_file = several_files || !worst[0].file ? "" : `, of ${worst[0].file}`;
  const caption = `The ${worst.length} of ${count_text(samples)} records of the ${split} set with the largest losses${of_file}; `
    + "records are counted from 0";
  const by_position = worst[0].position !== undefined;
  const table = words_box({
    caption,
    head: ["record", ...by_position ? ["position"] : [], "loss", "target", "prediction",
      ...several_files ? ["file"] : [], ...columns],
    rows: worst.map((record) => [count_text(record.record), ...by_position ? [count_text(record.position)] : [],
      number_text(record.loss), record.target, record.prediction,
      ...several_files ? [record.file] : [], ...columns.map((_, i) => record.cells[i] || "")]),
  });
  if (!worst.every((record) => record.picture)) return [table];
  return [element("p", null, `${caption}.`), gallery_of(worst), folded("Table of these records", table)];
};

const texts_of = ({texts}) => texts.flatMap(({step, text}) => [
  element("h3", null, `After step ${count_text(step)}`), element("pre", {class: "text"}, text)]);

const columns_of = ({columns}) => columns ? [words_box({
  caption: columns.rows.length < columns.count ? `The first ${columns.rows.length} of ${columns.count} columns`
    : "Columns of the table, as training has seen them",
  head: ["column", "use", "kind", "missing values", "values"],
  rows: columns.rows,
})] : [];

const plan_of = (run) => {
  const {steps, samples, epochs, planned, plan, model, stages, sentences} = run;
  const short = (value) => String(+value.toPrecision(4));
  const rows = !planned ? [] : [
    ["steps", count_text(planned.steps), count_text(steps)],
    ["samples", count_text(planned.samples), count_text(samples)],
    ["epochs", number_text(planned.epochs), short(epochs)],
    ["each example seen", times_text(number_text(planned.times_each_seen)), times_text(short(samples / planned.rows))],
  ];
  return [
    ...rows.length > 0 ? [numbers_box({caption: "Planned and done", head: ["", "planned", "done"], rows})] : [],
    ...plan.length > 0 ? [folded("Model and plan",
      ...model.length > 0 ? [numbers_box({caption: "The layers of the model", head: model[0], rows: model.slice(1)})] : [],
      words_box({caption: "The plan", head: ["", "planned"], rows: plan}),
      ...stages.length > 0 ? [numbers_box({caption: "The stages of the model", head: stages[0], rows: stages.slice(1)})] : [],
      ...sentences.map((sentence) => element("p", null, sentence)))] : [],
  ];
};

const config_of = ({config}) => {
  if (config.length === 0) return [];
  const shown = (value) => value || "(not given)";
  const [differing, others] = [true, false].map((differs) => config.filter((line) => (line.value !== line.default) === differs));
  return [folded("Keys and their values", words_box({
    caption: "What differs from the defaults", head: ["key", "value", "default"],
    rows: differing.map((line) => [line.key, shown(line.value), shown(line.default)]),
  }), words_box({
    caption: "All other keys", head: ["key", "value"], rows: others.map((line) => [line.key, shown(line.value)]),
  }))];
};

const environment_of = ({launch, algorithm, placement}) => [
  ...launch ? [element("p", null, launch)] : [],
  ...algorithm ? [element("p", null, `Exchange algorithm: ${algorithm}`)] : [],
  ...placement.length > 0 ? [folded("Ranks, hosts and cores",
    words_box({caption: "Where each rank ran", head: ["rank", "host", "cores"], rows: placement}))] : [],
];

// The sections in their order: id, title, and what is in it. `figures` draws the charts of a section.
const make_sections = (data, figures) => [
  ["summary", data.runs.length > 1 ? "The runs" : "Summary", summary_section(data)],
  ["search", "What the keys do", [...search_grid(data), ...figures("search")]],
  ["curves", "Learning curves", figures("curves")],
  ["speed", "Learning rate, speed and norms", figures("speed")],
  ["time", "Where the time went", figures("time")],
  ["workers", "Asynchronous workers", [...figures("workers"), ...for_each_run(data, workers_of)]],
  ["classes", "Classes", for_each_run(data, classes_of)],
  ["forecasts", "Forecasts", figures("forecasts")],
  ["samples", "Samples", for_each_run(data, texts_of)],
  ["predictions", "Predictions", figures("predictions")],
  ["worst", "Records that are predicted worst", for_each_run(data, worst_of)],
  ["importance", "Importance of the columns", figures("importance")],
  ["columns", "Columns of the data", for_each_run(data, columns_of)],
  ["plan", "The plan and what happened", for_each_run(data, plan_of)],
  ["config", "Config", for_each_run(data, config_of)],
  ["environment", "Environment", for_each_run(data, environment_of)],
].filter(([, , content]) => content.length > 0);
