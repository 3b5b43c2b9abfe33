// The config that trainer init writes: chosen by rules from what the data is, each line with its reason.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "init_data.h"
#include "lockstep/config/option.h"

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

struct CommentedSetting {
  std::string key;
  std::string value;  ///< the value as TOML
  std::string comment = {};
};

/// A sentence about labels that cannot be scaled where they are and are learned slowly, or "".
std::string doubt_scale(const InitData& data, const Task& task);

/// `name`: of the run, for run.dir. `preset`: model.preset as given, or ""; "tabular" and "tabular_large"
/// have settings of data and training that suit them.
std::vector<CommentedSetting> choose_settings(const InitData& data, const Task& task, const std::string& name,
                                              std::string_view preset = {});

/// The settings with those that flags give, in place of the ones of the same meaning.
std::vector<CommentedSetting> with_flags(std::vector<CommentedSetting> settings,
                                         std::span<const Option> options,
                                         const std::set<std::string>& flagged);

/// `settings` in the order of `options`, section by section, below `head`, the lines of a comment.
std::string to_toml(const std::vector<CommentedSetting>& settings, std::span<const Option> options,
                    const std::vector<std::string>& head);

}  // namespace lockstep
