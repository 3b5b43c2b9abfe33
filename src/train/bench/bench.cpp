#include "lockstep/train/bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/random.h"
#include "lockstep/base/timer.h"
#include "lockstep/comm/agree.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/calibration.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/workspace.h"
#include "multiply_adds.h"

namespace lockstep {

namespace {

constexpr double kBudget = 0.1;  // seconds for a figure
constexpr double kShortBudget = 0.03;
constexpr double kLongBudget = 0.3;

// *Collective.* The slowest rank's median over some runs of `work`, in seconds; ranks begin each together.
// `work` runs twice before, uncounted; the second run determines how many fit into `budget` seconds on rank
// 0. At least 3 and at most 2001, an odd number.
double median_seconds(Communicator& comm, double budget, const std::function<void()>& work) {
  work();
  comm.barrier();
  const Stopwatch trial;
  work();
  const double once = broadcast_value(comm, trial.seconds());
  const Index runs = std::clamp<Index>(static_cast<Index>(budget / std::max(once, 1e-7)), 3, 2001) | 1;
  std::vector<double> seconds;
  for (Index run = 0; run < runs; ++run) {
    comm.barrier();
    const Stopwatch watch;
    work();
    seconds.push_back(watch.seconds());
  }
  std::ranges::nth_element(seconds, seconds.begin() + runs / 2);
  const double mine = at(seconds, runs / 2);
  return std::ranges::max(gather_numbers<double>(comm, mine));
}

Index scalars(Index bytes) {
  return bytes / Index{sizeof(Scalar)};
}

double copy_bandwidth(Communicator& comm, Index bytes) {
  AlignedBuffer<std::byte> from(bytes);
  AlignedBuffer<std::byte> to(bytes);
  const Index copies = std::max<Index>(1, (Index{16} << 20) / bytes);
  const double seconds = median_seconds(comm, kBudget, [&] {
    for (Index i = 0; i < copies; ++i) {
      std::memcpy(to.data(), from.data(), static_cast<std::size_t>(bytes));
      asm volatile("" : : "r"(to.data()) : "memory");
    }
  });
  return static_cast<double>(2 * copies * bytes) / seconds;
}

void fill(std::span<Scalar> values, std::uint64_t seed) {
  RandomStream random({.seed = seed});
  for (Scalar& value : values) value = random.uniform();
}

// Zeros and ones, which an embedding can look up.
void fill_with_bits(std::span<Scalar> values) {
  RandomStream random({.seed = 1});
  for (Scalar& value : values) value = std::round(random.uniform());
}

// Whether it takes nothing but the samples, perhaps in another shape: nobody wants the gradient of its input.
bool takes_only_input(const Model& model, const ModelOp& op) {
  return std::ranges::all_of(op.inputs, [&model](Index input) {
    return input == kModelInput || at(model.output_owners(), input) == kModelInput;
  });
}

// A batch of random samples, once through the model and back.
class RandomBatch {
 public:
  RandomBatch(const Model& model, Index rows)
      : model_(model),
        rows_(rows),
        ops_{0, std::ssize(model.ops())},
        stored_(model.stored_layout().size),
        x_(rows * model.input().size()),
        gradient_(model.layout().size),
        weights_(model),
        workspace_(model, rows, ActivationRetention::kForTraining) {
    initialise({.layout = &model.stored_layout(), .values = stored_.span()}, 1, 0.01);
    fill_with_bits(x_.span());
    begin();
    forward(ops_);
    Matrix dy = workspace_.output_gradient();
    fill(dy.values(), 2);
    workspace_.backward(gradient_.span(), Write::kReplace, {});
  }

  // Begins a pass as in a step, with weights that are new to the kernels.
  void begin() {
    workspace_.begin({.values = weights_.prepare(stored_values(model_, stored_.span()), one_thread_),
                      .x = ConstMatrix(x_.data(), rows_, model_.input().size()),
                      .batch = {.training = true, .seed = 1}});
  }
  // Single ops may run on values of other samples: the time does not depend on them.
  void forward(Range ops) { workspace_.forward(ops); }
  void backward(Range ops) {
    if (ops.end == ops_.end) workspace_.begin_backward(gradient_.span(), Write::kReplace);
    workspace_.backward(ops, gradient_.span(), Write::kReplace, {});
  }
  Range all() const { return ops_; }

