#include "lockstep/config/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/config/help.h"

namespace lockstep {

using Command = CommandLine::Command;

std::vector<std::string> metrics_formats() {
  return {"csv"};
}

std::vector<std::string> prediction_formats() {
  return {"csv", "jsonl", "npy"};
}

bool CommandEntry::has_flag(std::string_view flag) const {
  return std::ranges::count(needs, flag) + std::ranges::count(reads, flag) > 0;
}

std::span<const CommandEntry> command_catalog() {
  static const std::vector<CommandEntry> kCommands{
      {Command::kTrain,
       std::nullopt,
       {{"mpirun -np N trainer --config FILE", "train"}},
       {"config"},
       {},
       "mpirun -np 2 trainer --config configs/fashion_mlp_allreduce.toml",
       "batches-and-steps"},
      {Command::kSweep,
       "sweep",
       {{"mpirun -np N trainer sweep --config FILE --grid KEY=VALUES",
         "train with other values, side by side"}},
       {"config"},
       {"grid", "random", "trials", "halving", "ranks-per-trial", "part"},
       "mpirun -np 2 trainer sweep --config earnings.toml --grid train.lr=0.001,0.01 --run.dir runs/sweep",
       "sweeps"},
      {Command::kCrossValidate,
       "cv",
       {{"mpirun -np N trainer cv --config FILE --folds K", "cross-validation: train K times"}},
       {"config"},
       {"folds", "stratified", "group", "time", "fold-column", "refit", "ranks-per-trial"},
       "mpirun -np 2 trainer cv --config earnings.toml --folds 5 --stratified --run.dir runs/cv",
       "sweeps"},
      {Command::kPlan,
       "plan",
       {{"trainer plan --config FILE --np 1,2,4,8",
         "show what a step, an epoch and the run mean on that many ranks"},
        {"trainer plan --config FILE --nodes N --latency TIME --bandwidth RATE --from FILE",
         "predict a step's time"}},
       {"config"},
       {"np", "nodes", "ranks-per-node", "cores-per-node", "latency", "bandwidth", "from", "json",
        "overwrite"},
       "trainer plan --config configs/fashion_mlp_allreduce.toml --np 1,2,4,8",
       "batches-and-steps"},
      {Command::kBench,
       "bench",
       {{"mpirun -np N trainer bench --config FILE --json FILE",
         "measure machine, layers, exchange and a step"}},
       {"config"},
       {"json", "overwrite"},
       "mpirun -np 2 trainer bench --config configs/fashion_mlp_allreduce.toml --json bench.json",
       "performance"},
      {Command::kEval,
       "eval",
       {{"trainer eval --model RUN", "evaluate the weights of a run, by mpirun on many ranks"}},
       {"model"},
       {"config", "json", "overwrite"},
       "mpirun -np 2 trainer eval --model runs/earnings --data.test data/cpssw8_test.csv",
       "predicting-and-exporting"},
      {Command::kPredict,
       "predict",
       {{"trainer predict --model RUN --input DATA --output FILE",
         "predict each row (.csv, .jsonl, .npy), by mpirun on many"}},
       {"model", "input", "output"},
       {"config", "keep", "proba", "threshold", "top", "format", "overwrite", "allow-nan"},
       "trainer predict --model runs/earnings --input data/cpssw8_test.csv --output predictions.csv",
       "predicting-and-exporting",
       Operand::kNone,
       [](const KnownNames&) { return prediction_formats(); }},
      {Command::kImportance,
       "importance",
       {{"trainer importance --model RUN", "which columns a model needs, by mpirun on many ranks"},
        {"trainer importance --model RUN --partial COLUMN", "how its predictions follow a column"}},
       {"model"},
       {"config", "metric", "repeats", "partial", "points", "csv", "json", "overwrite"},
       "trainer importance --model runs/earnings --metric accuracy --repeats 10",
       "predicting-and-exporting"},
      {Command::kExport,
       "export",
       {{"trainer export --model RUN --format npz --output FILE", "write the model for other programs"}},
       {"model", "format", "output"},
       {"config", "overwrite"},
       "trainer export --model runs/earnings --format onnx --output earnings.onnx",
       "predicting-and-exporting",
       Operand::kNone,
       [](const KnownNames& names) { return names.export_formats; }},
      {Command::kInspect,
       "inspect",
       {{"trainer inspect DATA --label NAME", "show what a table (CSV) holds, and its [data] section"},
        {"trainer inspect DATA --label NAME --data.test FILE",
         "and how a test set differs; of large files, counts of all records and a sample of 50,000"}},
       {},
       {"json", "overwrite"},
       "trainer inspect data/cpssw8_train.csv --label over_20",
       "tables",
       Operand::kData},
      {Command::kInit,
       "init",
       {{"trainer init DATA --label NAME", "write a first config for a data file, FILE of --output"}},
       {},
       {"task", "output", "overwrite"},
       "trainer init data/cpssw8_train.csv --label over_20 --output earnings.toml",
       "tables",
       Operand::kData},
      {Command::kCompare,
       "compare",
       {{"trainer compare RUN ...", "what differs between runs, and what came of it"}},
       {},
       {"sort", "csv", "json", "overwrite"},
       "trainer compare runs --sort train.lr",
       "output",
       Operand::kRuns},
      {Command::kReport,
       "report",
       {{"trainer report RUN ... --output FILE", "write a page (HTML) that shows what runs did"}},
       {"output"},
       {"overwrite"},
       "trainer report runs/earnings --output report.html",
       "output",
       Operand::kRuns},
      {Command::kExportMetrics,
       "export-metrics",
       {{"trainer export-metrics RUN ... --output FILE", "write the metrics of runs as CSV"}},
       {"output"},
       {"format", "overwrite"},
       "trainer export-metrics runs/earnings --format csv --output metrics.csv",
       "output",
       Operand::kRuns,
       [](const KnownNames&) { return metrics_formats(); }},
      {Command::kStatus,
       "status",
       {{"trainer status RUN ...", "one line for each run: how far and how good it is"}},
       {},
       {},
       "trainer status runs/earnings",
       "output",
       Operand::kRuns},
      {Command::kWatch,
       "watch",
       {{"trainer watch RUN ...", "runs as they go on: curves, progress, time; q leaves"}},
       {},
       {"once"},
       "trainer watch runs/earnings",
       "output",
       Operand::kRuns},
      {Command::kReference,
       "reference",
       {{"trainer reference", "every option; --format man, bash, zsh: page, completions"}},
       {},
       {"config", "format"},
       "trainer reference --format man > trainer.1",
       "building",
       Operand::kNone,
       [](const KnownNames&) { return catalog_names(reference_catalog()); }},
      {Command::kTopic,
       "help",
       {{"trainer help TOPIC", "a guide, a key such as train.lr, or a command"}},
       {},
       {},
       "trainer help tables",
       "troubleshooting",
       Operand::kTopic},
  };
  return kCommands;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandEntry& command : command_catalog()) {
    if (command.name) names.push_back(*command.name);
  }
  return names;
}

