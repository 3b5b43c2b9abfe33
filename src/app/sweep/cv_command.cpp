// Cross-validation: each fold is a trial, the run of `trainer --config` that has it as data.validation. They
// may be trained by several groups of ranks at a time. Afterwards their predictions are put together. With
// --refit a model is trained on all records, for as long as the folds needed on average.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "app/commands.h"
#include "app/setup/predictions.h"
#include "app/setup/run_config.h"
#include "app/setup/startup.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/terminal.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/kinds/kind.h"
#include "lockstep/data/table/text/table_text.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/threshold.h"
#include "lockstep/train/rank_peer_group.h"
#include "sweep_state.h"

namespace lockstep {
namespace {

std::vector<std::vector<Setting>> list_folds(ValidationPart part) {
  std::vector<std::vector<Setting>> trials;
  for (part.fold = 1; part.fold <= part.folds; ++part.fold)
    trials.push_back({{"data.validation", to_string(part)}});
  return trials;
}

// A config whose fold has groups, say, is not divided by chance because a flag was forgotten.
void refuse_other_folds(const DataOptions& data, const ValidationPart& folds) {
  using By = ValidationPart::By;
  const std::optional<ValidationPart> own = validation_part(data);
  if (!own || own->folds == 0 || own->by == By::kRecord || folds.by != By::kRecord) return;
  const std::string flag = own->by == By::kClass   ? "--stratified"
                           : own->by == By::kGroup ? "--group " + in_quotes(own->column)
                           : own->by == By::kTime  ? "--time " + in_quotes(own->column)
                                                   : "--fold-column " + in_quotes(own->column);
  throw ConfigError(
      "{} does not say to cv how records become folds, its flags do: give {}, or remove "
      "data.validation for folds by chance",
      own->setting, flag);
}

constexpr const char* kFoldFile = "fold_predictions.csv";

// The lines of a fold's file, one after the other, without the numbers that they begin with.
class FoldLines {
 public:
  explicit FoldLines(const std::filesystem::path& path) : path_(path), in_(path) {
    read();
    header_ = take();
  }

  const std::string& header() const { return header_; }
  /// Whether the next line is there, and begins so.
  bool begins(std::string_view text) const { return next_ && next_->starts_with(text); }
  std::string take() {
    if (!next_)
      throw DataError("'{}' has too few lines: remove the row of its trial, and it is made again",
                      path_.string());
    std::string line = *std::move(next_);
    read();
    return line;
  }

 private:
  void read() {
    std::string line;
    next_.reset();
    if (!std::getline(in_, line)) return;
    // A class may have a line end in its name, which is in quotes then.
    for (std::string more; std::ranges::count(line, '"') % 2 != 0 && std::getline(in_, more);)
      line += "\n" + more;
    next_ = line.substr(line.find(',') + 1);
  }

  std::filesystem::path path_;
  std::ifstream in_;
  std::string header_;
  std::optional<std::string> next_;
};

// `skipped`: as RecordSource has it. `by_position`: lines begin with the number of a record and a position.
void join_files(const std::vector<FoldNumber>& fold_of, std::span<const Index> skipped, bool by_position,
                const SweepState& state) {
  const SweepDirectory& directory = state.directory();
  std::vector<FoldLines> files;
  const Index count = std::ssize(state.rows()) - (directory.refit > 0 ? 1 : 0);
  for (Index fold = 1; fold <= count; ++fold) files.emplace_back(directory.trial(fold).root / kFoldFile);
  AtomicFile joined(directory.root / "predictions.csv");
  const std::string& header = files.front().header();
  joined.write(fmt::format("row,fold,{}\n", header));
  const std::string empty(split_record({}, header).size() - 1, ',');
  std::vector<Index> records(files.size());  // of each fold, so far
  Index row = 0;
  Index record = 0;  // its number in the file, records that were left out counted with the others
  for (std::size_t i = 0; i < fold_of.size(); ++i, ++record) {
    for (; !skipped.empty() && skipped.front() == record; ++record) skipped = skipped.subspan(1);
    const Index fold = fold_of[i];
    if (fold <= 0) {
      joined.write(fmt::format("{},,{}{}\n", by_position ? row++ : record,
                               by_position ? std::to_string(record) : "", empty));
    } else if (!by_position) {
      joined.write(fmt::format("{},{},{}\n", record, fold, at(files, fold - 1).take()));
    } else {
      FoldLines& file = at(files, fold - 1);
      const std::string own = fmt::format("{},", at(records, fold - 1)++);
      while (file.begins(own))
        joined.write(fmt::format("{},{},{},{}\n", row++, fold, record, file.take().substr(own.size())));
    }
  }
  joined.commit();
}

// *Collective over the ranks of a trial.* The model of a trained fold, with the fold opened.
TrainedModel open_fold(Communicator& comm, Config config, const RunDirectory& run) {
  std::optional<TrainedModel> trained;
  const std::string schema = read_together(comm, run.schema());
  agree(comm, [&] { trained.emplace(FinishedRun{run, std::move(config), schema}); });
  RankPeerGroup peers(comm);
  open_evaluated(*trained, {Split::kValidation}, schema, peers);
  return std::move(*trained);
}

// *Collective over the ranks of a trial.* Writes the predictions for the fold of a finished run into its
// directory.
void write_fold_predictions(Communicator& comm, const CommandLine& line, const ConfigText& text) {
  Config config = agree(comm, [&] { return load_run_config(line, text); });
  if (config.data.validation.empty()) return;  // the training on all records
  const RunDirectory run{config.run.dir};
  const TrainedModel trained = open_fold(comm, std::move(config), run);
  PredictRequest request{.path = (run.root / kFoldFile).string(), .as_input = false};
  agree(comm, [&] { request.view.threshold = trained.threshold(); });
  write_predictions(comm, trained, *trained.validation, request);
}

// *Collective.* Puts those of all folds together as predictions.csv, in the order of the records; a record
// that is in no fold has empty cells.
void join_fold_predictions(Communicator& comm, const SweepState& state) {
  const CommandLine first = state.line_of(state.rows().front());
  Config config = agree(comm, [&] { return load_run_config(first, state.text()); });
  const TrainedModel trained = open_fold(comm, std::move(config), state.directory().trial(1));
  agree_on_first(comm, [&] {
    join_files(*trained.held.fold_of, trained.validation->skipped(), trained.loss->form().positions > 0,
               state);
  });
}

class CrossValidation {
 public:
  CrossValidation(Communicator& world, const CommandLine& line)
      : world_(world), state_(world, line, "fold", [](const Config& config, const SweepRequest& request) {
          const DataKind& kind = kind_of(config.data);
          error_if(!kind.no_folds.empty(), "{}", kind.no_folds);
          refuse_other_folds(config.data, request.folds);
          refuse_classes_of_numbers(config, request.folds);
          error_if(request.refit && follows_evaluations(config.schedule),
                   "--refit trains without a validation set, which train.schedule = \"plateau\" follows: "
                   "choose another schedule, or leave --refit out");
          error_if(request.refit && !parse_threshold("eval.threshold", config.eval.threshold).measure.empty(),
                   "--refit trains without a validation set, on which eval.threshold is chosen: give a "
                   "number, such as --eval.threshold 0.3, or leave --refit out");
          error_if(request.refit && config.train.calibrate != kNoCalibration,
                   "--refit trains without a validation set, to which train.calibrate fits the "
                   "temperature: remove train.calibrate, or leave --refit out");
          return list_folds(request.folds);
        }) {}

