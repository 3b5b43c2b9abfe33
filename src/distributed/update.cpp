#include "lockstep/distributed/update.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <numeric>
#include <utility>

#include "lockstep/distributed/pipeline.h"
#include "lockstep/math/eigen_matrix.h"
#include "lockstep/math/kernels.h"
#include "lockstep/math/sample_weights.h"

namespace lockstep {
namespace {

// With less for each, to call them takes longer than what they do.
constexpr Index kLeastForThread = 16 * kSquareBlock;

// Splits `range` into the parts that `source` yields; without a source the whole range is one part.
template <class Work>
void for_each_part(Range range, const SumSource* source, const Work& work) {
  while (!range.empty()) {
    const Index end = source == nullptr ? range.end : std::min(source->part_end(range.begin), range.end);
    work(Range{range.begin, end});
    range.begin = end;
  }
}

double sum_of(std::span<const double> blocks) {
  return std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

}  // namespace

Scalar max_sum(double weight) {
  constexpr double kLargest = std::numeric_limits<Scalar>::max() / 2;  // a little beyond is a number, too
  return static_cast<Scalar>(std::min(double{kMaxGradient} * weight, kLargest));
}

ParameterUpdate::ParameterUpdate(const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules,
                                 std::span<const Range> owned, ShareSums share, ThreadTeam* team)
    : layout_(layout),
      optimizer_(optimizer),
      rules_(rules),
      share_(std::move(share)),
      grid_(layout),
      team_(team) {
  std::vector<Piece> whole;
  for (const Range range : owned) {
    for (std::size_t param = 0; param < layout.params.size(); ++param) {
      const Range mine = intersect(range, layout.params[param].range);
      if (mine.empty()) continue;
      whole.push_back({param, mine, {slot_size_, slot_size_ + mine.size()}, grid_.inside(mine).begin});
      slot_size_ = round_up(slot_size_ + mine.size(), kAlignment);
    }
  }
  const Index most = team == nullptr ? 1 : team->size();
  const Index threads = std::clamp<Index>(slot_size_ / kLeastForThread, 1, most);
  pieces_.resize(static_cast<std::size_t>(threads));
  for (const Piece& piece : whole) divide(piece, threads);
  if (optimizer.needs_whole_tensors()) whole_.emplace(layout, optimizer, owned, team);
}

// Divides a piece among threads by the offsets of its slots, in whole blocks.
void ParameterUpdate::divide(const Piece& piece, Index threads) {
  const auto border = [&](Index thread) {
    const Index offset = slot_size_ * thread / threads - piece.slots.begin;
    return std::clamp<Index>(round_up(offset, kSquareBlock), 0, piece.range.size());
  };
  for (Index thread = 0; thread < threads; ++thread) {
    const Range mine{thread == 0 ? 0 : border(thread),
                     thread + 1 == threads ? piece.range.size() : border(thread + 1)};
    if (mine.empty()) continue;
    at(pieces_, thread)
        .push_back({.param = piece.param,
                    .range = {piece.range.begin + mine.begin, piece.range.begin + mine.end},
                    .slots = {piece.slots.begin + mine.begin, piece.slots.begin + mine.end},
                    .first_block = piece.first_block + mine.begin / kSquareBlock});
  }
}

// Each thread takes its own, in order.
void ParameterUpdate::for_each_piece(const std::function<void(int thread, const Piece&)>& work) const {
  const auto take = [&](int thread) {
    const auto mine = static_cast<std::size_t>(thread);
    if (mine >= pieces_.size()) return;
    for (const Piece& piece : pieces_[mine]) work(thread, piece);
  };
  if (pieces_.size() > 1) {
    team_->run(take);
  } else {
    take(0);
  }
}

// Leaves out the pieces of frozen tensors.
void ParameterUpdate::for_each_trained(const std::function<void(int thread, const Piece&)>& work) const {
  for_each_piece([&](int thread, const Piece& piece) {
    if (rules_.of(layout_, piece.param).lr > 0) work(thread, piece);
  });
}

void ParameterUpdate::make_slots() {
  while (std::ssize(slots_) < optimizer_.slots()) {
    slots_.emplace_back(whole_ ? whole_->slot_size(slots_.size()) : slot_size_);
  }
}

std::span<AlignedBuffer<Scalar>> ParameterUpdate::slots() {
  make_slots();
  return slots_;
}

void ParameterUpdate::add_saved(SavedState& state, Range written, const std::string& prefix) {
  make_slots();
  if (whole_) {
    whole_->add_saved(state, written, prefix, slots_);
    return;
  }
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const auto add = [&](Range range, Range held) {
      state.push_back({.array = fmt::format("{}optimizer.{}", prefix, slot),
                       .size = layout_.size,
                       .range = range,
                       .memory = as_buffer(part(slots_[slot].span(), held)),
                       .written = intersect(range, written),
                       .by_stage = true,
                       .chunk_offsets = layout_.chunk_offsets()});
    };
    const std::size_t before = state.size();
    for (const std::vector<Piece>& pieces : pieces_) {
      for (const Piece& piece : pieces) add(piece.range, piece.slots);
    }
    // An owner of nothing lists an empty part: offset_by_stage() takes the size of the array from it.
    if (state.size() == before) add({}, {});
  }
}

std::vector<NamedSpan> ParameterUpdate::named_parts(std::span<Scalar> weights) {
  std::vector<NamedSpan> parts;
  const auto add_state = [&](std::size_t param, std::size_t slot, Range held) {
    parts.push_back({fmt::format("optimizer state {} of {}", slot, layout_.params[param].name),
                     part(slots_[slot].span(), held)});
  };
  for (const std::vector<Piece>& pieces : pieces_) {
    for (const Piece& piece : pieces) {
      parts.push_back({layout_.params[piece.param].name, part(weights, piece.range)});
      for (std::size_t slot = 0; !whole_ && slot < slots_.size(); ++slot) {
        add_state(piece.param, slot, piece.slots);
      }
    }
  }
  if (whole_ && !slots_.empty()) whole_->for_each_state(add_state);
  return parts;
}

std::vector<NamedSpan> tensors_of(const Layout& layout, std::span<Scalar> weights) {
  std::vector<NamedSpan> tensors;
  for (const ParamInfo& param : layout.params) tensors.push_back({param.name, part(weights, param.range)});
  return tensors;
}

ParameterUpdate::ParameterUpdate(const Layout& layout, const Optimizer& optimizer, const UpdateRules& rules,
                                 ThreadTeam* team)
    : ParameterUpdate(
          layout, optimizer, rules, std::vector<Range>{{0, layout.size}}, [](std::span<double>) {}, team) {}

bool ParameterUpdate::good(std::span<const Scalar> gradient_sum, double weight) const {
  const Scalar most = max_sum(weight);
  std::atomic<bool> good = true;
  for_each_piece([&](int, const Piece& piece) {
    if (!all_within(part(gradient_sum, piece.range), most)) good = false;
  });
  return good;
}

void ParameterUpdate::step(std::span<Scalar> weights, std::span<Scalar> gradient_sum,
                           const UpdateRequest& request, SumSource* source) {
  make_slots();
  const double mean = mean_of(1, request.weight);
  const bool clips_values = rules_.clip_value > 0;
  Pass pass{weights, gradient_sum, source, clips_values ? mean : 0};
  // The norm of all, or a whole tensor, comes first.
  const bool takes_all_first = rules_.clip_norm > 0 || whole_ || request.statistics != nullptr;
  if ((source != nullptr || clips_values) && takes_all_first) {
    for_each_trained([&](int thread, const Piece& piece) {
      for_each_part(piece.range, source, [&](Range range) { take_sum(thread, range, pass, Keep::kYes); });
    });
    pass.source = nullptr;
    pass.mean = 0;
  }
  if (request.statistics != nullptr)
    measure(weights, gradient_sum, clips_values ? 1 : mean, *request.statistics);
  const auto scale = static_cast<Scalar>(factor(gradient_sum, clips_values ? 1 : mean));
  const double product = optimizer_.momentum_product(request.step);
  const auto info = [&](std::size_t param) {
    const TensorMultipliers multipliers = rules_.of(layout_, param);
    return StepInfo{.step = request.step,
                    .lr = request.lr * multipliers.lr,
                    .weight_decay = rules_.weight_decay * multipliers.weight_decay,
                    .gradient_scale = scale,
                    .momentum_product = product};
  };
  if (whole_) {
    whole_->step(weights, gradient_sum, slots_, [&](std::size_t param) {
      return rules_.of(layout_, param).lr > 0 ? std::optional(info(param)) : std::nullopt;
    });
    return;
  }
  for_each_trained([&](int thread, const Piece& piece) { step(thread, piece, pass, info(piece.param)); });
  if (optimizer_.uses_trust_ratio()) move_by_trust_ratio(weights, gradient_sum, request.lr);
}

std::span<Scalar> ParameterUpdate::take_sum(int thread, Range range, const Pass& pass, Keep keep) const {
  const std::span<Scalar> target = part(pass.gradient, range);
  const std::span<Scalar> sum = pass.source == nullptr ? target : pass.source->sum(thread, range);
  if (pass.mean > 0) clip_values(sum, pass.mean);
  if (keep == Keep::kNo || sum.data() == target.data()) return sum;
  std::ranges::copy(sum, target.begin());
  return target;
}

void ParameterUpdate::step(int thread, const Piece& piece, const Pass& pass, const StepInfo& info) {
  const Keep keep = optimizer_.uses_trust_ratio() ? Keep::kYes : Keep::kNo;  // the direction is read again
  for_each_part(piece.range, pass.source, [&](Range range) {
    step_part(piece, range, take_sum(thread, range, pass, keep), pass.weights, info);
  });
}

// In blocks, each of which asks for the memory of the next.
void ParameterUpdate::step_part(const Piece& piece, Range range, std::span<Scalar> sum,
                                std::span<Scalar> weights, const StepInfo& info) {
  const auto slot_of = [&](std::size_t slot, Range block) {
    const Index shift = piece.slots.begin - piece.range.begin;
    return part(slots_[slot].span(), {block.begin + shift, block.end + shift});
  };
  for (Index begin = range.begin; begin < range.end; begin += kStepBlock) {
    const Range block{begin, std::min(begin + kStepBlock, range.end)};
    const Range next{block.end, std::min(block.end + kStepBlock, piece.range.end)};
    std::array<std::span<Scalar>, kMaxSlots> slots;
    prefetch_to_write(part(weights, next));
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      prefetch_to_write(slot_of(slot, next));
      slots[slot] = slot_of(slot, block);
    }
    optimizer_.update({.weights = part(weights, block),
                       .gradient = part(sum, {block.begin - range.begin, block.end - range.begin}),
                       .slots = std::span(slots).first(slots_.size())},
                      info);
  }
}

