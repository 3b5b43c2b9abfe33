#include "onnx_tensors.h"

#include "support/common.h"

namespace lockstep::test {
namespace {

// Where the value at `place` is stored; a dimension of 1, or one that is not there, is repeated.
std::size_t offset(const List& dims, const List& place) {
  const std::size_t missing = place.size() - dims.size();
  Index sum = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) sum = sum * dims[i] + (dims[i] == 1 ? 0 : place[missing + i]);
  return static_cast<std::size_t>(sum);
}

List with(List place, std::size_t axis, Index value) {
  place.at(axis) = value;
  return place;
}

}  // namespace

Index product(const List& dims) {
  return std::accumulate(dims.begin(), dims.end(), Index{1}, std::multiplies<>());
}

double at(const OnnxTensor& tensor, const List& place) {
  return tensor.values.at(offset(tensor.dims, place));
}

OnnxTensor made(const List& dims, const std::function<double(const List&)>& value) {
  OnnxTensor result{.dims = dims, .values = {}};
  List place(dims.size());
  for (Index i = 0; i < product(dims); ++i) {
    Index rest = i;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      place[axis] = rest % dims[axis];
      rest /= dims[axis];
    }
    result.values.push_back(value(place));
  }
  return result;
}

// ---- value by value
// ----------------------------------------------------------------------------------------

OnnxTensor each(const OnnxTensor& x, const std::function<double(double)>& function) {
  OnnxTensor result = x;
  std::ranges::transform(x.values, result.values.begin(), function);
  return result;
}

OnnxTensor pairwise(const OnnxTensor& a, const OnnxTensor& b,
                    const std::function<double(double, double)>& function) {
  List dims(std::max(a.dims.size(), b.dims.size()), 1);
  for (const OnnxTensor* x : {&a, &b}) {
    const std::size_t missing = dims.size() - x->dims.size();
    for (std::size_t i = 0; i < x->dims.size(); ++i)
      dims[missing + i] = std::max(dims[missing + i], x->dims[i]);
  }
  return made(dims, [&](const List& place) { return function(at(a, place), at(b, place)); });
}

OnnxTensor chosen(const OnnxTensor& condition, const OnnxTensor& a, const OnnxTensor& b) {
  const auto first = [](double x, double) { return x; };
  const List dims = pairwise(pairwise(condition, a, first), b, first).dims;
  return made(dims,
              [&](const List& place) { return at(condition, place) != 0 ? at(a, place) : at(b, place); });
}

// ---- shapes
// ------------------------------------------------------------------------------------------------

OnnxTensor reshaped(const OnnxTensor& x, List dims) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0) dims[i] = x.dims.at(i);
  }
  const auto open = std::ranges::find(dims, -1);
  if (open != dims.end()) *open = product(x.dims) / -product(dims);
  if (product(dims) != product(x.dims)) throw std::invalid_argument("a shape of another size");
  OnnxTensor y = x;
  y.dims = dims;
  return y;
}

OnnxTensor flattened(const OnnxTensor& x, Index axis) {
  const List before(x.dims.begin(), x.dims.begin() + axis);
  return reshaped(x, {product(before), -1});
}

OnnxTensor unsqueezed(const OnnxTensor& x, const List& axes) {
  List dims = x.dims;
  for (const Index axis : axes) dims.insert(dims.begin() + axis, 1);
  return reshaped(x, dims);
}

OnnxTensor transposed(const OnnxTensor& x, const List& perm) {
  List dims;
  for (const Index axis : perm) dims.push_back(x.dims.at(static_cast<std::size_t>(axis)));
  return made(dims, [&](const List& place) {
    List from(place.size());
    for (std::size_t i = 0; i < perm.size(); ++i) from[static_cast<std::size_t>(perm[i])] = place[i];
    return at(x, from);
  });
}

OnnxTensor concatenated(const Tensors& parts, std::size_t axis) {
  List dims = parts.front().dims;
  dims[axis] = 0;
  for (const OnnxTensor& x : parts) dims[axis] += x.dims.at(axis);
  return made(dims, [&](const List& place) {
    Index rest = place[axis];
    auto x = parts.begin();
    while (rest >= x->dims[axis]) rest -= (x++)->dims[axis];
    return at(*x, with(place, axis, rest));
  });
}

OnnxTensor sliced(const OnnxTensor& x, Index first, Index end, std::size_t axis) {
  return made(with(x.dims, axis, end - first),
              [&](const List& place) { return at(x, with(place, axis, first + place[axis])); });
}

OnnxTensor gathered(const OnnxTensor& table, const OnnxTensor& rows) {
  if (!table.texts.empty()) {
    OnnxTensor result{.dims = rows.dims, .values = {}};
    for (const double row : rows.values)
      result.texts.push_back(table.texts.at(static_cast<std::size_t>(row)));
    return result;
  }
  List dims = rows.dims;
  dims.insert(dims.end(), table.dims.begin() + 1, table.dims.end());
  return made(dims, [&](const List& place) {
    const auto border = place.begin() + std::ssize(rows.dims);
    List from{static_cast<Index>(at(rows, List(place.begin(), border)))};
    from.insert(from.end(), border, place.end());
    return at(table, from);
  });
}

