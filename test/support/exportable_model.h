// A model with random weights and running moments, and what else an export wants.
#pragma once

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/train/storage/exporter.h"
#include "support/common.h"

namespace lockstep::test {

struct ExportableModel {
  ExportableModel(const std::string& layers, const Shape& input,
                  const Normaliser& normalise = {{0}, {1}, {{1}}}, const WindowScaling& scaling = {})
      : model({.layers = layers, .window_scaling = scaling}, input),
        normaliser(normalise),
        stored(model.stored_layout().size) {
    initialise(store(), 7, 1);
  }

  ParamStore store() { return {.layout = &model.stored_layout(), .values = stored.span()}; }
  ModelToExport to_export(const OutputForm& form = TargetKind::kClass) {
    return {.model = model, .store = store(), .normaliser = normaliser, .form = form};
  }

  Model model;
  Normaliser normaliser;
  AlignedBuffer<Scalar> stored;
};

}  // namespace lockstep::test
