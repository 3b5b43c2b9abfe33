// Predictions of a trained model as a file: its rows, and what stands beside them.
#pragma once

#include "app/commands.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/record_source.h"
#include "lockstep/train/storage/prediction_file.h"
#include "trained_model.h"

namespace lockstep {

/// The rows that were written. A record has several rows where it is a forecast, or has targets by position.
struct WrittenRows {
  Index rows = 0;     ///< those of all records that could be read
  Index crossed = 0;  ///< records, or positions, whose quantiles crossed
  BadRows bad = {};
};

/// *Collective.* Predicts all records of `source`; rank 0 writes them to the file that the request names. The
/// same on all ranks. Errors: AgreedError.
WrittenRows write_predictions(Communicator& comm, const TrainedModel& trained, const RecordSource& source,
                              const PredictRequest& request);

}  // namespace lockstep
