// The options, section by section.
#pragma once

#include "option_list.h"

namespace lockstep {

void declare_run(OptionList& list, RunOptions& run);
void declare_data(OptionList& list, DataOptions& data, const KnownNames& names);
void declare_folds(OptionList& list, FoldOptions& folds);
void declare_model(OptionList& list, ModelOptions& model, const KnownNames& names);
void declare_train(OptionList& list, Config& config, const KnownNames& names);
void declare_eval(OptionList& list, EvalOptions& eval, const KnownNames& names);
void declare_checkpoint(OptionList& list, CheckpointOptions& checkpoint);
void declare_report(OptionList& list, ReportOptions& report);
void declare_distribute(OptionList& list, DistOptions& distribute, const KnownNames& names);
void declare_comm(OptionList& list, CommOptions& comm);
void declare_debug(OptionList& list, DebugOptions& debug);

}  // namespace lockstep