// From sums to means, clipped as by torch.nn.utils.clip_grad_value_.
void ParameterUpdate::clip_values(std::span<Scalar> sum, double mean) const {
  const auto factor = static_cast<Scalar>(mean);
  const auto limit = static_cast<Scalar>(rules_.clip_value);
  for (Scalar& value : sum) value = std::clamp(factor * value, -limit, limit);
}

void ParameterUpdate::make_means(std::span<Scalar> gradient_sum, double weight) {
  double mean = mean_of(1, weight);
  if (rules_.clip_value > 0) {
    for_each_piece([&](int, const Piece& piece) { clip_values(part(gradient_sum, piece.range), mean); });
    mean = 1;
  }
  const auto scale = static_cast<Scalar>(factor(gradient_sum, mean));
  for_each_piece([&](int, const Piece& piece) { as_array(part(gradient_sum, piece.range)) *= scale; });
}

// The gradient times `mean` is the mean gradient; times this it is also scaled down to clip_norm, as by
// torch.nn.utils.clip_grad_norm_.
double ParameterUpdate::factor(std::span<const Scalar> gradient, double mean) {
  if (rules_.clip_norm <= 0) return mean;
  squares_.assign(static_cast<std::size_t>(grid_.count()), 0.0);
  add_squares(gradient, squares_);
  share_(squares_);
  return mean * std::min(1.0, rules_.clip_norm / (mean * std::sqrt(sum_over_stages(squares_)) + 1e-6));
}

