#include "lockstep/distributed/divided_layers.h"

#include <algorithm>

namespace lockstep {
namespace {

constexpr int kOutputs = 2;  // channels
constexpr int kInputGradients = 3;

// Weights of it.
Index largest_block(const SplitLayer& layer) {
  Index most = 0;
  for (Index block = 0; block < layer.blocks().count(); ++block) {
    most = std::max(most, layer.weights_of({block, block + 1}).size());
  }
  return most;
}

bool takes_model_input(const Model& model, Index op) {
  const Index input = model.op(op).inputs.front();
  return input == kModelInput || at(model.output_owners(), input) == kModelInput;
}

// Scalars of each buffer of a layer, for one rank.
struct BufferSizes {
  Index inputs, own_outputs, hosted_outputs, own_sums, received_sums, spare;

  Index total() const { return inputs + own_outputs + hosted_outputs + own_sums + received_sums + spare; }
};

bool wants_input_gradient(const Model& model, Index op) {
  return model.op(op).layer->split()->has_input_gradient() && !takes_model_input(model, op);
}

BufferSizes buffer_sizes(const Model& model, const Plan& plan, const DividedTensor& tensor, Index rank) {
  const ModelOp& op = model.op(tensor.op);
  const SplitLayer& layer = *op.layer->split();
  const UnitBlocks& blocks = layer.blocks();
  const Index in = op.in.front().size();
  const Index all = plan.replicas * plan.max_rows;
  const Index hosted = plan.hosted_by(rank).size() * plan.max_rows;
  const Range own = at(tensor.blocks, rank);
  Index subtrees = 0;
  for (const Range of_rank : tensor.blocks)
    subtrees += std::ssize(complete_subtrees(blocks.count(), of_rank));
  const Index own_subtrees = std::ssize(complete_subtrees(blocks.count(), own));
  const bool wants_dx = wants_input_gradient(model, tensor.op);
  return {.inputs = all * in,
          .own_outputs = layer.max_outputs(all, own),
          .hosted_outputs = layer.max_outputs(hosted, blocks.all()),
          .own_sums = wants_dx ? all * in * own_subtrees : 0,
          .received_sums = wants_dx ? hosted * in * subtrees : 0,
          .spare = std::max(spare_for_tree(blocks.count(), plan.max_rows * in),
                            spare_for_tree(plan.replicas, largest_block(layer)))};
}

std::span<Scalar> output_numbers(const BlockOutputs<Scalar>& outputs) {
  return {outputs.data, static_cast<std::size_t>(outputs.size())};
}

}  // namespace

std::vector<DividedTensor> divide_split_layers(const Model& model, Index ranks) {
  std::vector<DividedTensor> tensors;
  for (Index i = 0; i < std::ssize(model.ops()); ++i) {
    const SplitLayer* const layer = model.op(i).layer->split();
    if (layer == nullptr) continue;
    DividedTensor& tensor = tensors.emplace_back();
    tensor.op = i;
    tensor.range = layer->weights_of(layer->blocks().all());
    for (Index rank = 0; rank < ranks; ++rank) {
      const Range blocks = split_evenly(layer->blocks().count(), ranks, rank);
      tensor.blocks.push_back(blocks);
      tensor.weights.push_back(layer->weights_of(blocks));
    }
  }
  return tensors;
}

std::vector<Index> sync_points(const Model& model, const Plan& plan) {
  std::vector<Index> points = model.sync_points(plan.replicas);
  for (const DividedTensor& tensor : plan.divided) points.push_back(tensor.op);
  std::ranges::sort(points);
  return points;
}

bool runs_in_lockstep(const Model& model, const Plan& plan) {
  return !plan.divided.empty() || model.whole().runs_in_lockstep(plan.replicas);
}

bool interleaves(const Model& model, const Plan& plan) {
  return model.chunks() > 1 || runs_in_lockstep(model, plan);
}

Index divided_layer_bytes(const Model& model, const Plan& plan, Index rank) {
  Index scalars = 0;
  for (const DividedTensor& tensor : plan.divided) {
    scalars += buffer_sizes(model, plan, tensor, rank).total();
  }
  return scalars * Index{sizeof(Scalar)};
}

Index divided_layer_sent_bytes(const Model& model, const Plan& plan, Index rank) {
  const Index hosted = plan.hosted_by(rank).size() * plan.max_rows;
  const Index others = plan.replicas * plan.max_rows - hosted;
  Index scalars = 0;
  for (const DividedTensor& tensor : plan.divided) {
    const ModelOp& op = model.op(tensor.op);
    const UnitBlocks& blocks = op.layer->split()->blocks();
    const Range own = at(tensor.blocks, rank);
    const Index in = op.in.front().size();
    const Index own_outputs = op.out.size() * blocks.units(own).size() / blocks.units(blocks.all()).size();
    scalars += hosted * in * (plan.world - 1);
    scalars += others * own_outputs + hosted * (op.out.size() - own_outputs);
    if (!wants_input_gradient(model, tensor.op)) continue;
    scalars += others * in * std::ssize(complete_subtrees(blocks.count(), own));
  }
  return scalars * Index{sizeof(Scalar)};
}

DividedLayer::DividedLayer(Communicator& comm, const Plan& plan, const Model& model,
                           const DividedTensor& tensor)
    : comm_(comm),
      plan_(plan),
      tensor_(tensor),
      layer_(*model.op(tensor.op).layer->split()),
      blocks_(layer_.blocks()),
      own_(at(tensor.blocks, comm.rank())),
      hosted_(plan.hosted_by(comm.rank())),
      inputs_size_(model.op(tensor.op).in.front().size()),
      wants_dx_(wants_input_gradient(model, tensor.op)) {
  for (const Range of_rank : tensor.blocks) {
    subtrees_.push_back(complete_subtrees(blocks_.count(), of_rank));
    all_subtrees_.insert(all_subtrees_.end(), subtrees_.back().begin(), subtrees_.back().end());
  }
  const Range whole = blocks_.all();
  merges_ = plan_merges(all_subtrees_, std::span(&whole, 1));
  const BufferSizes sizes = buffer_sizes(model, plan, tensor, comm.rank());
  inputs_ = AlignedBuffer<Scalar>(sizes.inputs);
  own_outputs_ = AlignedBuffer<Scalar>(sizes.own_outputs);
  hosted_outputs_ = AlignedBuffer<Scalar>(sizes.hosted_outputs);
  own_sums_ = AlignedBuffer<Scalar>(sizes.own_sums);
  received_sums_ = AlignedBuffer<Scalar>(sizes.received_sums);
  spare_ = AlignedBuffer<Scalar>(sizes.spare);
}

void DividedLayer::begin_step(std::span<const Index> rows) {
  rows_.assign(rows.begin(), rows.end());
  begins_.assign(rows.size(), {});
  first_row_.assign(1, 0);
  for (const Index count : rows) first_row_.push_back(first_row_.back() + count);
  input_parts_.clear();
  for (const Range hosted : plan_.hosted) {
    input_parts_.push_back(
        {at(first_row_, hosted.begin) * inputs_size_, at(first_row_, hosted.end) * inputs_size_});
  }
}

BlockOutputs<Scalar> DividedLayer::own_outputs(Index replica) {
  const Index before = layer_.max_outputs(at(first_row_, replica), own_);
  return {at(begins_, replica), own_, rows_of(replica), own_outputs_.data() + before};
}

// The blocks of a replica follow one another, so those of a rank are one message.
BlockOutputs<Scalar> DividedLayer::hosted_outputs(Index replica, Range blocks) {
  const Index rows_before = at(first_row_, replica) - at(first_row_, hosted_.begin);
  const BlockOutputs<Scalar> all{at(begins_, replica), blocks_.all(), rows_of(replica),
                                 hosted_outputs_.data() + layer_.max_outputs(rows_before, blocks_.all())};
  return {all.begins, blocks, all.rows, all.data + at(all.begins, blocks.begin)};
}

std::span<Scalar> DividedLayer::own_sum(Index replica, std::size_t subtree) {
  const Index size = rows_of(replica) * inputs_size_;
  const Index first = at(first_row_, replica) * inputs_size_ * std::ssize(at(subtrees_, comm_.rank()));
  const Index begin = first + static_cast<Index>(subtree) * size;
  return part(own_sums_.span(), {begin, begin + size});
}

// `subtree`: one of all_subtrees_.
std::span<Scalar> DividedLayer::received_sum(Index replica, std::size_t subtree) {
  const Index size = rows_of(replica) * inputs_size_;
  const Index before = at(first_row_, replica) - at(first_row_, hosted_.begin);
  const Index begin = before * inputs_size_ * std::ssize(all_subtrees_) + static_cast<Index>(subtree) * size;
  return part(received_sums_.span(), {begin, begin + size});
}

// Forward, from the owners of blocks to the hosts of samples; back, the other way.
void DividedLayer::exchange_outputs(bool forward) {
  sends_.clear();
  receives_.clear();
  const auto exchange = [&](int peer, const BlockOutputs<Scalar>& from, bool sends) {
    const std::span<Scalar> numbers = output_numbers(from);
    if (numbers.empty()) return;
    if (sends) {
      sends_.push_back({peer, as_buffer(numbers)});
    } else {
      receives_.push_back({peer, as_buffer(numbers)});
    }
  };
  for (Index replica = 0; replica < plan_.replicas; ++replica) {
    const auto host = static_cast<int>(rank_of(replica));
    if (host != comm_.rank()) {
      exchange(host, own_outputs(replica), forward);
      continue;
    }
    for (int owner = 0; owner < comm_.size(); ++owner) {
      const BlockOutputs<Scalar> hosted = hosted_outputs(replica, at(tensor_.blocks, owner));
      if (owner != comm_.rank()) {
        exchange(owner, hosted, !forward);
      } else if (forward) {
        std::ranges::copy(output_numbers(own_outputs(replica)), hosted.data);
      } else {
        std::ranges::copy(output_numbers(hosted), own_outputs(replica).data);
      }
    }
  }
  comm_.start_exchange(kOutputs, sends_, receives_)->wait();
}

void DividedLayer::forward(const ModelValues& values, std::span<const ConstMatrix> inputs,
                           std::span<Matrix> outputs, const Exchange& exchange) {
  Scalar* to = inputs_.data() + at(input_parts_, comm_.rank()).begin;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (rows_of(hosted_.begin + static_cast<Index>(i)) == 0) continue;
    layer_.check_inputs(inputs[i]);
    to = std::copy_n(inputs[i].data(), inputs[i].size(), to);
  }
  const std::span<Scalar> all = part(inputs_.span(), {0, first_row_.back() * inputs_size_});
  exchange([&] { comm_.start_all_gather(as_buffer(all), input_parts_)->wait(); });
  for (Index replica = 0; replica < plan_.replicas; ++replica) {
    if (rows_of(replica) == 0) continue;
    at(begins_, replica) = layer_.find_outputs(input_of(replica));
    layer_.forward_blocks(input_of(replica), {values.weights, values.rounded}, own_outputs(replica));
  }
  exchange([&] { exchange_outputs(true); });
  for (Index i = 0; i < hosted_.size(); ++i) {
    const Index replica = hosted_.begin + i;
    if (rows_of(replica) == 0) continue;
    layer_.scatter(input_of(replica), hosted_outputs(replica, blocks_.all()).as_const(), at(outputs, i));
  }
}

