#include "announcement.h"

#include <fmt/format.h>

#include "app/setup/precision.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/report/plan_table.h"

namespace lockstep {

void announce(Communicator& comm, const Config& config, const RunPlan& plan, const RankPlacement& placement) {
  const Index hosts = placement.hosts();
  log_info("{} rank{} on {} host{}, {} replica{}, {} thread{}, precision {}; {}", comm.size(),
           comm.size() == 1 ? "" : "s", hosts, hosts == 1 ? "" : "s", plan.sampling.replicas,
           plan.sampling.replicas == 1 ? "" : "s", plan.dist.threads, plan.dist.threads == 1 ? "" : "s",
           describe_precision(config), placement.summary);
  const bool full = config.run.plan == PlanStyle::kFull;
  std::string text = full ? plan_table(std::span(&plan, 1)) : plan_summary(plan);
  text.pop_back();  // the log ends the line itself
  log_info("plan:{}{}", full ? "\n" : " ", text);
}

void report_loaded(Communicator& comm, const RunPlan& plan, const Records& train, PlanStyle style) {
  constexpr std::size_t kMaxLines = 64;
  const std::size_t shown = style == PlanStyle::kFull ? kMaxLines : 4;
  const Range replicas = plan.dist.hosted_by(plan.grid().group_of(comm.rank()));
  const std::string holds =
      replicas.empty()    ? "serves"
      : train.rows() == 0 ? "needs no records: its stage gets what the stage before computes"
      : plan.sampling.stream
          ? fmt::format("streams {} rows (replicas {} to {})",
                        with_commas(make_sampler(plan.sampling)->needed(replicas)), replicas.begin,
                        replicas.end - 1)
          : fmt::format("loaded {} rows, {} (replicas {} to {})", with_commas(train.rows()),
                        human_bytes(train.bytes()), replicas.begin, replicas.end - 1);
  const std::vector<std::string> lines = gather_texts(comm, fmt::format("rank {} {}", comm.rank(), holds));
  for (std::size_t rank = 0; rank < std::min(lines.size(), kMaxLines); ++rank)
    write_log(rank < shown ? LogLevel::kInfo : LogLevel::kDebug, lines[rank]);
  if (lines.size() > shown) log_info("... and so on for {} more ranks", lines.size() - shown);
}

void report_algorithm(const std::string& algorithm, const DistOptions& distribute) {
  if (algorithm.empty()) return;
  std::string why;
  if (distribute.algorithm == kAutoAlgorithm) {
    why = distribute.calibrate ? ", the fastest here by calibration" : ", by rule";
  }
  log_info("exchange algorithm: {}{}", algorithm, why);
}

}  // namespace lockstep
