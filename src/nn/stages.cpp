// The division of a model into stages. A *cut* is the number of the op that a stage begins with.
//
// The automatic division makes the largest stage as small as it can be, by dynamic programming over the cuts:
// best[s][c] is the least maximum over s stages that cover the ops before c. The work of a stage is its
// operations, forward and backward, what crosses its two borders, and the weights that it shares with other
// stages, each byte as so many operations as a core does while the byte is copied to another rank. Of equal
// maxima the one with fewer bytes is taken. Under a limit on memory a part that is larger has infinite work;
// if so all divisions have, the least maximum of the memory is looked for instead.
#include "lockstep/nn/stages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

// Operations in the time of a byte: tens of GFLOP/s against some GB/s through memory that ranks share.
constexpr double kFlopsPerByte = 8;

// A weight that two stages share is sent with each micro-batch, whatever its samples. The division is the
// same for any batch, so it takes them for so many.
constexpr Index kSamplesOfMicroBatch = 32;

Index count_with_weights(const Model& model, Range ops) {
  Index count = 0;
  for (Index i = ops.begin; i < ops.end; ++i) count += model.op(i).params.empty() ? 0 : 1;
  return count;
}

// The work of a division so far: that of its largest stage, and the bytes over all its cuts.
struct Work {
  double largest = std::numeric_limits<double>::infinity();
  double bytes = 0;
  auto operator<=>(const Work&) const = default;
};

class Division {
 public:
  explicit Division(const Model& model) : model_(model), ties_(model_ties(model)) {
    flops_.push_back(0);
    for (Index i = 0; i < ops(); ++i) {
      flops_.push_back(flops_.back() + 3 * static_cast<double>(model.op(i).flops));
      weights_.push_back(weights_.back() + (model.op(i).params.empty() ? 0 : 1));
      bytes_.push_back(i == 0 ? 0 : static_cast<double>(crossing_size(model, i) * Index{sizeof(Scalar)}));
    }
    bytes_.push_back(0);
  }

  // The cost of a part, by its ops and its number.
  using Cost = std::function<double(Range ops, Index part)>;

  // The division whose largest cost is least. Empty if there is none of a finite cost.
  std::vector<Range> into(Index stages, const Cost& cost) const {
    const auto size = static_cast<std::size_t>(ops()) + 1;
    std::vector<std::vector<Work>> best(static_cast<std::size_t>(stages) + 1, std::vector<Work>(size));
    std::vector<std::vector<Index>> from(best.size(), std::vector<Index>(size, -1));
    best[0][0] = {0, 0};
    for (std::size_t stage = 1; stage < best.size(); ++stage) {
      for (Index end = 1; end <= ops(); ++end) {
        for (Index begin = 0; begin < end; ++begin) {
          const Work& before = at(best[stage - 1], begin);
          if (before.largest == Work{}.largest || at(weights_, end) == at(weights_, begin)) continue;
          const double own = cost({begin, end}, static_cast<Index>(stage) - 1);
          const Work work{std::max(before.largest, own),
                          before.bytes + at(bytes_, end) + tied_bytes({begin, end})};
          if (work < at(best[stage], end)) {
            at(best[stage], end) = work;
            at(from[stage], end) = begin;
          }
        }
      }
    }
    return trace(from);
  }

  // A tensor that crosses is sent forward, and its gradient back.
  double work_of(Range stage) const {
    return at(flops_, stage.end) - at(flops_, stage.begin) +
           2 * kFlopsPerByte * (at(bytes_, stage.begin) + at(bytes_, stage.end) + tied_bytes(stage));
  }

 private:
  Index ops() const { return std::ssize(model_.ops()); }
  // Bytes for a sample of the weights that the stage shares with others, also where these are chunks of one
  // rank, which send nothing.
  double tied_bytes(Range stage) const {
    double bytes = 0;
    for (const ModelTie& tie : ties_) {
      if (stage.contains(tie.op) == stage.contains(tie.owner)) continue;
      bytes += static_cast<double>(tie.size * Index{sizeof(Scalar)}) / kSamplesOfMicroBatch;
    }
    return bytes;
  }
  std::vector<Range> trace(const std::vector<std::vector<Index>>& from) const {
    std::vector<Range> stages;
    Index end = ops();
    for (std::size_t stage = from.size() - 1; stage > 0; --stage) {
      const Index begin = at(from[stage], end);
      if (begin < 0) return {};
      stages.insert(stages.begin(), {begin, end});
      end = begin;
    }
    return stages;
  }

  const Model& model_;
  std::vector<ModelTie> ties_;
  std::vector<double> flops_;         // of the ops before each
  std::vector<Index> weights_ = {0};  // ops with weights before each
  std::vector<double> bytes_;         // that cross before each
};

// The first op of the layer with this path, or of what it is composed of.
Index find_layer(const Model& model, const std::string& path) {
  const auto is_in = [&](const ModelOp& op) { return op.path == path || op.path.starts_with(path + "."); };
  const auto found = std::ranges::find_if(model.ops(), is_in);
  if (found != model.ops().end()) return found - model.ops().begin();
  throw ConfigError(
      "distribute.cut names {}, which is no layer of the model: expected the number of a layer, from 0, or "
      "its path, such as {}",
      in_quotes(path), in_quotes(model.ops().back().path));
}

