// A run in plain sentences: how good it is, what was trained, and what its reader should look at. Texts, no markup.
"use strict";

const duration_text = (seconds) => {
  if (seconds < 120) return `${+seconds.toPrecision(4)} s`;
  return seconds < 7200 ? `${+(seconds / 60).toPrecision(4)} min` : `${+(seconds / 3600).toPrecision(4)} h`;
};

// Titles of measures that are not their names with a capital and blanks.
const kTitles = new Map(Object.entries({
  lr: "Learning rate", samples_per_second: "Throughput, in samples per second", gradient_norm: "Norm of the gradient",
  weight_norm: "Norm of the weights", auc: "AUC", r2: "R²", brier: "Brier score", ece: "Expected calibration error", f1: "F1",
  mcc: "Matthews correlation", spearman: "Rank correlation", top_k_accuracy: "Top-K accuracy",
}));
const kOfPositive = ["precision", "recall", "f1", "average_precision"];

// "Learning rate" for "lr", "F1 of 'fraud'" where one of two classes is the positive one.
const measure_title = (run, measure) => {
  const plain = /^[a-z][a-z0-9_]*$/.test(measure) ? measure[0].toUpperCase() + measure.slice(1).replaceAll("_", " ") : measure;
  return (kTitles.get(measure) || plain) + (run.positive && kOfPositive.includes(measure) ? ` of '${run.positive}'` : "");
};

// The value of a measure in words: shares in percent.
const kShares = ["accuracy", "top_k_accuracy", "precision", "recall"];
const value_text = (measure, value) => value !== null && kShares.includes(measure) ? `${(100 * value).toFixed(2)} %` : number_text(value);

const small_first = (title) => /^(?!Matthews|Brier)[A-Z][a-z]/.test(title) ? title[0].toLowerCase() + title.slice(1) : title;

// The set that says most, with the measure by which the weights were chosen, or the first one, and the loss.
const result_of = (run) => {
  const shown = ["test", "validation"].map((set) => run.results.find((each) => each.name === set)).find((each) => each);
  if (!shown) return null;
  const loss = shown.values.find(({measure}) => measure === "loss");
  const measures = shown.values.filter((each) => each !== loss);
  return {set: shown.name, main: measures.find(({measure}) => run.best && measure === run.best.measure) || measures[0] || loss, loss};
};

// A sentence for a reader who reads no more than that.
const verdict_of = (run) => {
  const {set, main} = result_of(run) || {};
  if (!main) return run.curves.length > 0 ? "Nothing but the training was measured." : "metrics.jsonl has no training line, so there are no curves of it.";
  const text = value_text(main.measure, main.value);
  const where = `the ${set} set, which it has not learnt from`;
  if (main.measure === "accuracy") return `The model is right about ${text} of ${where}.`;
  if (main.measure === "mean_absolute_error") return `The model is off by ${text} on average on ${where}.`;
  return `The model has the ${small_first(main.title)} ${text} on ${where}.`;
};

const rate_text = ({samples, seconds}) => samples < 10 * seconds ? String(+(samples / seconds).toPrecision(2)) : count_text(samples / seconds);
// Tokens a second, of windows of a text; else nothing.
const token_rate = (run) => value_of(run, "data.tokens") && run.seconds > 0
  && rate_text({samples: run.samples * Number(value_of(run, "data.window")), seconds: run.seconds});

// The length of the run, its model and data, and the weights that are kept.
const story_of = (run) => {
  const given = (key) => value_of(run, key);
  const known = (name, noun, around) => run.planned ? around(plural_text(count_text(run.planned[name]), noun)) : "";
  const model = run.config.length === 0 ? "Its config cannot be read, so this page does not know what was trained."
    : `A model "${given("model.preset") || given("model.layers")}"${known("parameters", "parameter", (text) => ` of ${text}`)} was trained on `
    + `${given("data.train") || "synthetic data"}${known("rows", "record", (text) => ` (${text})`)}, with the loss ${given("train.loss")}`
    + (run.scaled_label ? ` of the scaled label (${run.scaled_label}; other measures are in its own units)` : "")
    + ` and the optimizer ${given("train.optimizer")}.`;
  const steps = [run.steps, ...run.planned ? [run.planned.steps] : []].map(count_text);
  const length = `It made ${plural_text(steps.join(" of "), "step")}`
    + (run.epochs > 0 ? `, ${plural_text(+run.epochs.toPrecision(4), "epoch")} with ${plural_text(count_text(run.samples), "sample")}` : "")
    + known("ranks", "rank", (text) => `, on ${text}`)
    + (run.seconds > 0 ? `, in ${duration_text(run.seconds)} of training (${rate_text(run)} samples${token_rate(run) ? `, ${token_rate(run)} tokens` : ""} a second).` : ".");
  const kept = !run.kept ? [] : run.kept.best && run.best
    ? [`Kept are the weights of step ${count_text(run.kept.step)}, with the best ${small_first(run.best.title)} `
      + `${value_text(run.best.measure, run.best.value)} of the validation set.`]
    : [`Kept are the last weights, those of step ${count_text(run.kept.step)}.`];
  return [model, length, ...run.state === "stopped early" ? [`It ended early: ${run.reason}.`] : [], ...kept];
};

