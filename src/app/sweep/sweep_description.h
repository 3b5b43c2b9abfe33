// sweep.toml: what the trials of a sweep have in common, and the flags that tell them apart, each time that
// the sweep was given more of them. The numbers of the trials follow from it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/commands.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/config/trials.h"

namespace lockstep {

/// The settings of each trial, from the config that all share.
using ListTrials = std::function<std::vector<std::vector<Setting>>(const Config&, const SweepRequest&)>;

/// The text of sweep.toml for this request, where `before` is there ("": nothing is). It grows if trials come
/// to those that it has. Errors: ConfigError that names the first difference if it is of another sweep.
std::string describe_sweep(const std::string& before, const SweepRequest& request, const Config& base,
                           const ListTrials& list);

/// The trials of a text that describe_sweep() has made, by their numbers: those that came later stand behind,
/// and all have the same keys.
std::vector<std::vector<Setting>> described_trials(const std::string& text, const SweepRequest& request,
                                                   const Config& base, const ListTrials& list);

/// "train.lr 0.01, train.momentum 0.9"
std::string describe_settings(std::span<const Setting> settings);

// data.json: a hash of each data set that trials have been trained with, and the trial that was the first to
// read it. All are to be compared, so all must have had the same.

/// *Collective.* Describes the first data set whose files have changed; "" if none has, as far as they are
/// there and few enough to be listed.
std::string find_changed_data(Communicator& comm, const std::filesystem::path& file);
/// *Collective.* Notes what the trial is about to read, and describes what has changed in it; "" if nothing
/// has. Errors: AgreedError.
std::string note_data(Communicator& comm, const std::filesystem::path& file, const std::vector<RunData>& data,
                      const std::string& trial);

}  // namespace lockstep
