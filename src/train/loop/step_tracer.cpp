#include "lockstep/train/loop/step_tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iterator>
#include <sstream>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxPendingEvents = std::size_t{1} << 19U;  // 16 MB
constexpr Index kMaxFileBytes = 64'000'000;  // then no further slow steps; an event takes some 40 bytes
constexpr Index kMaxOutside = 5000;
constexpr Index kMaxSteps = 1000;

}  // namespace

StepTracer::StepTracer(const std::filesystem::path& file, TraceHead head)
    : head_(std::move(head)),
      path_(file),
      descriptor_(open_to_append(file, O_TRUNC)),
      start_(trace_clock()),
      lost_before_(lost_trace_events()) {
  const TraceRequest& request = head_.request;
  append(nlohmann::ordered_json{{"rank", head_.rank},
                                {"ranks", head_.ranks},
                                {"stage", head_.stage},
                                {"host", head_.host},
                                {"start", start_},
                                {"steps", {head_.steps.begin, head_.steps.end}},
                                {"request", {request.first, request.last, request.slowest}},
                                {"ops", head_.ops}}
             .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  set_trace_records(false);  // this thread is thread 0
}

StepTracer::~StepTracer() {
  set_trace_records(false);
  ::close(descriptor_);
  const Index lost = lost_trace_events() - lost_before_;
  if (lost == 0 && dropped_steps_ == 0) return;
  log_warning("'{}' is incomplete: {} events were lost, and {} steps were dropped for lack of memory",
              path_.string(), with_commas(lost), with_commas(dropped_steps_));
}

void StepTracer::begin_step(Index step) {
  const bool wanted = wants(step) && !failed_;
  set_trace_records(wanted);
  step_ = wanted ? step : -1;
  step_begin_ = trace_clock();
}

void StepTracer::end_step(double seconds) {
  own_seconds_.push_back(seconds);
  if (step_ < 0) return;
  trace_event(TraceKind::kStep, step_begin_, trace_clock(), step_);
  Pending step{.step = step_, .position = own_seconds_.size() - 1, .begin = step_begin_};
  if (!spare_.empty()) {
    step.events = std::move(spare_.back());
    spare_.pop_back();
  }
  drain_trace(step.events);
  pending_events_ += step.events.size();
  pending_.push_back(std::move(step));
  for (std::size_t i = 0; pending_events_ > kMaxPendingEvents && i + 1 < pending_.size(); ++i) {
    pending_events_ -= pending_[i].events.size();
    pending_[i].events = {};
  }
}

void StepTracer::pause() {
  set_trace_records(false);
  std::vector<ThreadEvent> late;  // events of threads that were still at work
  drain_trace(late);
}

void StepTracer::choose(std::span<const double> seconds) {
  if (!pending_.empty()) note_threads();
  for (Pending& step : pending_) {
    const double took = seconds.empty() ? own_seconds_[step.position] : seconds[step.position];
    const bool ends = is_first(step.step) || is_last(step.step);
    if (step.events.empty()) {
      ++dropped_steps_;
    } else if (ends) {
      keep(step, took, is_first(step.step) ? "first" : "last");
    } else if (bytes_ < kMaxFileBytes && enters_slowest(took)) {
      keep(step, took, "slowest");
    }
    step.events.clear();
    spare_.push_back(std::move(step.events));
  }
  pending_.clear();
  pending_events_ = 0;
  own_seconds_.clear();
}

bool StepTracer::enters_slowest(double seconds) {
  if (std::ssize(slowest_) == head_.request.slowest) {
    if (slowest_.empty() || seconds <= slowest_.front()) return false;
    std::ranges::pop_heap(slowest_, std::greater());
    slowest_.pop_back();
  }
  slowest_.push_back(seconds);
  std::ranges::push_heap(slowest_, std::greater());
  return true;
}

// Times are nanoseconds since the start; an event is thread, kind, begin, duration, detail.
void StepTracer::keep(const Pending& step, double seconds, const char* why) {
  std::string line =
      fmt::format(R"({{"step":{},"seconds":{:.9f},"why":"{}","events":[)", step.step, seconds, why);
  const char* comma = "";
  for (const auto& [thread, event] : step.events) {
    fmt::format_to(std::back_inserter(line), "{}[{},{},{},{},{}]", comma, thread,
                   static_cast<int>(event.kind), event.begin - start_, event.end - event.begin, event.detail);
    comma = ",";
  }
  append(line + "]}");
}

void StepTracer::note_threads() {
  const std::vector<std::string> names = trace_threads();
  if (names.size() == threads_) return;
  threads_ = names.size();
  append(nlohmann::ordered_json{{"threads", names}}.dump());
}

void StepTracer::note_clock(const ClockReading& reading) {
  if (reading.own == last_clock_) return;
  last_clock_ = reading.own;
  append(fmt::format(R"({{"clock":[{},{},{}]}})", reading.own - start_, reading.offset, reading.error));
}

void StepTracer::add(TraceKind kind, std::int64_t begin, std::int64_t end) {
  if (++outside_ > kMaxOutside) return;
  append(
      fmt::format(R"({{"outside":[0,{},{},{},-1]}})", static_cast<int>(kind), begin - start_, end - begin));
}

// On a full disk the rest of the timeline is lost.
void StepTracer::append(const std::string& line) {
  if (failed_) return;
  if (append_whole(descriptor_, bytes_, line + '\n') == Appended::kWhole) {
    bytes_ += std::ssize(line) + 1;
    return;
  }
  failed_ = true;
  log_warning("cannot write '{}': {}; training goes on, and the timeline ends here", path_.string(),
              std::strerror(errno));
}

TraceRequest parse_trace(std::string_view key, std::string_view text) {
  TraceRequest request;
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(
        "{} = {}: {}; write it as 'first 20, last 20, slowest 20 steps', or some of these parts", key,
        in_quotes(text), what);
  };
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    std::string name;
    std::string number;
    std::string unit;
    std::string rest;
    words >> name >> number >> unit >> rest;
    const bool known = name == "first" || name == "last" || name == "slowest";
    if (!known) refuse(fmt::format("{} is none of first, last and slowest", in_quotes(name)));
    Index& steps = name == "first" ? request.first : name == "last" ? request.last : request.slowest;
    if (steps != 0) refuse(fmt::format("{} is there twice", in_quotes(name)));
    steps = number_in<Index>(number).value_or(0);
    if (steps < 1 || steps > kMaxSteps) {
      refuse(fmt::format("{} is no number of steps from 1 to {}", in_quotes(number), kMaxSteps));
    }
    if ((!unit.empty() && unit != "steps" && unit != "step") || !rest.empty()) {
      refuse(fmt::format("{} is more than a word and a number", in_quotes(part)));
    }
  }
  return request;
}

}  // namespace lockstep
