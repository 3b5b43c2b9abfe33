// The Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
// Ranks are its processes, threads its threads; work is events "X" with a duration, which nest; buckets are
// events "b" and "e", which may overlap. Times are microseconds, with nanoseconds as decimals.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/report/trace/trace.h"

namespace lockstep {
namespace {

// A gzip file in memory, without a time in its head.
class Gzip : NoCopy {
 public:
  Gzip() {
    constexpr int kWithGzipHead = 16;
    error_if<DataError>(::deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kWithGzipHead,
                                       8, Z_DEFAULT_STRATEGY) != Z_OK,
                        "zlib does not start");
  }
  ~Gzip() { ::deflateEnd(&stream_); }

  void write(std::string text, int flush = Z_NO_FLUSH) {
    stream_.next_in = reinterpret_cast<Bytef*>(text.data());
    stream_.avail_in = static_cast<uInt>(text.size());
    int state = Z_OK;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      state = ::deflate(&stream_, flush);
      bytes_.append(buffer_.data(), buffer_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0 || (flush == Z_FINISH && state == Z_OK));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  z_stream stream_{};
  std::string bytes_;
  std::string buffer_ = std::string(1 << 16, '\0');
};

constexpr std::size_t kMaxTraceBytes = 20'000'000;

std::string json_text(std::string_view text) {
  return nlohmann::json(excerpt(text, 200)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string name_of(const RunTrace& trace, const NestedSpan& span) {
  if (span.waits_for >= 0) return fmt::format("wait for rank {}", span.waits_for);
  const std::string kind(at(kTraceNames, static_cast<Index>(span.kind)));
  if (span.kind == TraceKind::kStep) return fmt::format("step {}", span.detail + 1);
  const bool layer = span.kind == TraceKind::kForward || span.kind == TraceKind::kBackward;
  if (layer && span.detail >= 0 && span.detail < std::ssize(trace.ops))
    return kind + " " + at(trace.ops, span.detail);
  const bool replica = span.kind == TraceKind::kPrepare || span.kind == TraceKind::kLoss;
  return replica ? fmt::format("{} of replica {}", kind, span.detail) : kind;
}

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

class TraceJson {
 public:
  TraceJson(const RunTrace& trace, std::size_t steps) : trace_(trace), max_steps_(steps) {
    for (const RankTrace& rank : trace.ranks) {
      for (const TracedStep& step : rank.steps) {
        for (const auto& [thread, event] : step.events) zero_ = std::min(zero_, event.begin);
      }
      for (const TraceEvent& event : rank.between) zero_ = std::min(zero_, event.begin);
    }
  }

  std::string write() {
    gzip_.write(
        fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"program\":\"lockstep\","
                    "\"clock_error_us\":\"{:.3f}\"}},\"traceEvents\":[\n",
                    1e-3 * static_cast<double>(trace_.clock_error)));
    for (std::size_t rank = 0; rank < trace_.ranks.size(); ++rank) write_rank(rank);
    gzip_.write("\n]}\n", Z_FINISH);
    return gzip_.bytes();
  }

 private:
  void write_event(const std::string& text) {
    gzip_.write((first_ ? "" : ",\n") + text);
    first_ = false;
  }

  void write_span(int rank, const NestedSpan& span) {
    const char* const category =
        span.waits_for >= 0 ? "waiting" : at(kTraceNames, static_cast<Index>(span.kind)).data();
    write_event(fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{}}})",
                            json_text(name_of(trace_, span)), category, microseconds(span.begin - zero_),
                            microseconds(span.end - span.begin), rank, span.thread));
  }

  void write_bucket(int rank, Index step, const TraceEvent& event) {
    for (const auto& [phase, moment] : {std::pair{"b", event.begin}, std::pair{"e", event.end}}) {
      write_event(fmt::format(
          R"({{"name":"bucket {}","cat":"bucket","ph":"{}","id":"{}.{}.{}","ts":{},"pid":{},"tid":0}})",
          event.detail, phase, rank, step, event.detail, microseconds(moment - zero_), rank));
    }
  }

  void write_names(const RankTrace& rank) {
    write_event(fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":{}}}}})",
                            rank.rank, json_text(fmt::format("rank {} ({})", rank.rank, rank.host))));
    write_event(fmt::format(
        R"({{"name":"process_sort_index","ph":"M","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})",
        rank.rank));
    for (std::size_t thread = 0; thread < rank.threads.size(); ++thread) {
      write_event(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                              rank.rank, thread, json_text(rank.threads[thread])));
    }
  }

  void write_rank(std::size_t number) {
    const RankTrace& rank = trace_.ranks[number];
    write_names(rank);
    for (std::size_t i = 0; i < std::min(rank.steps.size(), max_steps_); ++i) {
      const StepSpans step = spans_of(trace_, number, i);
      for (const NestedSpan& span : step.spans) write_span(rank.rank, span);
      for (const TraceEvent& bucket : step.buckets) write_bucket(rank.rank, rank.steps[i].step, bucket);
    }
    for (const TraceEvent& event : rank.between) {
      write_span(rank.rank, {.kind = event.kind, .begin = event.begin, .end = event.end});
    }
  }

  const RunTrace& trace_;
  std::size_t max_steps_;
  std::int64_t zero_ = std::numeric_limits<std::int64_t>::max();
  bool first_ = true;
  Gzip gzip_;
};

}  // namespace

TraceFile trace_json_gz(const RunTrace& trace) {
  std::size_t all = 0;
  for (const RankTrace& rank : trace.ranks) all = std::max(all, rank.steps.size());
  for (std::size_t steps = all;; steps /= 2) {
    TraceFile file{.bytes = TraceJson(trace, steps).write(), .left_out = all - steps};
    if (file.bytes.size() <= kMaxTraceBytes || steps == 0) return file;
  }
}

std::string describe_trace(const RunTrace& trace) {
  std::size_t steps = 0;
  std::size_t events = 0;
  for (const RankTrace& rank : trace.ranks) {
    steps = std::max(steps, rank.steps.size());
    for (const TracedStep& step : rank.steps) events += step.events.size();
  }
  const std::string clocks = trace.ranks.size() < 2
                                 ? ""
                                 : fmt::format("; clocks of the ranks agree within {:.1f} us",
                                               1e-3 * static_cast<double>(trace.clock_error));
  return fmt::format("{}, {}, {}{}", plural(std::ssize(trace.ranks), "rank"),
                     plural(static_cast<Index>(steps), "step"), plural(static_cast<Index>(events), "event"),
                     clocks);
}

}  // namespace lockstep