// Things that a user may try, as "first, or second": of those whose keys, if any, the run leaves at their defaults.
const untried = (run, things) => things.filter(([key]) => {
  const line = run.config.find((each) => each.key === key);
  return !line || line.value === line.default;
}).map(([, words]) => words).join(", or ");

const notes_on_numbers = (run) => run.curves.filter((each) => each.bad_step !== undefined).map((each) =>
  `The ${each.split === "train" ? "training" : each.split} loss is not a finite number (NaN or infinite), first in the line of step `
  + `${count_text(each.bad_step)}. ${untried(run, [["", "A lower learning rate (train.lr)"], ["train.clip_norm", "train.clip_norm"],
    ["train.warmup", "a warm-up (train.warmup)"]])} may help.`);

// By how much the loss of a set grew from the kept weights to the last ones, as a share; NaN where that is unknown.
const loss_growth = (run, split) => {
  const {step, y} = run.curves.find((each) => each.split === split && each.measure === "loss") || {step: [], y: []};
  const kept = y[step.findLastIndex((each) => each <= run.kept.step)];
  return (y.at(-1) - kept) / Math.abs(kept);
};

const notes_on_kept = (run) => {
  if (!run.curves.some((each) => each.split === "validation")) {
    return ['There was no validation set: nobody chose between the weights. data.validation = "share(0.1)" holds some records back.'];
  }
  const {step, best} = run.kept;
  if (!best || run.steps <= 0) return [];
  const overfits = loss_growth(run, "validation") > 0.05 && loss_growth(run, "train") < 0;
  if (!overfits && step >= 0.7 * run.steps) {
    const perfect = run.best && run.best.value === (run.best.smaller_is_better ? 0 : 1);
    return step >= run.steps && !perfect ? ["The validation set was best at the last step: a longer run may be better still."] : [];
  }
  const advice = untried(run, [["train.early_stopping", "train.early_stopping would end such a run"],
    ...overfits ? [["train.weight_decay", "train.weight_decay may help"]] : []]);
  const after = overfits ? "got worse afterwards while the training loss fell: the model fits its training data too closely after that"
    : "no better afterwards";
  return advice || overfits
    ? [`The validation set was best at step ${count_text(step)} of ${count_text(run.steps)}, and ${after}.${advice && ` ${advice}.`}`] : [];
};

// Parts that took more than a quarter of the time, of a run that took some.
const notes_on_time = (run) => {
  if (!(run.seconds >= 5)) return [];
  const shares = untried(run, [["data.prefetch", "data.prefetch prepares them ahead"], ["train.threads", "train.threads shares the work out"]]);
  return [
    ["waiting", "was spent in waiting for the slowest rank: see the guide on performance."],
    ["communication", "went into the exchange of gradients: a larger train.global_batch or fewer ranks give the ranks more to compute "
      + "between exchanges."],
    ["data", `was spent in waiting for samples${shares && `: ${shares}`}.`],
    ["idle", "stages waited for other stages: more replicas for each group, or train.accumulate, keep them busy, and so do stages that "
      + "are equally long (distribute.cut)."],
  ].filter(([part]) => run.time[part] > 0.25).map(([part, words]) => `${(100 * run.time[part]).toFixed(0)} % of the time ${words}`);
};

// The class that is recognised least, and the one that it is most often taken for.
const least_recognised = ({scores, counts, classes}) => {
  const recalls = scores.map(({recall}) => recall ?? 1);
  const worst = recalls.indexOf(Math.min(...recalls));
  const others = counts[worst].map((count, i) => i === worst ? -1 : count);
  const taken = others.indexOf(Math.max(...others));
  return {name: classes[worst], recall: recalls[worst], taken_for: classes[taken], count: others[taken], samples: scores[worst].samples};
};

// Where that is less than half of it.
const notes_on_classes = ({confusion}) => {
  if (!confusion) return [];
  const {name, recall, taken_for, count, samples} = least_recognised(confusion);
  return recall >= 0.5 || count <= 0 ? [] : [`Class ${name} is recognised least: ${(100 * recall).toFixed(1)} % of its samples in the `
    + `${confusion.split} set. It is most often taken for class ${taken_for} (${count_text(count)} of ${count_text(samples)}).`];
};

const kStates = new Map([["failed", "failed"], ["stopped", "was stopped"], ["killed", "was killed"], ["no sign of life", "gives no sign of life"]]);

// Only what may be wrong.
const notes_of = (run) => [
  ...run.kept ? [] : [`The run ${kStates.get(run.state) || `is ${run.state}`}${run.reason && `: ${run.reason}`}`],
  ...run.faults.filter((fault) => !run.reason.endsWith(fault)).map((fault) => `metrics.jsonl is damaged: ${fault}. The other lines are shown.`),
  ...notes_on_numbers(run),
  ...run.kept ? notes_on_kept(run) : [],
  ...run.time ? notes_on_time(run) : [],
  ...run.slow.map((each) => `Rank ${each.rank} on host ${each.host} is slow (${each.slowness}): its data and compute take `
    + `${each.to_best.toFixed(2)} times those of the fastest rank and ${each.to_own.toFixed(2)} times its own best, and waiting for it `
    + `costs ${(100 * each.cost).toFixed(1)} % of the time of all ranks.`),
  ...notes_on_classes(run),
  ...run.warnings.map((warning) => `The log warns: ${warning}`),
];