void DividedLayer::backward(const ModelValues& values, std::span<const ConstMatrix> dy, std::span<Matrix> dx,
                            std::span<Scalar> gradient, const Exchange& exchange) {
  for (Index i = 0; i < hosted_.size(); ++i) {
    const Index replica = hosted_.begin + i;
    if (rows_of(replica) == 0) continue;
    layer_.gather(input_of(replica), at(dy, i), hosted_outputs(replica, blocks_.all()));
  }
  exchange([&] { exchange_outputs(false); });
  add_weight_gradients(gradient);
  if (!layer_.has_input_gradient()) {
    for (Matrix& each : dx) {
      if (each.data() != nullptr) std::ranges::fill(each.values(), Scalar{0});
    }
  }
  if (!wants_dx_) return;
  add_input_gradients(values);
  exchange([&] { exchange_input_gradients(); });
  merge_input_gradients(dx);
}

void DividedLayer::add_weight_gradients(std::span<Scalar> gradient) {
  for (Index block = own_.begin; block < own_.end; ++block) {
    const std::span<Scalar> sum = part(gradient, layer_.weights_of({block, block + 1}));
    const bool any =
        sum_along_tree({0, plan_.replicas}, sum, spare_.span(), [&](Index replica, std::span<Scalar> to) {
          if (rows_of(replica) == 0) return false;
          layer_.backward_weights(input_of(replica), own_outputs(replica).as_const(), block, to,
                                  Write::kReplace);
          return true;
        });
    if (!any) std::ranges::fill(sum, Scalar{0});
  }
}