  // *Collective.* The exit code.
  int run() {
    stop_live_output();
    if (first()) state_.announce(fmt::format("{} folds", folds()));
    const bool stopped = train();
    const Index done = count(TrialState::kDone);
    if (!stopped && done == folds()) {
      join_fold_predictions(world_, state_);
      if (state_.request().refit && refit()) return report(true);
    }
    return report(stopped);
  }

 private:
  bool first() const { return world_.rank() == 0; }
  Index folds() const { return state_.request().folds.folds; }
  Index count(TrialState state) const {
    return std::ranges::count(std::span(state_.rows()).first(static_cast<std::size_t>(folds())), state,
                              &TrialRow::state);
  }

  // *Collective.* All that is not over. Whether it was asked to stop.
  bool train() {
    std::vector<Index> pending;
    for (const TrialRow& row : state_.rows()) {
      if (!row.is_over()) pending.push_back(row.number);
    }
    return state_.train(pending, {}, [this](Communicator& comm, const CommandLine& of_trial) {
      write_fold_predictions(comm, of_trial, state_.text());
    });
  }

  // *Collective.* Whether it was asked to stop. The length is that at which the folds were best, on average,
  // in epochs: on more records an epoch has more steps.
  bool refit() {
    double epochs = 0;
    for (const TrialRow& row : state_.rows()) epochs += row.score ? row.score->epoch : 0;
    epochs /= static_cast<double>(folds());
    if (std::ranges::none_of(state_.rows(), &TrialRow::is_measured)) {
      if (first())
        log_warning("no fold has a finite validation measure: there is no length to train on all records");
      return false;
    }
    state_.add_refit({{"train.epochs", fmt::format("{:.6g}", epochs)}});
    if (first())
      log_info("refit: on all records, for {:.6g} epochs, the mean of the epochs that the folds kept",
               epochs);
    return train();
  }

  // *Collective.* The exit code.
  int report(bool stopped) const {
    agree_on_first(world_, [&] {
      const std::span<const TrialRow> all(state_.rows());
      const auto of_folds = all.first(static_cast<std::size_t>(folds()));
      state_.report(folds_json(all, state_.measure(), state_.directory()),
                    folds_table(of_folds, state_.measure(), state_.directory()), stopped);
      if (!stopped && count(TrialState::kDone) == folds()) {
        log_info(
            "written: {} with predictions.csv (each record by the model that was not trained on it), "
            "sweep.json{}",
            state_.directory().root.string(), state_.directory().refit > 0 ? ", refit" : "");
      }
    });
    if (stopped) return state_.report_stop(count(TrialState::kDone), folds(), "folds");
    const auto failed = std::ranges::find(state_.rows(), TrialState::kFailed, &TrialRow::state);
    return failed == state_.rows().end() ? 0 : failed->exit_code;
  }

  Communicator& world_;
  SweepState state_;
};

}  // namespace

int cv_command(Communicator& world, const CommandLine& line) {
  return CrossValidation(world, line).run();
}

}  // namespace lockstep
