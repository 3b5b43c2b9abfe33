// Field numbers are those of tensorflow/core/util/event.proto, framework/summary.proto, and
// tensorboard/plugins/hparams/plugin_data.proto.
#include "lockstep/report/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

#include "histogram.h"
#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/atomic_file.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "protobuf_message.h"
#include "record.h"

namespace lockstep {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ProtobufMessage make_event(Index step) {
  return ProtobufMessage().real(1, seconds_since_1970()).number(2, static_cast<std::uint64_t>(step));
}

ProtobufMessage value_message(const std::string& text) {
  ProtobufMessage value;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    value.real(2, number);
  } else if (text == "true" || text == "false") {
    value.number(4, text == "true" ? 1 : 0);
  } else {
    value.text(3, text);
  }
  return value;
}

// The event that tells the HParams page of a run.
std::string hyperparameters_event(Index step, const std::vector<HyperParameter>& parameters) {
  ProtobufMessage start;
  for (const HyperParameter& parameter : parameters) {
    start.message(1, ProtobufMessage().text(1, parameter.key).message(2, value_message(parameter.value)));
  }
  start.real(5, seconds_since_1970());
  const ProtobufMessage data = ProtobufMessage().number(1, 0).message(3, start);
  const ProtobufMessage plugin = ProtobufMessage().text(1, "hparams").text(2, data.bytes());
  const ProtobufMessage value = ProtobufMessage()
                                    .text(1, "_hparams_/session_start_info")
                                    .message(9, ProtobufMessage().message(1, plugin));
  return make_event(step).message(5, ProtobufMessage().message(1, value)).bytes();
}

// A new file, which no other start of the run has: TensorBoard shows all that are in a directory as one run.
std::filesystem::path file_in(const std::filesystem::path& directory) {
  return directory / fmt::format("events.out.tfevents.{:010}.{}.{}",
                                 static_cast<std::int64_t>(seconds_since_1970()), host_name(), ::getpid());
}

}  // namespace

TensorBoardEvents::TensorBoardEvents(const std::filesystem::path& directory, Index first_step,
                                     const std::vector<HyperParameter>& parameters,
                                     std::vector<std::string> tensors)
    : path_(file_in(directory)), tensors_(std::move(tensors)) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw DataError(fmt::format("cannot create '{}': {}", path_.string(), std::strerror(errno)));
  }
  constexpr std::uint64_t kStart = 1;
  write(make_event(0).text(3, "brain.Event:2").bytes());
  // The start of a session at a step: events of later steps, from before a restart, are dropped.
  write(make_event(first_step).message(7, ProtobufMessage().number(1, kStart)).bytes());
  write(hyperparameters_event(first_step, parameters));
}

TensorBoardEvents::~TensorBoardEvents() {
  ::close(descriptor_);
}

void TensorBoardEvents::write(const std::string& event) {
  const std::string record = tf_record(event);
  if (append_whole(descriptor_, bytes_, record) == Appended::kWhole) {
    bytes_ += std::ssize(record);
    return;
  }
  const std::string reason = std::strerror(errno);
  if (!failed_)
    log_warning("cannot write '{}': {}; training goes on without these events", path_.string(), reason);
  failed_ = true;
}

void TensorBoardEvents::write_scalars(Index step, const Scalars& scalars) {
  ProtobufMessage summary;
  for (const auto& [tag, value] : scalars) {
    summary.message(1, ProtobufMessage().text(1, tag).real(2, static_cast<float>(value)));
  }
  write(make_event(step).message(5, summary).bytes());
}

void TensorBoardEvents::write_histograms(Index step, const UpdateStatistics& update) {
  ProtobufMessage summary;
  const auto add = [&](const std::string& tag, std::span<const double> counts) {
    summary.message(1, ProtobufMessage().text(1, tag).message(5, histogram_message(counts)));
  };
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Index first = static_cast<Index>(i) * kHistogramBins;
    const Range bins{first, first + kHistogramBins};
    add("gradients/" + tensors_[i], part(std::span(update.gradients), bins));
    add("weights/" + tensors_[i], part(std::span(update.weights), bins));
  }
  write(make_event(step).message(5, summary).bytes());
}

void TensorBoardEvents::on_train_metrics(const TrainMetrics& metrics) {
  Scalars scalars{{"loss/train", metrics.loss},
                  {"progress/epoch", metrics.progress.epochs},
                  {"progress/lr", metrics.lr},
                  {"progress/samples_per_second", metrics.samples_per_second},
                  {"time/data", metrics.time.data},
                  {"time/compute", metrics.time.compute},
                  {"time/communication", metrics.time.communication},
                  {"time/waiting", metrics.time.waiting}};
  if (metrics.time.idle > 0) scalars.emplace_back("time/idle", metrics.time.idle);
  if (metrics.accuracy) scalars.emplace_back("accuracy/train", *metrics.accuracy);
  if (metrics.update) {
    scalars.emplace_back("norm/gradient", metrics.update->gradient_norm);
    scalars.emplace_back("norm/weights", metrics.update->weight_norm);
  }
  write_scalars(metrics.progress.steps, scalars);
  if (metrics.update && metrics.update->with_histograms)
    write_histograms(metrics.progress.steps, *metrics.update);
}

void TensorBoardEvents::on_evaluation(const EvalMetrics& metrics) {
  const std::string set = to_string(metrics.split);
  Scalars scalars{{"loss/" + set, metrics.loss}};
  if (metrics.accuracy) scalars.emplace_back("accuracy/" + set, *metrics.accuracy);
  if (metrics.top_k_accuracy) {
    scalars.emplace_back(fmt::format("top_{}_accuracy/{}", metrics.top_k, set), *metrics.top_k_accuracy);
  }
  for (const MetricValue& other : metrics.others) {
    if (other.value) scalars.emplace_back(other.name + "/" + set, *other.value);
  }
  write_scalars(metrics.progress.steps, scalars);
}

void TensorBoardEvents::on_workers(const WorkersReport& report, const Progress& progress) {
  write_scalars(progress.steps,
                {{"staleness/mean", report.mean_staleness()},
                 {"staleness/95th_percentile", static_cast<double>(report.staleness_percentile(0.95))}});
}

}  // namespace lockstep
