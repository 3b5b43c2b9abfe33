#include "lockstep/report/live/run_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/report/history/metrics_history.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// The step of the last of some whole lines; 0 if it has none.
Index last_step(std::string_view lines) {
  if (lines.empty()) return 0;
  lines.remove_suffix(1);
  const std::size_t before = lines.rfind('\n');
  const Json json =
      Json::parse(before == std::string_view::npos ? lines : lines.substr(before + 1), nullptr, false);
  const auto step = json.is_object() ? json.find("step") : json.end();
  return step != json.end() && step->is_number_integer() ? step->get<Index>() : 0;
}

// Bytes of the file's whole lines, of its first `keep` bytes. A crash of the machine can leave zeros where
// the last lines belong.
Index whole_lines(const std::filesystem::path& path, Index keep) {
  if (keep == 0) return 0;
  const std::string text = std::filesystem::exists(path) ? read_file(path) : "";
  std::string_view lines = std::string_view(text).substr(0, static_cast<std::size_t>(keep));
  lines = lines.substr(0, lines.find('\0'));
  const std::size_t end = lines.rfind('\n');
  lines = lines.substr(0, end == std::string_view::npos ? 0 : end + 1);
  const Index whole = std::ssize(lines);
  if (whole < keep) {
    const std::string missing =
        whole == 0 ? "the lines" : fmt::format("the lines after step {}", with_commas(last_step(lines)));
    log_warning(
        "'{}' has {} of the {} bytes that it had when the checkpoint was made: {} are missing up to the "
        "checkpoint; those that follow are appended",
        path.string(), with_commas(whole), with_commas(keep), missing);
  }
  return whole;
}

// Lines that are written to a deleted file are lost with the last process that has it open.
bool is_deleted(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && status.st_nlink == 0;
}

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, Index keep,
                         std::function<void(const Json&)> on_line)
    : path_(path),
      on_line_(std::move(on_line)),
      bytes_(whole_lines(path, keep)),
      descriptor_(open_to_append(path)) {
  if (::ftruncate(descriptor_, bytes_) == 0) return;
  const std::string reason = std::strerror(errno);
  ::close(descriptor_);
  throw DataError("cannot cut '{}' to {} bytes: {}", path.string(), bytes_, reason);
}

MetricsFile::~MetricsFile() {
  ::close(descriptor_);
}

void MetricsFile::write(const Json& json) {
  if (on_line_) on_line_(json);
  const std::string line = json.dump();
  const bool deleted = is_deleted(descriptor_);
  const Appended appended = deleted ? Appended::kNothing : append_whole(descriptor_, bytes_, line + '\n');
  if (appended == Appended::kWhole) {
    bytes_ += std::ssize(line) + 1;
    return;
  }
  const std::string reason = deleted ? "it was deleted" : std::strerror(errno);
  if (!failed_) {
    log_warning("cannot write '{}': {}; training goes on without these lines{}", path_.string(), reason,
                appended == Appended::kNothing ? "" : ", and with what is left of one");
  }
  failed_ = true;
}

void MetricsFile::write(const char* kind, const Progress& progress, const Json& numbers) {
  Json json{{"kind", kind}};
  add_progress(json, progress);
  json.update(numbers);
  write(json);
}

void MetricsFile::on_train_metrics(const TrainMetrics& metrics) {
  Json json{{"loss", metrics.loss}};
  if (metrics.accuracy) json["accuracy"] = *metrics.accuracy;
  json["lr"] = metrics.lr;
  json["samples_per_second"] = metrics.samples_per_second;
  if (metrics.update) {
    json["gradient_norm"] = metrics.update->gradient_norm;
    json["weight_norm"] = metrics.update->weight_norm;
  }
  json["time"] = shares_json(metrics.time);
  write("train", metrics.progress, json);
}

void MetricsFile::on_evaluation(const EvalMetrics& metrics) {
  Json json = evaluation_json(metrics);
  if (!metrics.sample.empty()) json["sample"] = metrics.sample;
  write(json);
}

void MetricsFile::on_workers(const WorkersReport& report, const Progress& progress) {
  write("workers", progress, workers_json(report));
}

void MetricsFile::on_ranks(const RankTimes& times, const Progress& progress) {
  write("ranks", progress, ranks_json(times));
}

}  // namespace lockstep
