#include "lockstep/distributed/plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/distributed/whole_tensors.h"
#include "lockstep/math/kernels.h"

namespace lockstep {
namespace {

void check(const PlanRequest& request) {
  const Index workers = request.world - request.servers;
  error_if(workers > request.replicas,
           "{} but {}: {} of them would have no work; start at most {} or raise train.replicas",
           plural(workers, request.servers == 0 ? "rank" : "worker"), plural(request.replicas, "replica"),
           workers - request.replicas, plural(request.replicas + request.servers, "rank"));
  const Index fewest = request.replicas / workers;
  error_if(request.threads > fewest,
           "train.threads is {} but a rank hosts only {} of {}: threads run whole replicas; lower "
           "train.threads or raise train.replicas to a multiple of {}",
           request.threads, fewest, plural(request.replicas, "replica"), request.threads * workers);
}

// A plan lists the slice of each rank of each bucket.
void check_slices(const DistOptions& options, const PlanRequest& request, Index gradient_size) {
  constexpr double kMaxSlices = 1e8;
  if (options.bucket_kib == 0) return;
  const double bytes = static_cast<double>(gradient_size) * sizeof(Scalar);
  const double buckets = std::max(1.0, bytes / (1024.0 * static_cast<double>(options.bucket_kib)));
  if (buckets * static_cast<double>(request.world) <= kMaxSlices) return;
  throw ConfigError(
      "distribute.bucket_kib = {} cuts the gradient ({}) into {:.0f} buckets, with a slice for each of {} "
      "ranks: expected at most {:.0e} slices; raise distribute.bucket_kib",
      options.bucket_kib, human_bytes(bytes), buckets, request.world, kMaxSlices);
}

bool is_divided(const PlanRequest& request, const ParamInfo& param) {
  return std::ranges::find(request.divided, param.range, &DividedTensor::range) != request.divided.end();
}

// Whole layers, from the last one on, until a bucket is full; a layer that is larger than a bucket fills
// several, as equal as blocks allow. A tensor that ranks divide is a bucket by itself.
std::vector<Bucket> make_buckets(const Layout& layout, const BlockGrid& grid, Index gradient_size,
                                 const DistOptions& options, const PlanRequest& request) {
  const Index bucket_bytes = options.bucket_kib * 1024;
  std::vector<Bucket> buckets;
  Index end = gradient_size;
  for (auto param = layout.params.rbegin(); param != layout.params.rend(); ++param) {
    if (is_divided(request, *param)) {
      if (buckets.empty() && end == gradient_size) {
        end = layout.size;
        buckets.push_back({.range = {end, gradient_size}});
      }
      buckets.push_back({.range = {param->range.begin, end}, .divided = true});
      end = param->range.begin;
      continue;
    }
    const bool arena_begins =
        std::next(param) == layout.params.rend() || is_divided(request, *std::next(param));
    const bool layer_begins = arena_begins || std::next(param)->layer != param->layer;
    const Range range{param->range.begin, end};
    const Index bytes = range.size() * Index{sizeof(Scalar)};
    if (!arena_begins && (!layer_begins || bytes < bucket_bytes)) continue;
    const Index parts = bucket_bytes > 0 ? std::max<Index>(bytes / bucket_bytes, 1) : 1;
    const std::vector<Range> cut = owner_slices(grid, range, parts);
    for (auto part = cut.rbegin(); part != cut.rend(); ++part) {
      if (!part->empty()) buckets.push_back({.range = *part});
    }
    end = range.begin;
  }
  return buckets;
}

// A range without weights holds the loss alone, which the first rank then owns. Servers own everything where
// there are any, else workers do.
std::vector<Range> slices_of(const BlockGrid& grid, const Bucket& bucket, const Plan& plan,
                             std::span<Index> loads) {
  const Range range = bucket.range;
  if (bucket.divided) {
    return std::ranges::find(plan.divided, range.begin, [](const DividedTensor& t) { return t.range.begin; })
        ->weights;
  }
  if (grid.inside(range).empty()) {
    std::vector<Range> slices(static_cast<std::size_t>(plan.world), {range.end, range.end});
    slices.front().begin = range.begin;
    return slices;
  }
  if (plan.servers == 0) return owner_slices(grid, range, loads);
  std::vector<Range> slices(static_cast<std::size_t>(plan.workers()), {range.begin, range.begin});
  for (const Range slice : owner_slices(grid, range, loads)) slices.push_back(slice);
  return slices;
}

// The order of a sum over samples is the kernel's, which no fixed tree allows.
std::vector<FactoredTensor> worth_factoring(const DistOptions& options, const PlanRequest& request) {
  constexpr Index kTimesSmaller =
      4;  // a gradient must be so much larger: factors are written, looked at, read and packed
  std::vector<FactoredTensor> tensors = request.factored;
  std::erase_if(tensors, [&](const FactoredTensor& tensor) {
    const Index factors = request.replicas * request.max_rows * (tensor.out + tensor.in);
    return options.reduction != Reduction::kNative || kTimesSmaller * factors > tensor.range.size();
  });
  return tensors;
}

constexpr Index kScalarBytes = sizeof(Scalar);

// Rank after rank takes tensors while more than half of the next one fits below what all would have if they
// could be cut anywhere; the last takes what is left.
std::vector<Range> tensor_slices(const BlockGrid& grid, Range range, std::span<Index> loads) {
  const Range blocks = grid.inside(range);
  const auto border = [&](Index block) { return block < blocks.end ? grid.begin(block) : range.end; };
  const Index all = std::accumulate(loads.begin(), loads.end(), range.size());
  const Index even = all / std::ssize(loads);
  std::vector<Range> slices;
  Index block = blocks.begin;
  for (std::size_t rank = 0; rank < loads.size(); ++rank) {
    const Index begin = border(block);
    for (; block < blocks.end; ++block) {
      const Index size = border(block + 1) - border(block);
      if (rank + 1 < loads.size() && loads[rank] + size / 2 > even) break;
      loads[rank] += size;
    }
    slices.push_back({begin, border(block)});
  }
  return slices;
}

}  // namespace

Plan Plan::without_buckets() const {
  Plan plan;
  plan.world = world;
  plan.replicas = replicas;
  plan.hosted = hosted;
  plan.gradient_size = gradient_size;
  plan.loss_offset = loss_offset;
  return plan;
}

Index Plan::divided_size() const {
  Index size = 0;
  for (const DividedTensor& tensor : divided) size += tensor.range.size();
  return size;
}

Index Plan::divided_elsewhere(Index rank) const {
  Index size = divided_size();
  for (const DividedTensor& tensor : divided) size -= at(tensor.weights, rank).size();
  return size;
}

std::vector<Range> Plan::owned(Index rank) const {
  std::vector<Range> ranges;
  for (auto bucket = slices.rbegin(); bucket != slices.rend(); ++bucket) {
    const Range mine = intersect(at(*bucket, rank), {0, loss_offset});
    if (!mine.empty()) ranges.push_back(mine);
  }
  return ranges;
}

void for_each_outside(std::span<const FactoredTensor> tensors, Range range,
                      const std::function<void(Range)>& work) {
  for (const FactoredTensor& tensor : tensors) {
    if (intersect(tensor.range, range).empty()) continue;
    if (range.begin < tensor.range.begin) work({range.begin, tensor.range.begin});
    range.begin = tensor.range.end;
  }
  if (!range.empty()) work(range);
}

Plan make_plan(const DistOptions& options, const Layout& layout, const PlanRequest& request) {
  check(request);
  Plan plan;
  plan.world = request.world;
  plan.servers = request.servers;
  plan.replicas = request.replicas;
  plan.threads = request.threads;
  for (Index rank = 0; rank < plan.workers(); ++rank) {
    plan.hosted.push_back(split_evenly(plan.replicas, plan.workers(), rank));
  }
  plan.hosted.resize(static_cast<std::size_t>(plan.world), {plan.replicas, plan.replicas});
  plan.max_rows = request.max_rows;
  plan.factored = worth_factoring(options, request);
  plan.loss_offset = layout.size;
  plan.gradient_size = layout.size + kAlignment;
  check_slices(options, request, plan.gradient_size);
  const BlockGrid grid(layout, request.grain);
  plan.divided = request.divided;
  plan.buckets = make_buckets(layout, grid, plan.gradient_size, options, request);
  std::vector<Index> loads(static_cast<std::size_t>(plan.servers > 0 ? plan.servers : plan.world));
  for (const Bucket& bucket : plan.buckets) {
    plan.slices.push_back(slices_of(grid, bucket, plan, loads));
  }
  return plan;
}

std::vector<Index> StageGrid::workers_on_nodes(std::span<const Index> nodes, Index stage) const {
  std::vector<Index> workers;
  Index rank = 0;
  for (const Index ranks : nodes) {
    Index count = 0;
    for (const Index end = rank + ranks; rank < end; ++rank) count += stage_of(rank) == stage ? 1 : 0;
    if (count > 0) workers.push_back(count);
  }
  return workers;
}

OptimizerMemory::OptimizerMemory(const Optimizer& optimizer, const Layout& layout)
    : slots_(optimizer.slots()) {
  if (!optimizer.needs_whole_tensors()) return;
  grid_.emplace(layout, Grain::kTensor);
  for (std::size_t param = 0; param < layout.params.size(); ++param) {
    const TensorInfo info = tensor_info(layout, param);
    Tensor tensor{.range = layout.params[param].range, .scratch = optimizer.scratch_size(info)};
    for (int slot = 0; slot < optimizer.slots(); ++slot) {
      tensor.state += optimizer.slot_size(slot, info);
      tensor.held += round_up(optimizer.slot_size(slot, info), kAlignment);
    }
    tensors_.push_back(tensor);
  }
}

Index OptimizerMemory::bytes(std::span<const Range> owned, Index threads) const {
  Index numbers = 0;
  Index scratch = 0;
  for (const Range range : owned) {
    if (!grid_) numbers += slots_ * range.size();
    for (const Tensor& tensor : tensors_) {
      if (!range.contains(tensor.range.begin)) continue;
      numbers += tensor.held;
      scratch = std::max(scratch, tensor.scratch);
    }
  }
  return (numbers + threads * scratch) * kScalarBytes;
}

Index OptimizerMemory::share_bytes(Index size, Index owner, Index owners, Index threads) const {
  if (!grid_) return slots_ * size * kScalarBytes / owners;
  const std::array own{at(owner_slices(*grid_, {0, size}, owners), owner)};
  return bytes(own, threads);
}

Index OptimizerMemory::saved_bytes(Index parameters) const {
  if (!grid_) return slots_ * parameters * kScalarBytes;
  Index numbers = 0;
  for (const Tensor& tensor : tensors_) numbers += tensor.state;
  return numbers * kScalarBytes;
}

BlockGrid::BlockGrid(const Layout& layout, Grain grain) : grain_(grain) {
  for (const ParamInfo& param : layout.params) {
    const Index first = count();
    const Index stride = grain == Grain::kBlock ? kSquareBlock : param.range.size();
    for (Index begin = param.range.begin; begin < param.range.end; begin += stride) {
      begins_.push_back(begin);
    }
    params_.push_back({first, count()});
  }
}

Range BlockGrid::inside(Range arena) const {
  const auto offset = [this](Index at) {
    return static_cast<Index>(std::ranges::lower_bound(begins_, at) - begins_.begin());
  };
  return {offset(arena.begin), offset(arena.end)};
}

std::vector<Range> owner_slices(const BlockGrid& grid, Range range, Index world) {
  std::vector<Index> loads(static_cast<std::size_t>(world));
  return owner_slices(grid, range, loads);
}

std::vector<Range> owner_slices(const BlockGrid& grid, Range range, std::span<Index> loads) {
  const Index world = std::ssize(loads);
  if (grid.grain() == Grain::kTensor) return tensor_slices(grid, range, loads);
  const Range blocks = grid.inside(range);
  const auto border = [&](Index block) { return block < blocks.end ? grid.begin(block) : range.end; };
  std::vector<Range> slices;
  for (Index rank = 0; rank < world; ++rank) {
    const Range mine = split_evenly(blocks, world, rank);
    slices.push_back({border(mine.begin), border(mine.end)});
    at(loads, rank) += slices.back().size();
  }
  return slices;
}

}  // namespace lockstep