 private:
  const Model& model_;
  Index rows_;
  Range ops_;
  AlignedBuffer<Scalar> stored_;
  AlignedBuffer<Scalar> x_;
  AlignedBuffer<Scalar> gradient_;
  ThreadTeam one_thread_{1};
  KernelWeights weights_;
  Workspace workspace_;
};

constexpr double kLr = 1e-3;

std::unique_ptr<Optimizer> momentum() {
  return find_entry(optimizer_catalog(), "optimizer", "sgd").make({.momentum = 0.9});
}

Layout one_tensor(Index weights) {
  Layout layout;
  append(layout, {.name = "0.weight", .shape = {{weights}}, .range = {}});
  return layout;
}

}  // namespace

double measure_all_reduce(Communicator& comm, Index bytes) {
  AlignedBuffer<Scalar> values(scalars(bytes));
  return median_seconds(comm, kBudget, [&] { comm.all_reduce_sum(as_buffer(values.span())); });
}

// The two write to it in turn. Where they share a core, who waits has to leave it to the other. With an odd
// number of ranks the last one has no neighbour.
double measure_cache_line(Communicator& node) {
  constexpr Index kTrips = 100;
  constexpr int kLooks = 1000;
  const std::unique_ptr<SharedWindow> window = node.shared_window(kAlignmentBytes);
  const int peer = node.rank() ^ 1;
  const int first = std::min(node.rank(), peer);
  const std::atomic_ref turn(*reinterpret_cast<Index*>(window->part(first).data()));
  Index own_turn = node.rank() - first;
  const double seconds = median_seconds(node, kBudget, [&] {
    if (peer >= node.size()) return;
    for (Index trip = 0; trip < kTrips; ++trip) {
      const auto may_go = [&] { return turn.load(std::memory_order_acquire) == own_turn; };
      for (int look = 1; !may_go(); look = look % kLooks + 1) {
        if (look == kLooks) std::this_thread::yield();
      }
      turn.store(own_turn + 1, std::memory_order_release);
      own_turn += 2;
    }
  });
  return seconds / kTrips;
}

double measure_pass(const Model& model, Index rows) {
  RandomBatch batch(model, rows);
  double fastest = 1e9;
  for (int pass = 0; pass < 5; ++pass) {
    const Stopwatch watch;
    batch.begin();
    batch.forward(batch.all());
    batch.backward(batch.all());
    fastest = std::min(fastest, watch.seconds());
  }
  return fastest;
}

Index count_cores() {
  return std::max<Index>(1, sysconf(_SC_NPROCESSORS_ONLN));
}

std::vector<AlgorithmRate> measure_algorithms(Communicator& comm, const DistOptions& options,
                                              const Plan& plan, Index ranks_per_node, Index bytes) {
  DistOptions any = options;
  any.strategy = "allreduce";
  any.algorithm = kAutoAlgorithm;
  std::vector<AlgorithmRate> rates;
  for (const AlgorithmEntry* entry : possible_algorithms(any, look_at_nodes(comm, ranks_per_node))) {
    ExchangeTrial trial(
        {.comm = comm, .plan = plan, .options = options, .ranks_per_node = ranks_per_node, .overlaps = true},
        *entry, scalars(bytes));
    const double seconds = median_seconds(comm, kShortBudget, [&] { trial.run(); });
    rates.push_back({.name = entry->name, .bytes = bytes, .seconds = seconds});
  }
  return rates;
}

MachineLimits measure_machine(Communicator& comm) {
  constexpr Index kRounds = 100'000;
  const double seconds = median_seconds(comm, kBudget, [] { multiply_and_add(kRounds, 0.0F, 0.5F, 1.0F); });
  return {.flops = static_cast<double>(kRounds * kOperationsOfARound) / seconds,
          .cache_bandwidth = copy_bandwidth(comm, Index{256} << 10),
          .memory_bandwidth = copy_bandwidth(comm, Index{256} << 20)};
}

std::vector<OpRate> measure_ops(Communicator& comm, const Model& model, Index rows) {
  RandomBatch batch(model, rows);
  std::vector<OpRate> rates;
  for (Index i = 0; i < batch.all().end; ++i) {
    const ModelOp& op = model.op(i);
    if (op.only_reshapes) continue;
    const Index flops = rows * op.flops;
    const Index unwanted = takes_only_input(model, op) ? rows * op.flops_of_dx.value_or(op.flops) : 0;
    const auto seconds = [&](void (RandomBatch::*pass)(Range)) {
      return median_seconds(comm, kShortBudget, [&] { (batch.*pass)(Range{i, i + 1}); });
    };
    rates.push_back({.title = op.title,
                     .forward_flops = flops,
                     .backward_flops = 2 * flops - unwanted,
                     .forward_seconds = seconds(&RandomBatch::forward),
                     .backward_seconds = seconds(&RandomBatch::backward)});
  }
  return rates;
}

double UpdateRate::least_bytes(Index ranks) const {
  const auto shared = static_cast<double>(ranks);
  return static_cast<double>(weights * Index{sizeof(Scalar)}) * (shared + 4) / shared;
}

// Gradients of zero stay what they are however often they are added, and cost what others do. Who
// makes them has looked at them where the strategy does not, see FactoredGradients::max_gradient().
UpdateRate measure_update(Communicator& comm, const DistOptions& options, Index ranks_per_node,
                          Index weights) {
  const StrategyEntry& entry = strategy_entry(options.strategy);
  const Layout layout = one_tensor(weights);
  const Plan plan = make_plan(options, layout, {.world = comm.size(), .replicas = comm.size()});
  const std::unique_ptr<Optimizer> optimizer = momentum();
  ThreadTeam team(1);
  const std::unique_ptr<Strategy> made = entry.make({.comm = comm,
                                                     .options = options,
                                                     .plan = plan,
                                                     .layout = layout,
                                                     .optimizer = *optimizer,
                                                     .rules = {},
                                                     .team = team,
                                                     .ranks_per_node = ranks_per_node});
  auto& strategy = *made->synchronous();
  std::span<Scalar> arena = strategy.gradient_arena();
  AlignedBuffer<Scalar> own(arena.empty() ? plan.gradient_size : 0);
  if (arena.empty()) arena = own.span();
  const PartialGrads partial{.subtrees = {plan.hosted_by(comm.rank())}, .sums = {arena}};
  const std::vector<Index> samples(static_cast<std::size_t>(comm.size()), 1);
  strategy.start();
  Index step = 0;
  const double seconds = median_seconds(comm, kLongBudget, [&] {
    strategy.begin_step(samples, static_cast<double>(comm.size()));
    for (const Bucket& bucket : plan.buckets) strategy.bucket_ready(bucket, partial);
    strategy.finish_exchange();
    strategy.update({.step = ++step, .weight = static_cast<double>(comm.size()), .lr = kLr});
  });
  return {.name = entry.name, .weights = weights, .seconds = seconds};
}

UpdateRate measure_plain_update(Communicator& comm, Index weights) {
  const Layout layout = one_tensor(weights);
  const std::unique_ptr<Optimizer> optimizer = momentum();
  AlignedBuffer<Scalar> values(layout.size);
  AlignedBuffer<Scalar> gradient(layout.size);
  AlignedBuffer<Scalar> velocity(layout.size);
  const std::span<Scalar> slot = velocity.span();
  const Scalar scale = 1 / static_cast<Scalar>(comm.size());
  Index step = 0;
  const double seconds = median_seconds(comm, kLongBudget, [&] {
    comm.all_reduce_sum(as_buffer(gradient.span()));
    optimizer->update({.weights = values.span(), .gradient = gradient.span(), .slots = std::span(&slot, 1)},
                      {.step = ++step, .lr = kLr, .gradient_scale = scale});
  });
  return {.name = "MPI_Allreduce, then the step", .weights = weights, .seconds = seconds};
}

}  // namespace lockstep
