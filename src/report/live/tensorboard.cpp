// Field numbers are those of tensorflow/core/util/event.proto, framework/summary.proto, and
// tensorboard/plugins/hparams/plugin_data.proto.
#include "tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/environment.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/math/histogram_bins.h"
#include "lockstep/report/live/tensorboard.h"

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

std::string packed(const std::vector<double>& values) {
  ProtobufMessage message;
  for (const double value : values) message.packed_real(value);
  return message.bytes();
}

double lower_end(Index bin) {
  return bin > 0 ? histogram_limit(bin - 1) : 2 * histogram_limit(0);
}

constexpr std::array<std::uint32_t, 256> make_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value % 2 == 1 ? (value / 2) ^ kReversedPolynomial : value / 2;
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

// The checksum of data that itself has checksums in it is masked, so that it does not meet itself.
std::uint32_t masked(std::uint32_t checksum) {
  return ((checksum >> 15) | (checksum << 17)) + 0xA282EAD8U;
}

template <class Number>
std::string little_endian(Number value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes += static_cast<char>((value >> (8 * i)) & 0xFFU);
  return bytes;
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

ProtobufMessage histogram_message(std::span<const double> counts) {
  std::vector<double> limits;
  std::vector<double> shown;
  double least = 0;
  double greatest = 0;
  double number = 0;
  double sum = 0;
  double squares = 0;
  for (Index bin = 0; bin < std::ssize(counts); ++bin) {
    const double count = at(counts, bin);
    const bool first = number == 0;
    if (count == 0 && first) continue;
    if (first) {  // the bins begin where the numbers do
      least = lower_end(bin);
      limits.push_back(least);
      shown.push_back(0);
    }
    limits.push_back(histogram_limit(bin));
    shown.push_back(count);
    if (count == 0) continue;
    const double middle = (lower_end(bin) + histogram_limit(bin)) / 2;
    greatest = histogram_limit(bin);
    number += count;
    sum += count * middle;
    squares += count * middle * middle;
  }
  while (!shown.empty() && shown.back() == 0) {
    shown.pop_back();
    limits.pop_back();
  }
  return ProtobufMessage()
      .real(1, least)
      .real(2, greatest)
      .real(3, number)
      .real(4, sum)
      .real(5, squares)
      .text(6, packed(limits))
      .text(7, packed(shown));
}

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFF;
  for (const char byte : bytes) {
    value = kTable[(value ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (value >> 8);
  }
  return ~value;
}

std::string tf_record(std::string_view content) {
  const std::string length = little_endian(std::uint64_t{content.size()});
  std::string record = length + little_endian(masked(crc32c(length)));
  record += content;
  return record + little_endian(masked(crc32c(content)));
}

}  // namespace lockstep
