// Field numbers are those of tensorflow/core/util/event.proto, framework/summary.proto, and
// tensorboard/plugins/hparams/plugin_data.proto.
#include "lockstep/report/live/run_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"
#include "lockstep/math/statistics.h"

namespace lockstep {
namespace {

// Little endian.
std::string fixed(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i, value /= 256) bytes += static_cast<char>(value % 256);
  return bytes;
}

// Messages in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), as far as event
// files need it: a message is its fields, one behind the other in any order.

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 128; value /= 128) bytes += static_cast<char>(value % 128 + 128);
  return bytes + static_cast<char>(value);
}

std::string number_field(std::uint64_t field, std::uint64_t value) {
  return varint(field * 8) + varint(value);
}

std::string real_field(std::uint64_t field, double value) {
  return varint(field * 8 + 1) + fixed(std::bit_cast<std::uint64_t>(value), 8);
}

// A text, or a message inside this one.
std::string text_field(std::uint64_t field, const std::string& value) {
  return varint(field * 8 + 2) + varint(value.size()) + value;
}

std::string packed_field(std::uint64_t field, const std::vector<double>& values) {
  std::string bytes;
  for (const double value : values) bytes += fixed(std::bit_cast<std::uint64_t>(value), 8);
  return text_field(field, bytes);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_of(Index step, const std::string& content) {
  return real_field(1, seconds_since_1970()) + number_field(2, static_cast<std::uint64_t>(step)) + content;
}

std::string value_message(const std::string& text) {
  if (const std::optional<double> number = number_in<double>(text)) return real_field(2, *number);
  if (text == "true" || text == "false") return number_field(4, text == "true" ? 1 : 0);
  return text_field(3, text);
}

// The summary that tells the HParams page of a run.
std::string hyperparameters_summary(const std::vector<HyperParameter>& parameters) {
  std::string start = real_field(5, seconds_since_1970());
  for (const HyperParameter& parameter : parameters) {
    start += text_field(1, text_field(1, parameter.key) + text_field(2, value_message(parameter.value)));
  }
  const std::string data = number_field(1, 0) + text_field(3, start);
  const std::string plugin = text_field(1, "hparams") + text_field(2, data);
  return text_field(1, text_field(1, "_hparams_/session_start_info") + text_field(9, text_field(1, plugin)));
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

// CRC-32C (Castagnoli), as RFC 3720 has it; that of data that itself has checksums in it is masked, so that
// it does not meet itself.
std::string masked_checksum(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFF;
  for (const char byte : bytes) {
    value = kTable[(value ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (value >> 8);
  }
  value = ~value;
  return fixed(((value >> 15) | (value << 17)) + 0xA282EAD8U, 4);
}

// A record of a TFRecord file (tensorflow.org/tutorials/load_data/tfrecord).
std::string tf_record(const std::string& content) {
  const std::string length = fixed(content.size(), 8);
  return length + masked_checksum(length) + content + masked_checksum(content);
}

}  // namespace

TensorBoardEvents::TensorBoardEvents(const std::filesystem::path& directory, Index first_step,
                                     const std::vector<HyperParameter>& parameters,
                                     std::vector<std::string> tensors)
    : tensors_(std::move(tensors)) {
  // A new file, which no other start of the run has: TensorBoard shows all of a directory as one run.
  path_ = directory / fmt::format("events.out.tfevents.{:010}.{}.{}",
                                  static_cast<std::int64_t>(seconds_since_1970()), host_name(), ::getpid());
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  descriptor_ = open_to_append(path_);
  constexpr std::uint64_t kStart = 1;
  write(event_of(0, text_field(3, "brain.Event:2")));
  // The start of a session at a step: events of later steps, from before a restart, are dropped.
  write(event_of(first_step, text_field(7, number_field(1, kStart))));
  write(event_of(first_step, text_field(5, hyperparameters_summary(parameters))));
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
  if (!std::exchange(failed_, true)) {
    log_warning("cannot write '{}': {}; training goes on without these events", path_.string(),
                std::strerror(errno));
  }
}

void TensorBoardEvents::write_scalars(Index step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    constexpr std::uint64_t kFloat = 5;  // wire type
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    summary += text_field(1, text_field(1, tag) + varint(2 * 8 + kFloat) + fixed(bits, 4));
  }
  write(event_of(step, text_field(5, summary)));
}

void TensorBoardEvents::write_histograms(Index step, const UpdateStatistics& update) {
  std::string summary;
  const auto add = [&](const std::string& tag, std::span<const double> counts) {
    summary += text_field(1, text_field(1, tag) + text_field(5, histogram_message(counts)));
  };
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Index first = static_cast<Index>(i) * kHistogramBins;
    const Range bins{first, first + kHistogramBins};
    add("gradients/" + tensors_[i], part(std::span(update.gradients), bins));
    add("weights/" + tensors_[i], part(std::span(update.weights), bins));
  }
  write(event_of(step, text_field(5, summary)));
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

std::string histogram_message(std::span<const double> counts) {
  // The bins begin where the numbers do, and end with them.
  Index begin = 0;
  Index end = std::ssize(counts);
  while (begin < end && at(counts, begin) == 0) ++begin;
  while (begin < end && at(counts, end - 1) == 0) --end;
  const bool any = begin < end;
  const double least = any ? lower_end(begin) : 0;
  std::vector<double> limits(any ? 1 : 0, least);
  std::vector<double> shown(limits.size());
  double number = 0;
  double sum = 0;
  double squares = 0;
  for (Index bin = begin; bin < end; ++bin) {
    const double count = at(counts, bin);
    const double middle = (lower_end(bin) + histogram_limit(bin)) / 2;
    limits.push_back(histogram_limit(bin));
    shown.push_back(count);
    number += count;
    sum += count * middle;
    squares += count * middle * middle;
  }
  return real_field(1, least) + real_field(2, any ? limits.back() : 0) + real_field(3, number) +
         real_field(4, sum) + real_field(5, squares) + packed_field(6, limits) + packed_field(7, shown);
}

}  // namespace lockstep