double ParameterUpdate::sum_over_stages(std::span<const double> blocks) const {
  if (rules_.pipeline == nullptr) return sum_of(blocks);
  std::vector<Index> chunk_begins;
  for (const std::size_t param : layout_.chunk_begins) chunk_begins.push_back(grid_.of_param(param).begin);
  return rules_.pipeline->sum_in_order(blocks, chunk_begins);
}

// `numbers`: equally many of each tensor.
std::vector<double> ParameterUpdate::join_stages(std::span<const double> numbers) const {
  if (rules_.pipeline == nullptr) return {numbers.begin(), numbers.end()};
  const Index of_tensor = std::ssize(numbers) / std::ssize(layout_.params);
  std::vector<Index> chunk_begins;
  for (const std::size_t param : layout_.chunk_begins) {
    chunk_begins.push_back(static_cast<Index>(param) * of_tensor);
  }
  return rules_.pipeline->join(numbers, chunk_begins);
}

void ParameterUpdate::agree_over_stages(bool& good, double& loss) const {
  if (rules_.pipeline != nullptr) rules_.pipeline->agree(good, loss);
}

// Sums of squares of the blocks, and counts, of this owner go to all in one message.
void ParameterUpdate::measure(std::span<const Scalar> weights, std::span<const Scalar> gradient, double mean,
                              UpdateStatistics& statistics) {
  const Index blocks = grid_.count();
  const Index counts = statistics.with_histograms ? std::ssize(layout_.params) * kHistogramBins : 0;
  std::vector<double> numbers(static_cast<std::size_t>(2 * (blocks + counts)));
  const std::span<double> all(numbers);
  const Range of_gradient{0, blocks};
  const Range of_weights{blocks, 2 * blocks};
  const Range gradients{2 * blocks, 2 * blocks + counts};
  const Range of_counts{gradients.end, gradients.end + counts};
  add_squares(gradient, part(all, of_gradient));
  add_squares(weights, part(all, of_weights));
  if (statistics.with_histograms) {
    count_values(gradient, mean, part(all, gradients));
    count_values(weights, 1, part(all, of_counts));
  }
  share_(all);
  statistics.gradient_norm = mean * std::sqrt(sum_over_stages(part(all, of_gradient)));
  statistics.weight_norm = std::sqrt(sum_over_stages(part(all, of_weights)));
  if (!statistics.with_histograms) return;
  statistics.gradients = join_stages(part(all, gradients));
  statistics.weights = join_stages(part(all, of_counts));
}

