#include <vector>

#include "lockstep/nn/layer.h"

namespace lockstep {

// One line for each kind of layer in layers/; functions of single scalars stand together in elementwise.cpp.
LayerEntry dense_entry();
LayerEntry conv2d_entry();
LayerEntry embedding_entry();
LayerEntry periodic_entry();
LayerEntry scale_entry();
LayerEntry tabm_entry();
LayerEntry tabm_dense_entry();
LayerEntry tabm_heads_entry();
LayerEntry maxpool_entry();
LayerEntry avgpool_entry();
LayerEntry global_avgpool_entry();
LayerEntry batch_norm_entry();
LayerEntry layer_norm_entry();
LayerEntry dropout_entry();
LayerEntry flatten_entry();
LayerEntry slice_entry();
LayerEntry as_sequence_entry();
LayerEntry conv1d_entry();
LayerEntry maxpool1d_entry();
LayerEntry avgpool1d_entry();
LayerEntry last_entry();
LayerEntry mean_over_time_entry();
LayerEntry max_over_time_entry();
LayerEntry lstm_entry();
LayerEntry gru_entry();
LayerEntry attend_entry();
LayerEntry positions_entry();
LayerEntry rms_norm_entry();
LayerEntry swiglu_entry();
std::vector<LayerEntry> elementwise_entries();

std::span<const LayerEntry> layer_catalog() {
  static const std::vector<LayerEntry> kEntries = [] {
    std::vector<LayerEntry> entries{
        dense_entry(),       conv2d_entry(),         embedding_entry(),      periodic_entry(),
        scale_entry(),       tabm_entry(),           tabm_dense_entry(),     tabm_heads_entry(),
        maxpool_entry(),     avgpool_entry(),        global_avgpool_entry(), batch_norm_entry(),
        layer_norm_entry(),  dropout_entry(),        flatten_entry(),        slice_entry(),
        as_sequence_entry(), conv1d_entry(),         maxpool1d_entry(),      avgpool1d_entry(),
        last_entry(),        mean_over_time_entry(), max_over_time_entry(),  lstm_entry(),
        gru_entry(),         attend_entry(),         positions_entry(),      rms_norm_entry(),
        swiglu_entry()};
    const std::vector<LayerEntry> functions = elementwise_entries();
    entries.insert(entries.end(), functions.begin(), functions.end());
    return entries;
  }();
  return kEntries;
}

}  // namespace lockstep
