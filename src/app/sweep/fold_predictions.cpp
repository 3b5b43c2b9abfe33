#include "fold_predictions.h"

#include <fmt/format.h>

#include <fstream>
#include <vector>

#include "app/setup/data_notes.h"
#include "app/setup/experiment.h"
#include "app/setup/startup.h"
#include "app/setup/trained_model.h"
#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/thread_team.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/data/table/values/label_scale.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/evaluation/prediction_table.h"
#include "lockstep/train/rank_peer_group.h"
#include "lockstep/train/storage/model_file.h"
#include "lockstep/train/storage/prediction_file.h"

namespace lockstep {
namespace {

constexpr const char* kFoldFile = "fold_predictions.csv";

// *Collective.* The data and the model of a finished run.
Experiment open_evaluation(Communicator& comm, const LoadedConfig& loaded, PeerGroup& peers) {
  const RunDirectory run{loaded.config.run.dir};
  Shape input;
  agree(comm, [&] { input = ModelFile(run.model()).input(); });
  return make_evaluation(loaded, {Split::kValidation}, input, load_schema_together(comm, run), peers);
}

// The lines of a fold's file, one after the other, without the numbers that they begin with.
class FoldLines {
 public:
  explicit FoldLines(const std::filesystem::path& path) : path_(path), in_(path) { header_ = next(); }

  const std::string& header() const { return header_; }
  std::string next() {
    std::string line = next_line();
    // A class may have a line end in its name, which is in quotes then.
    while (std::ranges::count(line, '"') % 2 != 0) line += fmt::format("\n{}", next_line());
    return line.substr(line.find(',') + 1);
  }

 private:
  std::string next_line() {
    std::string line;
    if (std::getline(in_, line)) return line;
    throw DataError(fmt::format("'{}' has too few lines: remove the row of its trial, and it is made again",
                                path_.string()));
  }

  std::filesystem::path path_;
  std::ifstream in_;
  std::string header_;
};

// Commas between the cells of a line.
std::size_t separators_in(const std::string& line) {
  std::size_t count = 0;
  bool inside = false;
  for (const char c : line) {
    inside ^= c == '"';
    count += !inside && c == ',' ? 1U : 0U;
  }
  return count;
}

void join_files(const FoldAssignment& folds, const SweepState& state) {
  const SweepDirectory& directory = state.directory();
  std::vector<FoldLines> files;
  const Index count = std::ssize(state.rows()) - (directory.refit > 0 ? 1 : 0);
  for (Index fold = 1; fold <= count; ++fold) files.emplace_back(directory.trial(fold).root / kFoldFile);
  AtomicFile joined(directory.root / "predictions.csv");
  const std::string& header = files.front().header();
  joined.write(fmt::format("row,fold,{}\n", header));
  const std::string empty(separators_in(header), ',');
  for (std::size_t record = 0; record < folds.fold_of.size(); ++record) {
    const Index fold = folds.fold_of[record];
    joined.write(fold == 0 ? fmt::format("{},,{}\n", record, empty)
                           : fmt::format("{},{},{}\n", record, fold, at(files, fold - 1).next()));
  }
  joined.commit();
}

}  // namespace

void write_fold_predictions(Communicator& comm, const CommandLine& line, const ConfigText& text) {
  const LoadedConfig loaded = load_config_together(comm, line, text, {.ranks = comm.size()});
  if (loaded.config.folds.fold == 0) return;
  RankPeerGroup peers(comm);
  const Experiment experiment = open_evaluation(comm, loaded, peers);
  const RunDirectory run{loaded.config.run.dir};
  const std::string schema = load_schema_together(comm, run);
  AlignedBuffer<Scalar> stored;
  std::vector<LabelScale> label_scales;
  std::vector<TargetLabel> labels;
  std::optional<double> threshold;
  Scalar temperature = 1;
  agree(comm, [&] {
    stored = load_stored(run, *experiment.model);
    label_scales = read_label_scales(schema);
    labels = read_target_labels(schema);
    threshold = threshold_of(run, experiment.config, comm.rank());
    temperature = load_temperature(run, loaded.config);
  });
  ThreadTeam team(static_cast<int>(loaded.config.train.threads));
  Prediction prediction({.comm = comm,
                         .model = *experiment.model,
                         .form = experiment.loss->form(),
                         .normaliser = *experiment.normaliser,
                         .team = team,
                         .batch = loaded.config.eval.batch,
                         .label_scales = label_scales,
                         .temperature = temperature},
                        *experiment.validation);
  PredictionTable table(experiment.loss->form(), experiment.model->output().size(), labels,
                        {.threshold = threshold});
  std::unique_ptr<PredictionFile> file;  // only rank 0 has one
  agree(comm, [&] {
    if (comm.rank() > 0) return;
    const std::string path = (run.root / kFoldFile).string();
    std::filesystem::remove(path);
    file = choose_prediction_file(path).make({.path = path,
                                              .rows = experiment.validation->info().rows,
                                              .columns = {table.columns().begin(), table.columns().end()}});
  });
  prediction.run(stored_values(*experiment.model, stored.span()),
                 [&](const ConstMatrix& rows) { file->append(table.convert(rows)); });
  agree(comm, [&] {
    if (file) file->finish();
  });
}

void join_fold_predictions(Communicator& comm, const CommandLine& line, const SweepState& state) {
  const CommandLine first = line_of_trial(line, state.directory(), state.rows().front());
  const LoadedConfig loaded = load_config_together(comm, first, state.text(), {.ranks = comm.size()});
  RankPeerGroup peers(comm);
  const Experiment experiment = open_evaluation(comm, loaded, peers);
  agree(comm, [&] {
    if (comm.rank() == 0) join_files(*experiment.folds, state);
  });
}

}  // namespace lockstep
