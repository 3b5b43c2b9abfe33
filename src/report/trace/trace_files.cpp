// Each file is lines of JSON: a head, then steps, measurements of the clock, names of threads, and what was
// done between steps. A run that was killed may leave a last line that is cut off.
//
// Events as they were recorded may overlap by a little: an exchange begins inside the backward pass of the
// layer whose gradient was the last. Such a span is cut where the other ends, so that all nest.
//
// A rank alone does not know what it waited for: inside an exchange, it is the time until the last rank has
// arrived. Of a model that is divided into stages, ranks of one stage exchange with each other alone, and
// each stage numbers its exchanges from 0: so arrivals are compared within a stage.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/report/trace/trace.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

struct RankFile {
  RankTrace trace = {};
  std::int64_t start = 0;
  Index ranks = 1;
  Index slowest = 0;  // steps that the request wants
  std::vector<std::string> ops = {};
  std::vector<ClockReading> clocks = {};
  bool has_head = false;
};

std::vector<std::string> texts_of(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& text : json) texts.push_back(excerpt(text.get_ref<const std::string&>()));
  return texts;
}

TraceEvent event_of(const std::vector<Index>& numbers, std::int64_t start) {
  constexpr Index kMost = Index{1} << 55U;  // a year, in nanoseconds
  if (numbers.size() != 5) throw DataError("an event has five numbers");
  const Index kind = numbers[1];
  const bool good = numbers[0] >= 0 && numbers[0] < 100'000 && kind >= 0 && kind < std::ssize(kTraceNames) &&
                    std::abs(numbers[2]) < kMost && numbers[3] >= 0 && numbers[3] < kMost;
  if (!good) throw DataError("an event is out of bounds");
  const std::int64_t begin = start + numbers[2];
  return {begin, begin + numbers[3], static_cast<std::int32_t>(numbers[4]), static_cast<TraceKind>(kind)};
}

void take_head(RankFile& file, const Json& json) {
  const std::vector<Index> request = whole_numbers(json.at("request"));
  if (request.size() != 3) throw DataError("a request has three numbers");
  file.trace.rank = static_cast<int>(whole_number(json.at("rank")));
  if (json.contains("stage")) file.trace.stage = whole_number(json.at("stage"));
  file.trace.host = excerpt(json.at("host").get<std::string>());
  file.start = whole_number(json.at("start"));
  file.ranks = whole_number(json.at("ranks"));
  file.slowest = request[2];
  file.ops = texts_of(json.at("ops"));
  file.has_head = true;
}

void take_step(RankFile& file, const Json& json) {
  TracedStep step{.step = whole_number(json.at("step")),
                  .seconds = json.at("seconds").get<double>(),
                  .why = json.at("why").get<std::string>()};
  for (const Json& event : json.at("events")) {
    const std::vector<Index> numbers = whole_numbers(event);
    const TraceEvent taken = event_of(numbers, file.start);
    step.events.push_back({static_cast<int>(numbers[0]), taken});
  }
  file.trace.steps.push_back(std::move(step));
}

void take_line(RankFile& file, const Json& json) {
  if (!json.is_object()) throw DataError("it is no object");
  if (json.contains("rank")) return take_head(file, json);
  if (!file.has_head) throw DataError("it comes before the head");
  if (json.contains("step")) return take_step(file, json);
  if (json.contains("threads")) file.trace.threads = texts_of(json.at("threads"));
  if (json.contains("outside")) {
    file.trace.between.push_back(event_of(whole_numbers(json.at("outside")), file.start));
  }
  if (json.contains("clock")) {
    const std::vector<Index> numbers = whole_numbers(json.at("clock"));
    if (numbers.size() != 3) throw DataError("a clock has three numbers");
    file.clocks.push_back({.own = file.start + numbers[0], .offset = numbers[1], .error = numbers[2]});
  }
}

RankFile read_file_of_rank(const std::filesystem::path& path, std::vector<std::string>& faults) {
  RankFile file;
  check_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  Index number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    std::string fault;
    try {
      read_json<Json>(text, [&](const Json& json) { take_line(file, json); });
    } catch (const DataError& error) {
      fault = error.what();
    }
    if (fault.empty()) continue;
    if (in.eof()) fault = "it is cut off, as the run was ended while it was written";
    faults.push_back(fmt::format("line {} of '{}' is left out: {}", number, path.string(), fault));
  }
  return file;
}

// Between two measurements the clock has drifted evenly; before the first and after the last one it is taken
// as it was then.
std::int64_t common(const std::vector<ClockReading>& clocks, std::int64_t own) {
  if (clocks.empty()) return own;
  const auto after = std::ranges::upper_bound(clocks, own, {}, &ClockReading::own);
  if (after == clocks.begin()) return own + clocks.front().offset;
  const ClockReading& from = *std::prev(after);
  if (after == clocks.end() || after->own == from.own) return own + from.offset;
  const double share = static_cast<double>(own - from.own) / static_cast<double>(after->own - from.own);
  return own + from.offset + std::llround(share * static_cast<double>(after->offset - from.offset));
}

void align(RankFile& file) {
  const auto move = [&](TraceEvent& event) {
    const std::int64_t length = event.end - event.begin;
    event.begin = common(file.clocks, event.begin);
    event.end = event.begin + length;
  };
  for (TracedStep& step : file.trace.steps) {
    for (ThreadEvent& each : step.events) move(each.event);
  }
  for (TraceEvent& event : file.trace.between) move(event);
}

