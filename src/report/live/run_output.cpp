#include "lockstep/report/live/run_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/report/tables/tables.h"

namespace lockstep {
namespace {

// Mishaps that did not end the run.
std::string describe_mishaps(const TrainingResult& result) {
  std::string text;
  if (result.skipped_steps > 0) text += fmt::format(" ({} left out)", with_commas(result.skipped_steps));
  if (result.single_value_steps > 0) {
    text += fmt::format(" ({} with a single value in batch norm)", with_commas(result.single_value_steps));
  }
  if (result.repairs > 0) text += fmt::format(" ({} with replicas made equal)", with_commas(result.repairs));
  return text;
}

// "loss 0.29976, accuracy 0.9".
std::string describe_measures(const EvalMetrics& metrics) {
  std::string text = describe_loss(metrics);
  if (metrics.accuracy) text += fmt::format(", accuracy {:.5g}", *metrics.accuracy);
  for (const MetricValue& other : metrics.others) text += ", " + to_string(other, metrics.positive());
  return text;
}

// The weights of the model file.
nlohmann::ordered_json kept_json(const TrainingResult& result) {
  nlohmann::ordered_json kept{{"weights", "last"}, {"step", result.progress.steps}};
  if (result.best) {
    kept = {{"weights", "best"},
            {"step", result.best->progress.steps},
            {"epoch", result.best->progress.epochs},
            {"measure", result.best->measure},
            {"value", result.best->value}};
  }
  if (!result.average.empty()) kept["average"] = result.average;
  return kept;
}

nlohmann::ordered_json describe_threshold(const ChosenThreshold& threshold) {
  nlohmann::ordered_json json{{"probability", threshold.threshold}};
  if (threshold.measure.empty()) return json;
  json["measure"] = threshold.measure;
  json["value"] = threshold.value;
  return json;
}

// `chose_weights`: whether the same records chose the weights.
nlohmann::ordered_json describe_calibration(const Calibration& calibration, bool chose_weights) {
  return {{"chose_weights", chose_weights},     {"temperature", calibration.temperature},
          {"found", calibration.found},         {"log_loss_before", calibration.loss_before},
          {"log_loss", calibration.loss_after}, {"ece_before", calibration.ece_before},
          {"ece", calibration.ece_after}};
}

// A class whose share differs by more than this, and by more than chance explains, is worth a word.
constexpr double kMuch = 0.1;
constexpr double kDeviations = 5;

double samples_of(const ClassCounts& counts) {
  double samples = 0;
  for (const auto& [label, count] : counts) samples += count;
  return samples;
}

std::string describe_staleness(const WorkersReport& report) {
  Index dropped = 0;
  Index computed = 0;
  for (const WorkerRecord& worker : report.workers) {
    dropped += worker.dropped;
    computed += worker.computed;
  }
  if (dropped > 0) {
    return fmt::format("dropped: {} of {}", with_commas(dropped), plural(computed, "gradient"));
  }
  return fmt::format("staleness: mean {:.2f}, 95th percentile {}", report.mean_staleness(),
                     report.staleness_percentile(0.95));
}

}  // namespace

RunOutput::RunOutput(RunOutputSettings settings, OutputStart start)
    : record_(settings.record),
      losses_(settings.losses),
      average_(std::move(settings.average)),
      metrics_(settings.directory.metrics(), start.metrics_bytes,
               [this](const nlohmann::ordered_json& json) { record_line(json); }),
      line_(settings.progress, settings.whole, settings.shown, std::move(settings.measure)),
      incomplete_(std::move(start.incomplete)),
      progress_(start.progress) {
  if (settings.hyperparameters) {
    events_.emplace(settings.directory.tensorboard(), start.progress.steps, *settings.hyperparameters,
                    settings.tensors);
  }
  parts_ = {&metrics_, &line_};
  if (events_) parts_.insert(parts_.begin() + 1, &*events_);
  if (record_ == nullptr) return;
  // The record begins with the lines of earlier starts.
  record_->change([&](RunRecord& record) {
    read_metrics_lines(settings.directory.metrics(),
                       [&](const MetricsLine& line) { add_line(record, line, average_); });
    line_.go_on(record);
  });
}

void RunOutput::record_line(const nlohmann::ordered_json& json) {
  if (record_ == nullptr) return;
  const MetricsLine line = metrics_line(json);
  record_->change([&](RunRecord& record) { add_line(record, line, average_); });
}

void RunOutput::on_audit(Index epoch, Index samples, Index times) {
  log_info("audit: epoch {} used {}, each {}", epoch, plural(samples, "sample"), plural(times, "time"));
  if (record_ == nullptr) return;
  record_->change([&](RunRecord& record) {
    record.data["audit"] = {{"epoch", epoch}, {"samples", samples}, {"times", times}};
  });
}

std::vector<std::string> RunOutput::incomplete_files() const {
  const RunDirectory names;
  std::vector<std::string> files = incomplete_;
  const auto add = [&](const std::string& file) {
    if (std::ranges::find(files, file) == files.end()) files.push_back(file);
  };
  if (log_file_lost_lines()) add(names.log().string());
  if (metrics_.failed()) add(names.metrics().string());
  if (events_ && events_->failed()) add(names.tensorboard().string());
  return files;
}

void report_calibration(const TrainingResult& result) {
  if (!result.calibration) return;
  const Calibration& calibration = *result.calibration;
  if (!calibration.found) {
    log_warning(
        "not calibrated: no temperature between 0.01 and 100 has the least log loss on the validation set "
        "(it is too small, of one class, or all right or all by chance); the outputs stay as they are");
    return;
  }
  log_info(
      "calibrated: temperature {:.5g}, fitted to the validation set, whose log loss was {:.5g} and is "
      "{:.5g}, and whose expected calibration error was {:.5g} and is {:.5g}{}",
      calibration.temperature, calibration.loss_before, calibration.loss_after, calibration.ece_before,
      calibration.ece_after,
      result.best ? "; these records chose the weights, too, and others may do worse" : "");
}

void report_kept(const TrainingResult& result, const std::string& positive) {
  if (!result.early.empty()) {
    log_info("stopped early after step {}: {}", with_commas(result.progress.steps), result.early);
  }
  const std::string weights = result.average.empty() ? "weights" : "weights' " + result.average;
  if (result.best) {
    const std::string last = result.best->progress.steps == result.progress.steps ? "; they are the last ones"
                             : result.last ? "; last: " + describe_measures(*result.last)
                                           : "";
    log_info("kept: the {} of step {} (epoch {:.2f}), with the best {} of the validation set, {:.5g}{}",
             weights, with_commas(result.best->progress.steps), result.best->progress.epochs,
             name_with_class(result.best->measure, positive), result.best->value, last);
  } else if (!result.average.empty()) {
    log_info("kept: the {} of the last step", weights);
  }
  if (result.evaluations.empty()) {
    log_warning(
        "nobody has seen how the model does on other data than those it was trained on: hold some back with "
        "data.validation = \"share(0.1)\", and the best weights are kept");
  }
}

void report_threshold(const std::optional<ChosenThreshold>& threshold, const std::string& positive) {
  if (!threshold) return;
  const std::string best = threshold->measure.empty()
                               ? ""
                               : fmt::format(", where the {} of the validation set is largest, {:.5g}",
                                             name_with_class(threshold->measure, positive), threshold->value);
  log_info("threshold: the model says yes{} from a probability of {:.5g} on{}",
           positive.empty() ? "" : fmt::format(" ({})", in_quotes(positive)), threshold->threshold, best);
}

nlohmann::ordered_json summary_json(const RunEnd& end) {
  const TrainingResult& result = end.result;
  nlohmann::ordered_json json{{"steps", result.progress.steps},
                              {"samples_seen", result.progress.samples},
                              {"epochs", result.progress.epochs},
                              {"seconds", result.seconds},
                              {"samples_per_second", result.samples_per_second},
                              {"lr", result.lr},
                              {"config", end.config},
                              {"hosts", end.hosts},
                              {"time", shares_json(result.time)}};
  if (result.ranks.ranks.size() > 1) json["ranks"] = ranks_json(result.ranks);
  if (!end.algorithm.empty()) json["algorithm"] = end.algorithm;
  if (!result.early.empty()) json["early_stopping"] = result.early;
  json["kept"] = kept_json(result);
  if (end.threshold) json["threshold"] = describe_threshold(*end.threshold);
  if (result.calibration)
    json["calibration"] = describe_calibration(*result.calibration, result.best.has_value());
  if (result.skipped_steps > 0) json["skipped_steps"] = result.skipped_steps;
  if (result.single_value_steps > 0) json["single_value_steps"] = result.single_value_steps;
  if (result.repairs > 0) json["desync_repairs"] = result.repairs;
  if (result.evaluation() != nullptr) json["evaluation"] = json_with_tables(*result.evaluation());
  if (result.last) json["last_evaluation"] = evaluation_json(*result.last);
  if (result.workers) json["asynchrony"] = workers_json(*result.workers);
  if (!end.lost.empty()) json["lost"] = end.lost;
  return json;
}

void report_result(const TrainingResult& result, Index tokens) {
  std::string quality;
  if (const EvalMetrics* kept = result.evaluation()) {
    const std::string at = kept->threshold ? kept->threshold->describe(kept->positive()) + "; at 0.5: " : "";
    quality = fmt::format("{} {}{}; ", to_string(kept->split), at, describe_measures(*kept));
  }
  const TimeShares& time = result.time;
  const std::string hidden = time.hidden ? fmt::format(" (hidden: {:.0f} % of it)", 100 * *time.hidden) : "";
  const std::string idle =
      time.idle > 0 ? fmt::format(", idle for other stages {:.1f} %", 100 * time.idle) : "";
  log_info(
      "done: {}{}{}, {} in {} ({}); time: data {:.1f} %, compute {:.1f} %, "
      "communication {:.1f} %{}, waiting {:.1f} %{}",
      quality, plural(result.progress.steps, "step"), describe_mishaps(result),
      plural(result.progress.samples, "sample"), human_seconds(result.seconds),
      sample_rate(result.samples_per_second, tokens), 100 * time.data, 100 * time.compute,
      100 * time.communication, hidden, 100 * time.waiting, idle);
  for (const std::string& line : describe_slow_ranks(result.ranks)) log_info("{}", line);
  if (!result.workers) return;
  for (const std::string& line : worker_lines(*result.workers, result.progress.samples)) log_info("{}", line);
}

std::vector<std::string> written_files(const RunDirectory& directory) {
  std::vector<std::string> written;
  for (const std::filesystem::path& file :
       {directory.config(), directory.record(), directory.plan(), directory.ranks(), directory.log(),
        directory.metrics(), directory.summary(), directory.evaluation(), directory.report(),
        directory.tensorboard(), directory.trace(), directory.model(), directory.schema(),
        directory.rejects(), directory.checkpoints()}) {
    if (is_there(file)) written.push_back(file.filename().string());
  }
  return written;
}

std::string few_cores_warning(std::span<const Index> cores, Index threads) {
  const auto fewest = std::ranges::min_element(cores);
  if (*fewest >= threads) return "";
  return fmt::format(
      "rank {} runs {} on {}; use fewer threads or ranks, or bind more cores to each rank: "
      "mpirun -np {} --map-by slot:PE={} --bind-to core (Open MPI), mpiexec -n {} -bind-to core:{} (MPICH), "
      "or srun --cpus-per-task={}",
      fewest - cores.begin(), plural(threads, "thread"), plural(*fewest, "core"), cores.size(), threads,
      cores.size(), threads, threads);
}

std::string describe_uneven_shards(std::span<const ClassCounts> shards) {
  ClassCounts whole;
  for (const ClassCounts& shard : shards) {
    for (const auto& [label, count] : shard) whole[label] += count;
  }
  const double samples = samples_of(whole);
  for (std::size_t replica = 0; replica < shards.size(); ++replica) {
    const double size = samples_of(shards[replica]);
    if (size == 0) continue;
    for (const auto& [label, count] : whole) {
      const auto found = shards[replica].find(label);
      const double share = found == shards[replica].end() ? 0 : found->second / size;
      const double expected = count / samples;
      const double chance = kDeviations * std::sqrt(expected * (1 - expected) / size);
      if (std::abs(share - expected) <= std::max(kMuch, chance)) continue;
      return fmt::format(
          "WARNING: the shards are not alike: class {} makes {:.1f} % of the shard of replica {}, but {:.1f} "
          "% of all samples. Training on such shards is biased: choose data.shard_order = shuffled with "
          "data.memory = load, or data.reshuffle = global, or shuffle the file\n",
          label, 100 * share, replica, 100 * expected);
    }
  }
  return "";
}

std::vector<std::string> worker_lines(const WorkersReport& report, Index samples) {
  std::vector<std::string> lines{describe_staleness(report)};
  const double fair = static_cast<double>(samples) / static_cast<double>(report.workers.size());
  for (std::size_t rank = 0; rank < report.workers.size(); ++rank) {
    const WorkerRecord& worker = report.workers[rank];
    std::string dropped;
    if (worker.dropped > 0) {
      dropped = fmt::format(", {} dropped with {}", with_commas(worker.dropped),
                            plural(worker.dropped_samples, "sample"));
    }
    lines.push_back(fmt::format("worker {}: {} with {}{}: {:.2f} times an even share", rank,
                                plural(worker.steps, "gradient"), plural(worker.samples, "sample"), dropped,
                                static_cast<double>(worker.samples) / fair));
  }
  return lines;
}

}  // namespace lockstep
