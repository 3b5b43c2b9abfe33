#include "support/played_servers.h"

#include "lockstep/base/catalog.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::test {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

void write_recordings(const ServersPlay& play, const TemporaryDirectory& directory) {
  for (std::size_t server = 0; server < play.arrivals.size(); ++server) {
    const bool hears_decisions = play.options.backup_workers > 0 && server > 0;
    std::ofstream(directory / fmt::format("arrivals.{}.txt", server))
        << fmt::format("lockstep-arrivals {} {}\n{}\n", play.workers.size() + (hears_decisions ? 1 : 0),
                       words_of(play.arrivals[server]).size(), play.arrivals[server]);
  }
}

Layout layout_for(std::size_t servers) {
  Layout layout;
  for (std::size_t i = 0; i < servers; ++i)
    append(layout, {.name = fmt::format("{}.weight", i), .shape = {{kPlayedSlice}}, .range = {}});
  return layout;
}

// The one number that each server's weights are.
std::vector<Scalar> by_server(std::span<const Scalar> weights) {
  std::vector<Scalar> numbers;
  for (std::size_t begin = 0; begin < weights.size(); begin += kPlayedSlice) {
    const std::span<const Scalar> slice = weights.subspan(begin, kPlayedSlice);
    EXPECT_EQ(std::ranges::count(slice, slice.front()), kPlayedSlice) << "server " << numbers.size();
    numbers.push_back(slice.front());
  }
  return numbers;
}

using Pulls = std::vector<std::vector<Scalar>>;

// As training does: until nothing is assigned any more, or the gradient is bad.
Pulls work(AsynchronousStrategy& strategy, const Plan& plan, const std::vector<PushedGradient>& pushes) {
  const std::span<const Scalar> weights = strategy.weights(0);
  AlignedBuffer<Scalar> arena(plan.gradient_size);
  const PartialGrads partial{.subtrees = {}, .sums = {arena.span()}};
  Pulls pulls;
  while (const auto assignment = strategy.next(false)) {
    const PushedGradient& push = pushes.at(pulls.size());
    pulls.push_back(by_server(weights));
    std::ranges::fill(arena.span(), static_cast<Scalar>(push.mean * push.weight));
    for (const Bucket& bucket : plan.buckets) strategy.bucket_ready(bucket, partial);
    const bool good = strategy.push({.step = assignment->step,
                                     .samples = push.samples,
                                     .weight = push.weight,
                                     .loss = push.loss,
                                     .correct = push.correct,
                                     .lr = push.lr,
                                     .moments = push.moments});
    EXPECT_EQ(good, std::isfinite(push.mean));
    if (good) continue;
    EXPECT_FALSE(strategy.next(false)) << "after a bad number";
    break;
  }
  strategy.send_done();
  EXPECT_EQ(pulls.size(), pushes.size());
  return pulls;
}

}  // namespace

std::vector<std::string> same_arrivals(const std::string& arrivals, Index servers) {
  std::vector<std::string> others;
  for (const std::string& word : words_of(arrivals)) {
    if (word.ends_with('a') || word.ends_with('b')) continue;
    others.push_back(word);
  }
  std::vector<std::string> all{arrivals};
  all.resize(static_cast<std::size_t>(servers), fmt::format("{}", fmt::join(others, " ")));
  return all;
}

ServersPlayed play_servers(const ServersPlay& play) {
  const TemporaryDirectory directory;
  write_recordings(play, directory);
  const Layout layout = layout_for(play.arrivals.size());
  const auto workers = std::ssize(play.workers);
  const auto servers = std::ssize(play.arrivals);
  DistOptions options = play.options;
  options.strategy = "parameter_server";
  options.servers = servers;
  options.replay = directory.path();
  options.timeout_seconds = 30;  // where what is tested goes wrong
  const Plan plan =
      make_plan(options, layout, {.world = workers + servers, .servers = servers, .replicas = workers});
  const auto optimizer = find_entry(optimizer_catalog(), "optimizer", "sgd").make({});
  ServersPlayed played{
      .weights = {}, .pulled = std::vector<Pulls>(play.workers.size()), .moments = {}, .report = {}};
  run_thread_ranks(static_cast<int>(workers + servers), [&](Communicator& comm) {
    ThreadTeam team(1);
    const auto made = strategy_entry(options.strategy)
                          .make({.comm = comm,
                                 .options = options,
                                 .plan = plan,
                                 .layout = layout,
                                 .optimizer = *optimizer,
                                 .rules = {.clip_norm = play.clip_norm},
                                 .team = team});
    auto& strategy = *made->asynchronous();
    strategy.start();
    const auto worker = static_cast<std::size_t>(comm.rank());
    if (worker < play.workers.size()) {
      played.pulled[worker] = work(strategy, plan, play.workers[worker]);
    } else {
      const auto take_moments = [&](std::span<const double> sums) {
        played.moments.emplace_back(sums.begin(), sums.end());
      };
      strategy.serve(
          play.until,
          {.take_moments = take_moments, .before_step = [](Index) {}, .ends_early = [] { return false; }});
    }
    const WorkersReport report = strategy.report();
    const std::vector<Scalar> weights = by_server(strategy.gather_model());
    if (comm.rank() > 0) return;
    played.report = report;
    played.weights = weights;
  });
  return played;
}

}  // namespace lockstep::test