std::span<const OwnFlag> own_flags() {
  static constexpr std::array kFlags{
      OwnFlag{"config", FlagValue::kConfigFile, "FILE", "the config, in TOML; configs/ has examples", "",
              true},
      OwnFlag{"np", FlagValue::kText, "LIST", "numbers of ranks for plan (default 1)",
              "mpirun -np sets the number of ranks of a run", true},
      OwnFlag{"model", FlagValue::kDirectory, "RUN",
              "directory of the run for eval, predict, importance and export, or RUN@best, RUN@last, "
              "RUN@step-500",
              "layers are set with --model.layers", true},
      OwnFlag{"input", FlagValue::kFile, "DATA",
              "predict: the data file whose records are predicted; - for standard input",
              "the data of a run is set with --data.train, --data.validation and --data.test"},
      OwnFlag{"output", FlagValue::kFile, "FILE",
              "of predict, export, init, report and export-metrics; - for standard output (predictions are "
              "CSV then, or what --format says)",
              "the directory of a run is set with --run.dir"},
      OwnFlag{"format", FlagValue::kFormat, "NAME",
              "of export, export-metrics and predict, what is written; of reference, as what",
              "that of the data is set with --data.format"},
      OwnFlag{"once", FlagValue::kNone, "", "of watch: print the view once, and end", ""},
      OwnFlag{"keep", FlagValue::kText, "COLUMNS",
              "predict: columns of the input, such as id,name, that are written beside the predictions",
              "the columns of a table are set with --data.numeric, --data.categorical and --data.ignore"},
      OwnFlag{"proba", FlagValue::kNone, "",
              "predict: the probabilities of all classes, without the class (predict_proba of scikit-learn)",
              "'trainer predict' writes probabilities"},
      OwnFlag{"threshold", FlagValue::kText, "P",
              "predict: the class is yes from a probability of P on (default: eval.threshold of the run)",
              "of a run it is set, or chosen, with --eval.threshold"},
      OwnFlag{"top", FlagValue::kText, "K", "predict: the K most probable classes and their probabilities",
              "top-k accuracy is set with --eval.top_k"},
      OwnFlag{"overwrite", FlagValue::kNone, "", "replace an --output, --csv or --json that exists",
              "a run is never overwritten: name another directory with --run.dir"},
      OwnFlag{"allow-nan", FlagValue::kNone, "", "predict: no error where predictions are not finite numbers",
              "what a run does about bad numbers is set with --train.on_nan"},
      OwnFlag{"metric", FlagValue::kText, "NAME",
              "importance: loss, accuracy or a metric that is to get worse (default "
              "train.early_stopping_metric)",
              "the metrics of an evaluation are set with --eval.metrics"},
      OwnFlag{"repeats", FlagValue::kText, "N", "importance: permutations of each column (default 5)",
              "the length of a run is set with --train.epochs"},
      OwnFlag{"partial", FlagValue::kText, "COLUMN",
              "importance: mean prediction for values of this column instead (partial dependence)",
              "columns of a table are declared with --data.columns"},
      OwnFlag{"points", FlagValue::kText, "N", "importance: values of --partial (default 20)",
              "the length of a run is set with --train.epochs"},
      OwnFlag{"grid", FlagValue::kText, "KEY=VALUES",
              "sweep: values of a key, between commas or |; several --grid make the product",
              "one value is set with --KEY VALUE"},
      OwnFlag{"random", FlagValue::kText, "KEY=DISTRIBUTION",
              "sweep: draws of a key from uniform(a,b), log(a,b), int(a,b) or choice(a|b|c)",
              "one value is set with --KEY VALUE"},
      OwnFlag{"trials", FlagValue::kText, "N", "sweep: the number of draws of --random",
              "several trainings are a sweep"},
      OwnFlag{"halving", FlagValue::kText, "E",
              "sweep: the best one in E trials goes on at each of several rungs, the others are dropped",
              "a run ends early with --train.early_stopping"},
      OwnFlag{"ranks-per-trial", FlagValue::kText, "N", "ranks that train one trial together (default 1)",
              "mpirun -np sets the number of ranks of a run"},
      OwnFlag{"part", FlagValue::kText, "K/N",
              "sweep: only part K of N of the trials, as one job of an array",
              "several trainings are a sweep"},
      OwnFlag{"folds", FlagValue::kText, "K", "cv: number of folds",
              "a run with one fold as validation set has --data.folds and --data.fold"},
      OwnFlag{"stratified", FlagValue::kNone, "", "cv: as many records of each class in each fold",
              "a run with one fold as validation set has --data.fold_by class"},
      OwnFlag{"group", FlagValue::kText, "COLUMN", "cv: records with one value of the column are in one fold",
              "a run with one fold as validation set has --data.fold_by group --data.fold_column COLUMN"},
      OwnFlag{"time", FlagValue::kText, "COLUMN",
              "cv: each fold comes later in this column than the records that it is trained on",
              "a run with one fold as validation set has --data.fold_by time --data.fold_column COLUMN"},
      OwnFlag{"fold-column", FlagValue::kText, "COLUMN", "cv: the column names the fold of each record",
              "a run with one fold as validation set has --data.fold_by column --data.fold_column COLUMN"},
      OwnFlag{"refit", FlagValue::kNone, "", "cv: train on all records, too, as long as the folds on average",
              "trainer --config trains once"},
      OwnFlag{"nodes", FlagValue::kText, "N", "plan: nodes to predict the time of a step on",
              "mpirun and its hosts decide where a run is"},
      OwnFlag{"ranks-per-node", FlagValue::kText, "N", "of each (default 1)",
              "mpirun --map-by ppr:K:node puts K ranks of a run on each node"},
      OwnFlag{"cores-per-node", FlagValue::kText, "N",
              "that its ranks share (default: those of the machine that bench ran on)",
              "mpirun --bind-to says which cores the ranks of a run get"},
      OwnFlag{"latency", FlagValue::kText, "TIME", "of a message between nodes, such as 500ns, 2us or 0.1ms",
              "a run takes the network as it is"},
      OwnFlag{"bandwidth", FlagValue::kText, "RATE",
              "of a node's link, each way, such as 25Gbit, 100Mbit or 3GB",
              "a run takes the network as it is"},
      OwnFlag{"from", FlagValue::kFile, "FILE", "what bench --json has measured",
              "a run starts from given weights with --init"},
      OwnFlag{"task", FlagValue::kText, "NAME",
              "init: what is to be learned, classes, binary (yes or no), images (classes of images, by "
              "convolutions) or numbers, where the labels do not tell",
              "the task of a run follows from train.loss and model.layers"},
      OwnFlag{"sort", FlagValue::kText, "KEY",
              "compare: a key such as train.lr or a measure such as accuracy",
              "runs are sorted by 'trainer compare'"},
      OwnFlag{"csv", FlagValue::kFile, "FILE", "compare, importance: the same as CSV; - for standard output",
              "the data of a run is set with --data.train"},
      OwnFlag{"json", FlagValue::kFile, "FILE",
              "of plan --nodes, bench, eval, inspect, compare, importance and --version: the same for "
              "programs; - for standard output",
              "a run writes summary.json and metrics.jsonl into --run.dir"},
  };
  return kFlags;
}

std::string flag_words(const OwnFlag& flag) {
  return fmt::format("--{}{}{}", flag.name, flag.value_name.empty() ? "" : " ", flag.value_name);
}

std::span<const ExitCode> exit_codes() {
  static constexpr std::array kCodes{
      ExitCode{0, "done", "the command did what was asked for"},
      ExitCode{kExitInternal, "internal", "an error in trainer itself"},
      ExitCode{kExitConfig, "config", "the config, the command line or the launch is wrong"},
      ExitCode{kExitData, "data", "a file is missing, damaged or of the wrong kind, or cannot be written"},
      ExitCode{kExitComm, "communication", "MPI failed, or the ranks do not agree"},
      ExitCode{kExitTraining, "bad numbers", "the loss or a gradient is not a finite number"},
      ExitCode{kExitStopped, "stopped",
               "the run was asked to stop and has saved itself; started again it goes on"},
      ExitCode{kExitStalled, "stalled", "a rank did not come, and the watchdog has ended the job"},
  };
  return kCodes;
}

}  // namespace lockstep
