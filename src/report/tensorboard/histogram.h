// Histograms as TensorBoard reads them.
#pragma once

#include <span>

#include "protobuf_message.h"

namespace lockstep {

/// A HistogramProto of kHistogramBins counts. Its least and greatest number, sum and sum of squares are those
/// of the middles of the bins.
ProtobufMessage histogram_message(std::span<const double> counts);

}  // namespace lockstep
