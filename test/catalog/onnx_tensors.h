// Tensors in double precision, and what the operations of ONNX do with them.
#pragma once

#include "lockstep/base/types.h"
#include "support/common.h"

namespace lockstep::test {

struct OnnxTensor {
  std::vector<Index> dims;
  std::vector<double> values;           ///< row by row
  std::vector<std::string> texts = {};  ///< instead of values
  int type = 1;                         ///< onnx::TensorProto_DataType; 1: FLOAT
};

using Tensors = std::vector<OnnxTensor>;
using List = std::vector<Index>;

Index product(const List& dims);
/// The value at `place`. A dimension of 1, or one that is not there, is repeated.
double at(const OnnxTensor& tensor, const List& place);
/// A tensor whose values follow from their places; they are asked for row by row.
OnnxTensor made(const List& dims, const std::function<double(const List&)>& value);

OnnxTensor each(const OnnxTensor& x, const std::function<double(double)>& function);
OnnxTensor pairwise(const OnnxTensor& a, const OnnxTensor& b,
                    const std::function<double(double, double)>& function);

/// `a` where `condition` is not 0, else `b`.
OnnxTensor chosen(const OnnxTensor& condition, const OnnxTensor& a, const OnnxTensor& b);

/// A dimension of -1 is what is left, one of 0 that of x.
OnnxTensor reshaped(const OnnxTensor& x, List dims);
OnnxTensor flattened(const OnnxTensor& x, Index axis);
OnnxTensor unsqueezed(const OnnxTensor& x, const List& axes);
OnnxTensor transposed(const OnnxTensor& x, const List& perm);
OnnxTensor concatenated(const Tensors& parts, std::size_t axis);
OnnxTensor sliced(const OnnxTensor& x, Index first, Index end, std::size_t axis);
/// Rows of a table, or texts of a list.
OnnxTensor gathered(const OnnxTensor& table, const OnnxTensor& rows);

/// The position of the first of the largest numbers along the last axis, which goes.
OnnxTensor largest(const OnnxTensor& x);

/// Inputs: a, b and maybe what is added.
OnnxTensor gemm(const Tensors& in, bool transpose_b);
/// Products of the matrices in the last two dimensions; those before are repeated as in at().
OnnxTensor multiplied(const OnnxTensor& a, const OnnxTensor& b);
/// Over these axes, which stay with a length of 1.
OnnxTensor sum(const OnnxTensor& x, const List& axes);
OnnxTensor mean(const OnnxTensor& x, const List& axes);
OnnxTensor softmax(const OnnxTensor& x, std::size_t axis);
/// Inputs: x, scale, bias, mean, variance; channels are axis 1.
OnnxTensor batch_normalised(const Tensors& in, double epsilon);

/// What LSTM and GRU (linear before the reset) make of x [positions, N, channels]: Y [positions, directions,
/// N, units] or, if `last`, Y_h [directions, N, units]. Inputs: x, W, R and maybe B.
OnnxTensor recurrent(const Tensors& in, Index units, bool is_lstm, bool last);

/// Where windows fall on the axes of [N, channels, height, width] or [N, channels, positions].
struct Windows {
  List kernel;
  List strides;
  List pads;  ///< before on all axes, then behind: top, left, bottom, right
  List dilations;
};
/// Inputs: x, weight [channels, channels of a group, and the axes] and maybe bias.
OnnxTensor convolved(const Tensors& in, const Windows& windows, Index groups);
OnnxTensor max_pooled(const OnnxTensor& x, const Windows& windows);
OnnxTensor average_pooled(const OnnxTensor& x, const Windows& windows, bool counts_padding);

}  // namespace lockstep::test