// ---- sums
// --------------------------------------------------------------------------------------------------

OnnxTensor largest(const OnnxTensor& x) {
  const List dims(x.dims.begin(), x.dims.end() - 1);
  const Index last = x.dims.back();
  OnnxTensor result{.dims = dims, .values = {}};
  for (auto row = x.values.begin(); row != x.values.end(); row += last)
    result.values.push_back(static_cast<double>(std::max_element(row, row + last) - row));
  return result;
}

OnnxTensor gemm(const Tensors& in, bool transpose_b) {
  const Index inner = in[0].dims.at(1);
  return made({in[0].dims[0], in[1].dims.at(transpose_b ? 0 : 1)}, [&](const List& place) {
    double sum = in.size() > 2 ? at(in[2], place) : 0;
    for (Index k = 0; k < inner; ++k)
      sum += at(in[0], {place[0], k}) * at(in[1], transpose_b ? List{place[1], k} : List{k, place[1]});
    return sum;
  });
}

OnnxTensor multiplied(const OnnxTensor& a, const OnnxTensor& b) {
  List dims = a.dims;
  dims.back() = b.dims.back();
  const std::size_t row = dims.size() - 2;
  return made(dims, [&](const List& place) {
    double total = 0;
    for (Index i = 0; i < a.dims.back(); ++i)
      total += at(a, with(place, row + 1, i)) * at(b, with(place, row, i));
    return total;
  });
}

OnnxTensor sum(const OnnxTensor& x, const List& axes) {
  List dims = x.dims;
  for (const Index axis : axes) dims.at(static_cast<std::size_t>(axis)) = 1;
  OnnxTensor result{.dims = dims, .values = std::vector<double>(static_cast<std::size_t>(product(dims)))};
  made(x.dims, [&](const List& place) { return result.values[offset(dims, place)] += at(x, place); });
  return result;
}

OnnxTensor mean(const OnnxTensor& x, const List& axes) {
  const OnnxTensor sums = sum(x, axes);
  const double count = static_cast<double>(product(x.dims) / product(sums.dims));
  return each(sums, [&](double value) { return value / count; });
}

OnnxTensor softmax(const OnnxTensor& x, std::size_t axis) {
  return made(x.dims, [&](const List& place) {
    double sum = 0;
    for (Index i = 0; i < x.dims[axis]; ++i) sum += std::exp(at(x, with(place, axis, i)));
    return std::exp(at(x, place)) / sum;
  });
}

OnnxTensor batch_normalised(const Tensors& in, double epsilon) {
  return made(in[0].dims, [&](const List& place) {
    const List channel{place.at(1)};
    return (at(in[0], place) - at(in[3], channel)) / std::sqrt(at(in[4], channel) + epsilon) *
               at(in[1], channel) +
           at(in[2], channel);
  });
}

// ---- windows
// -----------------------------------------------------------------------------------------------

namespace {

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}

// The states of one sample in one direction; gates in the order of the standard: i, o, f, c, or z, r, h.
class OnnxCell {
 public:
  OnnxCell(const Tensors& in, Index direction, Index units, bool is_lstm)
      : in_(in),
        direction_(direction),
        units_(units),
        is_lstm_(is_lstm),
        h_(count(), 0.0),
        c_(count(), 0.0) {}

  const std::vector<double>& step(Index position, Index sample) {
    const std::vector<double> before = h_;
    const auto x_part = [&](Index gate, Index unit) {
      double sum = bias(gate, unit);
      for (Index i = 0; i < in_[0].dims[2]; ++i)
        sum += at(in_[0], {position, sample, i}) * at(in_[1], {direction_, gate * units_ + unit, i});
      return sum;
    };
    const auto h_part = [&](Index gate, Index unit) {
      double sum = bias((is_lstm_ ? 4 : 3) + gate, unit);
      for (Index i = 0; i < units_; ++i)
        sum += before[static_cast<std::size_t>(i)] * at(in_[2], {direction_, gate * units_ + unit, i});
      return sum;
    };
    const auto both = [&](Index gate, Index unit) { return x_part(gate, unit) + h_part(gate, unit); };
    for (Index unit = 0; unit < units_; ++unit) {
      double& h = h_[static_cast<std::size_t>(unit)];
      if (is_lstm_) {
        double& c = c_[static_cast<std::size_t>(unit)];
        c = sigmoid_of(both(2, unit)) * c + sigmoid_of(both(0, unit)) * std::tanh(both(3, unit));
        h = sigmoid_of(both(1, unit)) * std::tanh(c);
      } else {
        const double z = sigmoid_of(both(0, unit));
        h = (1 - z) * std::tanh(x_part(2, unit) + sigmoid_of(both(1, unit)) * h_part(2, unit)) + z * h;
      }
    }
    return h_;
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(units_); }
  double bias(Index gate, Index unit) const {
    return in_.size() < 4 || in_[3].dims.empty() ? 0 : at(in_[3], {direction_, gate * units_ + unit});
  }