void DividedLayer::add_input_gradients(const ModelValues& values) {
  const std::vector<Range>& mine = at(subtrees_, comm_.rank());
  for (Index replica = 0; replica < plan_.replicas; ++replica) {
    if (rows_of(replica) == 0) continue;
    const BlockOutputs<const Scalar> dy = own_outputs(replica).as_const();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      layer_.backward_data(dy, {values.weights, values.rounded}, mine[i],
                           {.sum = own_sum(replica, i), .spare = spare_.span()});
    }
  }
}

void DividedLayer::exchange_input_gradients() {
  sends_.clear();
  receives_.clear();
  for (Index replica = 0; replica < plan_.replicas; ++replica) {
    if (rows_of(replica) == 0) continue;
    const auto host = static_cast<int>(rank_of(replica));
    std::size_t subtree = 0;
    for (int owner = 0; owner < comm_.size(); ++owner) {
      for (std::size_t i = 0; i < at(subtrees_, owner).size(); ++i, ++subtree) {
        if (owner == comm_.rank() && host == comm_.rank()) {
          std::ranges::copy(own_sum(replica, i), received_sum(replica, subtree).begin());
        } else if (owner == comm_.rank()) {
          sends_.push_back({host, as_buffer(own_sum(replica, i))});
        } else if (host == comm_.rank()) {
          receives_.push_back({owner, as_buffer(received_sum(replica, subtree))});
        }
      }
    }
  }
  comm_.start_exchange(kInputGradients, sends_, receives_)->wait();
}

void DividedLayer::merge_input_gradients(std::span<Matrix> dx) {
  pieces_.resize(all_subtrees_.size());
  for (Index i = 0; i < hosted_.size(); ++i) {
    const Index replica = hosted_.begin + i;
    if (rows_of(replica) == 0) continue;
    for (std::size_t subtree = 0; subtree < pieces_.size(); ++subtree) {
      pieces_[subtree] = received_sum(replica, subtree);
    }
    apply_merges(merges_.merges, pieces_);
    std::ranges::copy(at(pieces_, merges_.survivors.front()), at(dx, i).data());
  }
}

}  // namespace lockstep
