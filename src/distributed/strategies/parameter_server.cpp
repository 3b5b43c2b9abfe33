// The last ranks are servers: they own the weights and host no replica. Workers push gradients and pull
// weights (Li et al. 2014, "Scaling distributed machine learning with the parameter server").
#include <cmath>

#include "distributed/strategies/parameter_server/server.h"
#include "distributed/strategies/parameter_server/worker_client.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "sharded_update.h"

namespace lockstep {
namespace {

class AsynchronousServers final : public AsynchronousStrategy {
 public:
  explicit AsynchronousServers(const StrategyContext& context)
      : plan_(context.plan),
        service_(lay_out_service(plan_, context.layout, context.optimizer)),
        comm_(context.comm.split(0, context.comm.rank())),
        role_(comm_->split(serves() ? 1 : 0, comm_->rank())),
        weights_(context.layout.size),
        update_(context.layout, context.optimizer, clipping_rules(context, false)),
        stats_(service_.workers) {
    agree(*comm_, [&] {
      if (serves()) {
        server_ = std::make_unique<Server>(*comm_, *role_, context, service_, weights_.span(), stats_);
      } else {
        client_ = std::make_unique<WorkerClient>(*comm_, service_, context.options);
      }
    });
  }

  std::span<Scalar> weights(Index) override { return weights_.span(); }
  void start() override { comm_->broadcast(as_buffer(weights_.span()), 0); }

  std::span<const Scalar> gather_model() override {
    std::vector<Range> parts(static_cast<std::size_t>(service_.workers));
    parts.insert(parts.end(), service_.slices.begin(), service_.slices.end());
    comm_->start_all_gather(as_buffer(weights_.span()), parts)->wait();
    return weights_.span();
  }

  // The first server reports the totals; all ranks have them after report().
  void resume_after(Index steps) override {
    if (server_) server_->resume_after(steps);
  }

  SavedState saved_state() override {
    SavedState state;
    if (server_) server_->add_saved(state);
    if (client_) client_->add_saved(state);
    return state;
  }

  // A gradient leaves when all of it is there.
  void bucket_ready(const Bucket&, const PartialGrads& partial) override { partial_ = &partial; }
  std::size_t progress() override { return 0; }

  void serve(Index until, const ServeHooks& hooks) override {
    try {
      server_->serve(until, hooks);
    } catch (...) {
      server_->save_recording();  // so that the failure can be repeated
      throw;
    }
  }

  std::optional<Assignment> next(bool ends_early) override {
    client_->finish_push();
    const std::optional<Assignment> assignment = client_->ask(ends_early);
    if (assignment) client_->pull(assignment->step, weights_.span());
    return assignment;
  }

  bool push(const Contribution& contribution) override {
    const std::span<Scalar> gradient = part(partial_->sums.front(), {0, weights_.size()});
    if (!std::isfinite(contribution.loss) || !update_.good(gradient, contribution.weight)) {
      client_->report_bad();
      return false;
    }
    update_.make_means(gradient, contribution.weight);
    client_->push(contribution, gradient);
    stats_.count_computed(static_cast<std::size_t>(comm_->rank()));
    return true;
  }

  void send_done() override { client_->send_done(); }

  WorkersReport report() override {
    if (server_) server_->save_recording();
    WorkersReport report;
    report.workers = stats_.gather(*comm_);
    if (server_) report.totals = server_->totals();
    comm_->broadcast(bytes_of(report.totals), service_.server_rank(0));
    check_nothing_lost(report);
    return report;
  }

 private:
  // Every gradient that was pushed was either applied or dropped.
  void check_nothing_lost(const WorkersReport& report) const {
    for (std::size_t worker = 0; worker < report.workers.size(); ++worker) {
      const WorkerRecord& record = report.workers[worker];
      if (record.computed == record.steps + record.dropped) continue;
      throw CommError("worker {} pushed {} gradients, but the servers took {} and dropped {}", worker,
                      record.computed, record.steps, record.dropped);
    }
  }

  bool serves() const { return plan_.hosted_by(comm_->rank()).empty(); }

  const Plan& plan_;
  Service service_;
  std::unique_ptr<Communicator> comm_;  // its own: messages of a round never match others
  std::unique_ptr<Communicator> role_;  // workers, or servers
  AlignedBuffer<Scalar> weights_;
  ParameterUpdate update_;  // makes means; the steps are the servers'
  WorkerStats stats_;
  std::unique_ptr<Server> server_;  // one of the two
  std::unique_ptr<WorkerClient> client_;
  const PartialGrads* partial_ = nullptr;
};

std::vector<RankCosts> asynchronous_costs(const CostModelInput& question) {
  const Plan& plan = question.plan;
  const Index weights = question.weights_bytes();
  const Index slice = weights / plan.servers;
  const bool lossy = make_codec(question.options) != nullptr;
  const Index message = lossy ? message_bytes(plan, question.options) : weights;
  const bool collects = question.options.backup_workers > 0;
  return each_rank(question, [&](Index rank) {
    if (!plan.hosted_by(rank).empty()) {
      const Index lost = question.options.error_feedback ? weights : 0;
      return RankCosts{.weights = weights,
                       .gradients = question.gradient_bytes(rank) + (lossy ? message + lost : 0),
                       .sent = static_cast<double>(message),
                       .stepped = 0};
    }
    return RankCosts{
        .weights = weights,
        .optimizer = question.optimizer.share_bytes(plan.loss_offset, rank - plan.workers(), plan.servers, 1),
        .gradients = weights + (collects ? plan.workers() * slice : 0) + (lossy ? message / plan.servers : 0),
        .sent = static_cast<double>(slice * (collects ? plan.workers() : 1)),
        .stepped = 1 / static_cast<double>(plan.servers)};
  });
}

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  if (is_asynchronous(context.options)) return std::make_unique<AsynchronousServers>(context);
  return make_sharded_update(context);
}

std::vector<RankCosts> server_costs(const CostModelInput& question) {
  return is_asynchronous(question.options) ? asynchronous_costs(question) : sharded_update_costs(question);
}

}  // namespace

bool is_asynchronous(const DistOptions& options) {
  return count_servers(options) > 0 && (options.mode != ServerMode::kSync || options.backup_workers > 0);
}

StrategyEntry parameter_server_entry() {
  return {.name = "parameter_server",
          .help =
              "the last ranks are servers that own the weights and take the steps; the other ranks push "
              "gradients and pull weights",
          .elsewhere = "ParameterServerStrategy, tf.estimator; ps-lite, MXNet dist_sync and dist_async",
          .choose =
              "workers of uneven speed (async, bounded, backup workers), or to see what asynchronous "
              "steps cost",
          .promises = {.same_bits = true,
                       .identical_replicas = true,
                       .divides_optimizer_state = true,
                       .exact_resume = true,
                       .repeats_recorded_runs = true},
          .has_servers = true,
          .options = {"distribute.servers", "distribute.mode", "distribute.backup_workers"},
          .costs = server_costs,
          .make = make};
}

}  // namespace lockstep