// Leaves the first steps, the last, and of the others the slowest.
void leave_chosen(std::vector<RankTrace>& ranks, Index slowest) {
  std::set<Index> chosen;
  for (const RankTrace& rank : ranks) {
    for (const TracedStep& step : rank.steps) {
      if (step.why != "slowest") chosen.insert(step.step);
    }
  }
  const auto order = slowest_first(ranks, "slowest");
  for (Index i = 0; i < std::min(std::ssize(order), slowest); ++i) chosen.insert(at(order, i).first);
  for (RankTrace& rank : ranks) {
    std::erase_if(rank.steps, [&](const TracedStep& step) { return !chosen.contains(step.step); });
    std::ranges::sort(rank.steps, {}, &TracedStep::step);
  }
}

bool begins_first(const NestedSpan& a, const NestedSpan& b) {
  const auto key = [](const NestedSpan& span) {
    return std::tuple(span.begin, -span.end, span.waits_for >= 0);
  };
  return key(a) < key(b);
}

// The spans of one thread.
std::vector<NestedSpan> nest(std::vector<NestedSpan> spans) {
  std::multiset<NestedSpan, decltype(&begins_first)> left(spans.begin(), spans.end(), begins_first);
  std::vector<NestedSpan> nested;
  std::vector<std::size_t> around;  // spans that hold the next one
  while (!left.empty()) {
    NestedSpan span = *left.begin();
    left.erase(left.begin());
    while (!around.empty() && nested[around.back()].end <= span.begin) around.pop_back();
    if (!around.empty() && span.end > nested[around.back()].end) {
      NestedSpan rest = span;
      rest.begin = span.end = nested[around.back()].end;
      left.insert(rest);
    }
    span.own = span.end - span.begin;
    if (!around.empty()) nested[around.back()].own -= span.own;
    around.push_back(nested.size());
    nested.push_back(span);
  }
  return nested;
}

bool is_sync_point(const TraceEvent& event) {
  return event.kind == TraceKind::kSync || event.kind == TraceKind::kExchange;
}

}  // namespace

std::vector<std::pair<Index, double>> slowest_first(const std::vector<RankTrace>& ranks,
                                                    std::string_view why) {
  std::map<Index, double> longest;
  for (const RankTrace& rank : ranks) {
    for (const TracedStep& step : rank.steps) {
      if (why.empty() || step.why == why) longest[step.step] = std::max(longest[step.step], step.seconds);
    }
  }
  std::vector<std::pair<Index, double>> order(longest.begin(), longest.end());
  std::ranges::stable_sort(order, std::greater(), &std::pair<Index, double>::second);
  return order;
}

std::filesystem::path trace_file(const std::filesystem::path& directory, int rank) {
  return directory / fmt::format("rank-{:05}.jsonl", rank);
}

RunTrace read_trace(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  RunTrace trace;
  std::vector<RankFile> files;
  for (const std::filesystem::path& path : paths) {
    RankFile file = read_file_of_rank(path, trace.faults);
    if (!file.has_head) continue;
    align(file);
    for (const ClockReading& clock : file.clocks)
      trace.clock_error = std::max(trace.clock_error, clock.error);
    files.push_back(std::move(file));
  }
  error_if<DataError>(files.empty(), "'{}' has no timeline of any rank", directory.string());
  std::ranges::sort(files, {}, [](const RankFile& file) { return file.trace.rank; });
  trace.ops = files.front().ops;
  trace.ranks_of_run = files.front().ranks;
  if (std::ssize(files) < trace.ranks_of_run) {
    trace.faults.push_back(fmt::format("'{}' has the timelines of {} of {} ranks", directory.string(),
                                       files.size(), trace.ranks_of_run));
  }
  for (RankFile& file : files) trace.ranks.push_back(std::move(file.trace));
  leave_chosen(trace.ranks, files.front().slowest);
  trace.last_arrivals = find_last_arrivals(trace.ranks);
  return trace;
}

LastArrivals find_last_arrivals(const std::vector<RankTrace>& ranks) {
  std::map<Index, Index> ranks_of_stage;
  LastArrivals all;
  for (const RankTrace& rank : ranks) {
    ++ranks_of_stage[rank.stage];
    for (const TracedStep& step : rank.steps) {
      for (const auto& [thread, event] : step.events) {
        if (!is_sync_point(event)) continue;
        LastArrival& last = all[{step.step, rank.stage, event.detail}];
        if (last.arrived++ == 0 || event.begin > last.time) {
          last.rank = rank.rank;
          last.time = event.begin;
        }
      }
    }
  }
  std::erase_if(all, [&](const auto& each) {
    return each.second.arrived < ranks_of_stage[std::get<1>(each.first)];  // by stage
  });
  return all;
}

StepSpans spans_of(const RunTrace& trace, std::size_t rank, std::size_t position) {
  const TracedStep& step = trace.ranks[rank].steps[position];
  std::map<int, std::vector<NestedSpan>> by_thread;
  StepSpans result;
  for (const auto& [thread, event] : step.events) {
    if (event.kind == TraceKind::kBucket) {
      result.buckets.push_back(event);
      continue;
    }
    NestedSpan span{
        .thread = thread, .kind = event.kind, .detail = event.detail, .begin = event.begin, .end = event.end};
    by_thread[thread].push_back(span);
    if (!is_sync_point(event)) continue;
    const auto found = trace.last_arrivals.find({step.step, trace.ranks[rank].stage, event.detail});
    if (found == trace.last_arrivals.end()) continue;
    const LastArrival& last = found->second;
    if (last.rank == trace.ranks[rank].rank || last.time <= event.begin) continue;
    span.waits_for = last.rank;
    span.end = std::min(last.time, event.end);
    by_thread[thread].push_back(span);
  }
  for (auto& [thread, spans] : by_thread) {
    const std::vector<NestedSpan> nested = nest(std::move(spans));
    result.spans.insert(result.spans.end(), nested.begin(), nested.end());
  }
  return result;
}

}  // namespace lockstep
