// The config that trainer init writes: chosen by rules from what the data is, each line with its reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "commented_setting.h"
#include "init_data.h"

namespace lockstep {

/// The kind of thing to learn.
enum class TaskKind { kClasses, kBinary, kNumbers };

struct Task {
  TaskKind kind = TaskKind::kClasses;
  bool images = false;  ///< the records are images: the model has convolutions
  Index outputs = 1;
  bool named = false;     ///< labels become classes by data.columns
  std::string text = {};  ///< "two classes, No (73.5 %) and Yes (26.5 %)"
};

/// The names that --task takes.
std::vector<std::string> task_names();

/// The task that the labels suit, or the one that `wanted` names ("": none). Errors: ConfigError, DataError
/// if the labels do not suit it, or are all equal.
Task choose_task(const InitData& data, const std::string& wanted);

/// A sentence about labels that cannot be scaled where they are and are learned slowly, or "".
std::string doubt_scale(const InitData& data, const Task& task);

/// `name`: of the run, for run.dir. `preset`: model.preset as given, or ""; "tabular" and "tabular_large"
/// have settings of data and training that suit them.
std::vector<CommentedSetting> choose_settings(const InitData& data, const Task& task, const std::string& name,
                                              std::string_view preset = {});

}  // namespace lockstep