// Threads may hold pieces of one tensor, so one thread counts.
void ParameterUpdate::count_values(std::span<const Scalar> arena, double factor,
                                   std::span<double> counts) const {
  const auto scale = static_cast<Scalar>(factor);
  for (const std::vector<Piece>& pieces : pieces_) {
    for (const Piece& piece : pieces) {
      const Index first = static_cast<Index>(piece.param) * kHistogramBins;
      if (rules_.of(layout_, piece.param).lr <= 0) continue;
      for (const Scalar value : part(arena, piece.range))
        at(counts, first + histogram_bin(scale * value)) += 1;
    }
  }
}

void ParameterUpdate::add_squares(std::span<const Scalar> arena, std::span<double> blocks) const {
  for_each_trained([&](int, const Piece& piece) {
    const Index count = divide_up(piece.range.size(), kSquareBlock);
    sum_squares_of_blocks(part(arena, piece.range),
                          part(blocks, {piece.first_block, piece.first_block + count}));
  });
}

// You et al. 2019, algorithm 2, with the identity for phi; a zero norm leaves the step as it is.
void ParameterUpdate::move_by_trust_ratio(std::span<Scalar> weights, std::span<const Scalar> direction,
                                          double lr) {
  const Index count = grid_.count();
  squares_.assign(static_cast<std::size_t>(2 * count), 0.0);
  const std::span<double> all(squares_);
  add_squares(weights, part(all, {0, count}));
  add_squares(direction, part(all, {count, 2 * count}));
  share_(all);
  for_each_trained([&](int, const Piece& piece) {
    const double own_lr = lr * rules_.of(layout_, piece.param).lr;
    const Range blocks = grid_.of_param(piece.param);
    const double weight_norm = std::sqrt(sum_of(part(all, blocks)));
    const double direction_norm = std::sqrt(sum_of(part(all, {count + blocks.begin, count + blocks.end})));
    const double ratio = weight_norm > 0 && direction_norm > 0 ? weight_norm / direction_norm : 1.0;
    as_array(part(weights, piece.range)) -=
        static_cast<Scalar>(own_lr * ratio) * as_array(part(direction, piece.range));
  });
}

}  // namespace lockstep
