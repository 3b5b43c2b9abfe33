// The timeline of a run, read from the files that its ranks have written (train/loop/step_tracer.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/base/trace.h"

namespace lockstep {

/// The steps of a rank, in order. Times are nanoseconds on rank 0's clock.
struct TracedStep {
  Index step = 0;
  double seconds = 0;    ///< of the slowest rank
  std::string why = {};  ///< "first", "last" or "slowest"
  std::vector<ThreadEvent> events = {};
};

struct RankTrace {
  int rank = 0;
  Index stage = 0;  ///< of a model that is divided into stages
  std::string host = {};
  std::vector<std::string> threads = {};  ///< names
  std::vector<TracedStep> steps = {};
  std::vector<TraceEvent> between = {};  ///< evaluations and checkpoints
};

/// The last of the ranks of a stage at a sync point or an exchange, and when it arrived.
struct LastArrival {
  int rank = -1;
  std::int64_t time = 0;
  Index arrived = 0;  ///< how many ranks
};

/// By step, stage and number of the point in the step. Ranks of different stages never meet at one point.
using LastArrivals = std::map<std::tuple<Index, Index, std::int32_t>, LastArrival>;

struct RunTrace {
  std::vector<RankTrace> ranks = {};  ///< in order; those whose file is missing are not there
  Index ranks_of_run = 0;
  std::vector<std::string> ops = {};     ///< names of the operations
  std::vector<std::string> faults = {};  ///< what is missing or damaged
  LastArrivals last_arrivals = {};       ///< only for steps that all ranks of a stage have recorded
  std::int64_t clock_error = 0;          ///< the largest error of its times, in nanoseconds
};

/// The last arrivals at all sync points and exchanges. The steps of a rank are distinct.
LastArrivals find_last_arrivals(const std::vector<RankTrace>& ranks);

/// Each step once, with its longest time in seconds, the slowest first; of equally slow ones the earlier
/// first. `why`: those that were kept for this reason alone.
std::vector<std::pair<Index, double>> slowest_first(const std::vector<RankTrace>& ranks,
                                                    std::string_view why = {});

/// The file of a rank.
std::filesystem::path trace_file(const std::filesystem::path& directory, int rank);

/// All whole lines of all files, without those steps that slower ones have replaced. Errors: DataError if
/// there is no file with a head.
RunTrace read_trace(const std::filesystem::path& directory);

/// A piece of work of one thread. Spans of a thread nest: two of them are apart, or one holds the other.
struct NestedSpan {
  int thread = 0;
  TraceKind kind = TraceKind::kStep;
  Index detail = -1;
  int waits_for = -1;  ///< not -1: it waits for this rank, inside an exchange
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t own = 0;  ///< nanoseconds in no span inside it
};

/// The spans of one step of one rank, ordered by thread and begin; buckets, which lie beside them, apart.
struct StepSpans {
  std::vector<NestedSpan> spans = {};
  std::vector<TraceEvent> buckets = {};
};

/// `position`: among the steps of that rank.
StepSpans spans_of(const RunTrace& trace, std::size_t rank, std::size_t position);

/// A trace in the JSON form of Chrome and Perfetto, compressed.
struct TraceFile {
  std::string bytes = {};
  std::size_t left_out = 0;  ///< steps, the last ones, for which there was no room
};

/// At most 20 MB; the same bytes for the same trace.
TraceFile trace_json_gz(const RunTrace& trace);
/// "2 ranks, 60 steps, 12,345 events; clocks of the ranks agree within 0.4 us".
std::string describe_trace(const RunTrace& trace);
/// Top layers, how much of the exchange is hidden, and what threads waited for: lines of text.
std::string summarise_trace(const RunTrace& trace);

}  // namespace lockstep
