// The prediction is the mean of the members' predictions, so an output is what has that mean behind its link:
//
//   identity  mean of z[m]
//   log       log mean of e^z[m]
//   softmax   log mean of softmax(z[m]), for each class
//   logit     log mean of sigmoid(z[m]) - log mean of sigmoid(-z[m])
//
// Logarithms of means are taken of logarithms, the largest first, so that none is lost to underflow.
#include "joined_members.h"

#include <cmath>

#include "lockstep/math/elementary.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {
namespace {

// log of the mean of e^value(m).
template <class Value>
Scalar log_mean_exp(Index members, const Value& value) {
  Scalar largest = value(0);
  for (Index m = 1; m < members; ++m) {
    const Scalar here = value(m);
    largest = here > largest || std::isnan(here) ? here : largest;
  }
  Scalar sum = 0;
  for (Index m = 0; m < members; ++m) sum += exp_nonpositive(value(m) - largest);
  return largest + logarithm(sum / static_cast<Scalar>(members));
}

class JoinedMembers final : public Layer, public OnnxWords {
 public:
  explicit JoinedMembers(Link link) : link_(link) {}

  Shape declare(std::span<const Shape> inputs, ParamDeclarer&) override {
    members_ = inputs.front().dims[0];
    outputs_ = inputs.front().dims[1];
    return {{outputs_}};
  }

  void forward(const ForwardArgs& args) const override {
    for (Index row = 0; row < args.y.rows(); ++row) {
      join(args.x().data() + row * members_ * outputs_, args.cache.data() + row * cache_size(),
           args.y.data() + row * outputs_);
    }
  }
  // Training takes the loss of each member: see Model::members().
  void backward(const BackwardArgs&) const override {}

  bool reads_input() const override { return false; }
  Index cache_size() const override { return link_ == Link::kSoftmax ? members_ : 0; }
  Operation operation() const override { return {.name = "mean of members"}; }
  Index flops() const override { return members_ * outputs_; }

  // From [N, 1, members, outputs].
  std::string add_to(OnnxNodes& graph, const OnnxLayer& layer) const override {
    return graph.add("Flatten", {add_mean(graph, layer.inputs.front())}, {{"axis", Index{1}}});
  }

 private:
  // [N, 1, 1, outputs]
  std::string add_mean(OnnxNodes& graph, const std::string& z) const {
    const std::vector<OnnxAttribute> over_members{{"axes", std::vector<Index>{1, 2}}};
    if (link_ == Link::kIdentity) return graph.add("ReduceMean", {z}, over_members);
    if (link_ == Link::kLogit) {
      const std::string minus = graph.add_number(-1);
      const auto log_sum = [&](const std::string& x) {
        const std::string logs = graph.add("Mul", {graph.add("Softplus", {x}), minus});
        return graph.add("ReduceLogSumExp", {logs}, over_members);
      };
      return graph.add("Sub", {log_sum(graph.add("Mul", {z, minus})), log_sum(z)});
    }
    const std::string logs = link_ == Link::kSoftmax ? graph.add("LogSoftmax", {z}, {{"axis", Index{3}}}) : z;
    const std::string count = graph.add_number(std::log(static_cast<double>(members_)));
    return graph.add("Sub", {graph.add("ReduceLogSumExp", {logs}, over_members), count});
  }

  // `totals`: memory for a number of each member, with softmax.
  void join(const Scalar* z, Scalar* totals, Scalar* y) const {
    for (Index m = 0; link_ == Link::kSoftmax && m < members_; ++m) {
      const Scalar* own = z + m * outputs_;
      totals[m] = log_mean_exp(outputs_, [own](Index i) { return own[i]; }) +
                  logarithm(static_cast<Scalar>(outputs_));
    }
    for (Index i = 0; i < outputs_; ++i) {
      const auto output = [&](Index m) { return z[m * outputs_ + i]; };
      switch (link_) {
        case Link::kIdentity: {
          Scalar sum = 0;
          for (Index m = 0; m < members_; ++m) sum += output(m);
          y[i] = sum / static_cast<Scalar>(members_);
          break;
        }
        case Link::kLog:
          y[i] = log_mean_exp(members_, output);
          break;
        case Link::kSoftmax:
          y[i] = log_mean_exp(members_, [&](Index m) { return output(m) - totals[m]; });
          break;
        case Link::kLogit:
          y[i] = log_mean_exp(members_, [&](Index m) { return -log_1_plus_exp(-output(m)); }) -
                 log_mean_exp(members_, [&](Index m) { return -log_1_plus_exp(output(m)); });
          break;
      }
    }
  }

  Link link_;
  Index members_ = 0;
  Index outputs_ = 0;
};

}  // namespace

std::unique_ptr<Layer> join_members(Link link) {
  return std::make_unique<JoinedMembers>(link);
}

}  // namespace lockstep