// Says of what there are so many parts: "distribute.stages is", before the number.
std::string division_of(Index stages, Index chunks) {
  if (chunks == 1) return "distribute.stages is";
  return fmt::format("{} stages with {} chunks each (distribute.schedule = \"interleaved({})\") are", stages,
                     chunks, chunks);
}

void check_cut(const Model& model, Index stages, Index chunks, const std::vector<Index>& borders,
               std::span<const std::string> cut) {
  error_if(
      std::ssize(cut) != stages * chunks - 1,
      "distribute.cut has {} layer{} and makes {} {}, but {} {}: give one layer less than that, or \"auto\"",
      cut.size(), cut.size() == 1 ? "" : "s", cut.size() + 1, chunks > 1 ? "parts" : "stages",
      division_of(stages, chunks), stages * chunks);
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    const Range stage{borders[i], borders[i + 1]};
    error_if(count_with_weights(model, stage) == 0,
             "distribute.cut = [{}] leaves {} {} without a layer that has weights of its own: move a cut, or "
             "set it to \"auto\"",
             fmt::join(cut, ", "), chunks > 1 ? "part" : "stage", i);
  }
}

}  // namespace

std::vector<CrossingTensor> crossing_tensors(const Model& model, Index cut) {
  std::vector<CrossingTensor> tensors;
  for (Index i = cut; i < std::ssize(model.ops()); ++i) {
    for (const Index input : model.op(i).inputs) {
      if (input == kModelInput || input >= cut) continue;
      const Index owner = at(model.output_owners(), input);
      if (owner == kModelInput) continue;
      const auto known = std::ranges::find(tensors, owner, &CrossingTensor::owner);
      if (known == tensors.end()) {
        tensors.push_back({.owner = owner, .last = input});
      } else {
        known->last = std::max(known->last, input);
      }
    }
  }
  std::ranges::sort(tensors, {}, &CrossingTensor::owner);
  return tensors;
}

Index crossing_size(const Model& model, Index cut) {
  Index size = 0;
  for (const CrossingTensor& tensor : crossing_tensors(model, cut)) size += model.op(tensor.last).out.size();
  return size;
}

std::vector<ModelTie> model_ties(const Model& model) {
  std::vector<ModelTie> ties;
  for (Index i = std::ssize(model.ops()) - 1; i >= 0; --i) {
    const std::optional<Tie>& tie = model.op(i).tie;
    if (!tie) continue;
    const ParamInfo& weight = *std::ranges::find(model.layout().params, tie->weight, &ParamInfo::range);
    ties.push_back({.op = i, .owner = tie->owner, .name = weight.name, .size = weight.range.size()});
  }
  return ties;
}

bool needs_features(const Model& model) {
  return std::ranges::any_of(model.ops(), [](const ModelOp& op) {
    return std::ranges::find(op.inputs, kModelInput) != op.inputs.end();
  });
}

bool needs_targets(const Model& model) {
  const Range last = model.chunk(model.chunks() - 1).stage();
  return !model.is_stage() || last.end == std::ssize(model.whole().ops());
}

std::vector<Range> divide_model(const Model& model, Index stages, std::span<const std::string> cut,
                                Index chunks) {
  const Index most = count_with_weights(model, {0, std::ssize(model.ops())});
  const Index parts = stages * chunks;
  if (parts > most) {
    throw ConfigError(
        "{} {}, but the model has {} layer{} with weights of {} own: each needs one at least; lower "
        "distribute.stages{}",
        division_of(stages, chunks), parts, most, most == 1 ? "" : "s", most == 1 ? "its" : "their",
        chunks > 1 ? " or the number of chunks" : "");
  }
  if (cut.size() == 1 && cut.front() == kAutoCut) {
    const Division divider(model);
    return divider.into(parts, [&](Range ops, Index /*part*/) { return divider.work_of(ops); });
  }
  std::vector<Index> borders{0};
  for (const std::string& path : cut) borders.push_back(find_layer(model, path));
  borders.push_back(std::ssize(model.ops()));
  std::ranges::sort(borders);
  check_cut(model, stages, chunks, borders, cut);
  std::vector<Range> division;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) division.push_back({borders[i], borders[i + 1]});
  return division;
}

std::vector<Range> divide_within(const Model& model, Index parts, const PartMemory& memory) {
  const Division divider(model);
  std::vector<bool> named;  // by op, whether distribute.cut can say that the model is cut before it
  for (Index i = 0; i < std::ssize(model.ops()); ++i) {
    named.push_back(i == 0 || find_layer(model, model.op(i).path) == i);
  }
  const auto into = [&](const Division::Cost& cost) {
    return divider.into(parts, [&](Range ops, Index part) {
      return named[static_cast<std::size_t>(ops.begin)] ? cost(ops, part) : Work{}.largest;
    });
  };
  std::vector<Range> division = into([&](Range ops, Index part) {
    return memory.bytes(ops, part) <= memory.limit ? divider.work_of(ops) : Work{}.largest;
  });
  if (!division.empty()) return division;
  return into([&](Range ops, Index part) { return static_cast<double>(memory.bytes(ops, part)); });
}

std::vector<std::vector<Range>> chunks_of_stages(std::span<const Range> parts, Index stages) {
  std::vector<std::vector<Range>> chunks(static_cast<std::size_t>(stages));
  for (std::size_t i = 0; i < parts.size(); ++i) chunks[i % chunks.size()].push_back(parts[i]);
  return chunks;
}

}  // namespace lockstep