  const Tensors& in_;
  Index direction_;
  Index units_;
  bool is_lstm_;
  std::vector<double> h_;
  std::vector<double> c_;
};

}  // namespace

OnnxTensor recurrent(const Tensors& in, Index units, bool is_lstm, bool last) {
  const Index positions = in[0].dims.at(0);
  const Index samples = in[0].dims.at(1);
  const Index directions = in.at(1).dims.at(0);
  OnnxTensor all{.dims = {positions, directions, samples, units}, .values = {}};
  all.values.resize(static_cast<std::size_t>(product(all.dims)));
  OnnxTensor ends{.dims = {directions, samples, units}, .values = {}};
  for (Index direction = 0; direction < directions; ++direction) {
    for (Index sample = 0; sample < samples; ++sample) {
      OnnxCell cell(in, direction, units, is_lstm);
      std::vector<double> h(static_cast<std::size_t>(units));
      const Index counted = in.size() > 4 ? static_cast<Index>(at(in[4], {sample})) : positions;
      for (Index step = 0; step < counted; ++step) {
        const Index position = direction == 0 ? step : counted - 1 - step;
        h = cell.step(position, sample);
        std::ranges::copy(
            h, all.values.begin() + ((position * directions + direction) * samples + sample) * units);
      }
      ends.values.insert(ends.values.end(), h.begin(), h.end());
    }
  }
  return last ? ends : all;
}

namespace {

// Calls visit(place in x's image, place in the kernel) for what of a window is inside.
void visit_window(const OnnxTensor& x, const Windows& windows, const List& place,
                  const std::function<void(const List&, const List&)>& visit) {
  made(windows.kernel, [&](const List& k) {
    List from(k.size());
    bool inside = true;
    for (std::size_t i = 0; i < k.size(); ++i) {
      from[i] = place[2 + i] * windows.strides[i] - windows.pads[i] + k[i] * windows.dilations[i];
      inside = inside && from[i] >= 0 && from[i] < x.dims[2 + i];
    }
    if (inside) visit(from, k);
    return 0.0;
  });
}

List window_dims(const OnnxTensor& x, const Windows& windows, Index channels) {
  List dims{x.dims[0], channels};
  const std::size_t axes = windows.kernel.size();
  for (std::size_t i = 0; i < axes; ++i) {
    const Index covered = windows.dilations.at(i) * (windows.kernel[i] - 1) + 1;
    dims.push_back((x.dims.at(2 + i) + windows.pads.at(i) + windows.pads.at(axes + i) - covered) /
                       windows.strides.at(i) +
                   1);
  }
  if (dims.size() != x.dims.size()) throw std::invalid_argument("windows of other axes");
  return dims;
}

// The place on the axes `places` of one sample and channel.
List on_axes(Index sample, Index channel, const List& places) {
  List all{sample, channel};
  all.insert(all.end(), places.begin(), places.end());
  return all;
}

}  // namespace

OnnxTensor convolved(const Tensors& in, const Windows& windows, Index groups) {
  const OnnxTensor& weight = in[1];
  const Index channels = weight.dims[0];
  const Index group_out = channels / groups;
  const Index group_in = weight.dims[1];
  return made(window_dims(in[0], windows, channels), [&](const List& place) {
    double sum = in.size() > 2 ? at(in[2], {place[1]}) : 0;
    visit_window(in[0], windows, place, [&](const List& from, const List& k) {
      for (Index c = 0; c < group_in; ++c) {
        const Index channel = place[1] / group_out * group_in + c;
        sum += at(in[0], on_axes(place[0], channel, from)) * at(weight, on_axes(place[1], c, k));
      }
    });
    return sum;
  });
}

OnnxTensor max_pooled(const OnnxTensor& x, const Windows& windows) {
  return made(window_dims(x, windows, x.dims[1]), [&](const List& place) {
    double largest = -std::numeric_limits<double>::infinity();
    visit_window(x, windows, place, [&](const List& from, const List&) {
      largest = std::max(largest, at(x, on_axes(place[0], place[1], from)));
    });
    return largest;
  });
}

OnnxTensor average_pooled(const OnnxTensor& x, const Windows& windows, bool counts_padding) {
  return made(window_dims(x, windows, x.dims[1]), [&](const List& place) {
    double sum = 0;
    Index count = 0;
    visit_window(x, windows, place, [&](const List& from, const List&) {
      sum += at(x, on_axes(place[0], place[1], from));
      ++count;
    });
    return sum / static_cast<double>(counts_padding ? product(windows.kernel) : count);
  });
}

}  // namespace lockstep::test
