#include "lockstep/report/metrics_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json shares_json(const TimeShares& shares) {
  Json json{{"data", shares.data},
            {"compute", shares.compute},
            {"forward", shares.forward},
            {"optimizer", shares.optimizer},
            {"communication", shares.communication},
            {"waiting", shares.waiting}};
  if (shares.hidden) json["hidden"] = *shares.hidden;
  return json;
}

void add_progress(Json& json, const Progress& progress) {
  json["step"] = progress.steps;
  json["epoch"] = progress.epochs;
  json["samples_seen"] = progress.samples;
}

Json workers_json(const WorkersReport& report) {
  Json workers = Json::array();
  for (const WorkerRecord& worker : report.workers) {
    workers.push_back({{"computed", worker.computed},
                       {"steps", worker.steps},
                       {"samples", worker.samples},
                       {"dropped", worker.dropped},
                       {"dropped_samples", worker.dropped_samples},
                       {"most_ahead", worker.most_ahead},
                       {"staleness", worker.staleness}});
  }
  return {{"mean_staleness", report.mean_staleness()},
          {"staleness_95", report.staleness_percentile(0.95)},
          {"workers", workers}};
}

Json confusion_json(const EvalMetrics& metrics) {
  Json rows = Json::array();
  const auto classes = static_cast<std::size_t>(metrics.classes);
  for (std::size_t row = 0; row < classes; ++row) {
    const auto first = metrics.confusion.begin() + static_cast<std::ptrdiff_t>(row * classes);
    rows.push_back(std::vector<Index>(first, first + metrics.classes));
  }
  return rows;
}

Json evaluation_json(const EvalMetrics& metrics) {
  Json json{{"kind", "evaluation"}, {"split", to_string(metrics.split)}};
  add_progress(json, metrics.progress);
  json["samples"] = metrics.samples;
  json["loss"] = metrics.loss;
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  if (metrics.top_k_accuracy) {
    json["top_k"] = metrics.top_k;
    json["top_k_accuracy"] = *metrics.top_k_accuracy;
  }
  for (const MetricValue& other : metrics.others) {
    json[other.name] = other.value ? Json(*other.value) : Json(nullptr);
  }
  if (!metrics.confusion.empty()) json["confusion"] = confusion_json(metrics);
  json["seconds"] = metrics.seconds;
  return json;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, Index keep)
    : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) {
    throw DataError(fmt::format("cannot create '{}': {}", path.string(), std::strerror(errno)));
  }
  bytes_ = std::min(keep, static_cast<Index>(file_bytes(path)));
  if (::ftruncate(descriptor_, bytes_) == 0) return;
  const std::string reason = std::strerror(errno);
  ::close(descriptor_);
  throw DataError(fmt::format("cannot cut '{}' to {} bytes: {}", path.string(), bytes_, reason));
}

MetricsFile::~MetricsFile() {
  ::close(descriptor_);
}

void MetricsFile::write(const std::string& line) {
  const Appended appended = append_whole(descriptor_, bytes_, line + '\n');
  if (appended == Appended::kWhole) {
    bytes_ += std::ssize(line) + 1;
    return;
  }
  if (!failed_) {
    spdlog::warn("cannot write '{}': {}; training goes on without these lines{}", path_.string(),
                 std::strerror(errno),
                 appended == Appended::kNothing ? "" : ", and with what is left of one");
  }
  failed_ = true;
}

void MetricsFile::on_train_metrics(const TrainMetrics& metrics) {
  Json json{{"kind", "train"}};
  add_progress(json, metrics.progress);
  json["loss"] = metrics.loss;
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  json["lr"] = metrics.lr;
  json["samples_per_second"] = metrics.samples_per_second;
  json["time"] = shares_json(metrics.time);
  write(json.dump());
}

void MetricsFile::on_evaluation(const EvalMetrics& metrics) {
  write(to_json(metrics));
}

void MetricsFile::on_workers(const WorkersReport& report, const Progress& progress) {
  Json json{{"kind", "workers"}};
  add_progress(json, progress);
  json.update(workers_json(report));
  write(json.dump());
}

std::string to_json(const WorkersReport& report) {
  return workers_json(report).dump();
}

std::string to_json(const EvalMetrics& metrics) {
  return evaluation_json(metrics).dump();
}

std::string to_json(const TimeShares& shares) {
  return shares_json(shares).dump();
}

}  // namespace lockstep
