#include "lockstep/train/storage/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr const char* kPartial = ".partial";
constexpr const char* kDamaged = ".damaged";
constexpr const char* kBest = "best";

// As far as they can be read; `error` shows whether that was all.
std::vector<std::string> names_in(const std::filesystem::path& root, std::error_code& error) {
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return names;
}

// The manifest first, also if a crash loses some of it: what is left is never taken for whole. Of a symbolic
// link only the link: what it leads to is not ours.
void remove_checkpoint(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored)) {
    std::filesystem::remove(path, ignored);
    return;
  }
  try {
    if (std::filesystem::remove(path / kManifestName, ignored)) sync_directory(path);
  } catch (const DataError&) {
    return;  // the rest is removed another time
  }
  std::filesystem::remove_all(path, ignored);
}

constexpr std::array kClockUnits{std::pair{std::string_view("second"), 1.0},
                                 std::pair{std::string_view("minute"), 60.0},
                                 std::pair{std::string_view("hour"), 3600.0}};

// One in a unit of training, above 0; nothing if the text is none.
std::optional<Duration> training_time(std::string_view key, std::string_view text) {
  try {
    const Duration duration = parse_duration(key, text);
    if (duration.value > 0) return duration;
  } catch (const ConfigError&) {
    // The caller says all that it can be.
  }
  return std::nullopt;
}

constexpr const char* kOwnerName = "owner";
constexpr const char* kLockName = "lock";

// The identity of a run among others.
struct RunIdentity {
  std::string id;  // "" if it has none
  std::filesystem::path directory;
};

std::filesystem::path real_path(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  return error ? std::filesystem::absolute(path).lexically_normal() : real;
}

bool same_place(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  return real_path(a) == real_path(b) || std::filesystem::equivalent(a, b, ignored);
}

RunIdentity identity_of(const RunDirectory& run) {
  std::string id = is_there(run.id()) ? read_file(run.id()) : "";
  if (id.ends_with('\n')) id.pop_back();
  return {.id = id, .directory = real_path(run.root)};
}

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// The file has two lines: the id, and the run directory.
std::optional<RunIdentity> owner_in(const CheckpointDirectory& checkpoints) {
  const std::filesystem::path file = checkpoints.root() / kOwnerName;
  if (!is_there(file)) return std::nullopt;
  const std::string text = read_file(file);
  const std::size_t end = text.find('\n');
  error_if<DataError>(
      end == 0 || end == std::string::npos || !text.ends_with('\n') || end + 1 == text.size(),
      "'{}' is damaged: expected the id and the directory of the run that owns the checkpoints "
      "beside it; remove it if that is this run",
      file.string());
  return RunIdentity{.id = text.substr(0, end), .directory = text.substr(end + 1, text.size() - end - 2)};
}

// The run whose run directory the checkpoints lie in, as they do unless checkpoint.dir is set.
std::optional<RunDirectory> run_around(const CheckpointDirectory& checkpoints) {
  const RunDirectory around{real_path(checkpoints.root()).parent_path()};
  if (!same_place(around.checkpoints(), checkpoints.root()) || !is_there(around.config()))
    return std::nullopt;
  return around;
}

// A run that was moved is the owner still. A copy of it has the id too, but then the owner is still in its
// place.
bool is_owner(const RunIdentity& owner, const RunIdentity& run, bool is_new) {
  if (same_place(owner.directory, run.directory)) return owner.id == run.id || (run.id.empty() && !is_new);
  return owner.id == run.id && identity_of({owner.directory}).id != owner.id;
}

[[noreturn]] void refuse(const CheckpointDirectory& checkpoints, const std::string& whose) {
  throw ConfigError(
      "checkpoint.dir '{}' is for the checkpoints of another run ({}), and two runs would remove each "
      "other's. Give this run another checkpoint.dir, or leave the key out (its checkpoints are in run.dir "
      "then). To go on with that run, name its run.dir. If the checkpoints that are there are no longer "
      "needed, remove them",
      checkpoints.root().string(), whose);
}

bool is_own(const CheckpointDirectory& checkpoints, const RunDirectory& run) {
  return same_place(checkpoints.root(), run.checkpoints()) || same_place(checkpoints.root(), run.root);
}

}  // namespace

std::optional<Index> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::optional<Index> step = number_in<Index>(name.substr(kPrefix.size()));
  return step && *step >= 0 ? step : std::nullopt;
}

std::filesystem::path CheckpointDirectory::finished(Index step) const {
  return root_ / fmt::format("{}{:09}", kPrefix, step);
}

std::filesystem::path CheckpointDirectory::partial(Index step) const {
  return finished(step).string() + kPartial;
}

std::vector<Index> CheckpointDirectory::steps() const {
  std::vector<Index> steps;
  std::error_code error;
  for (const std::string& name : names_in(root_, error)) {
    if (const std::optional<Index> step = step_of(name)) steps.push_back(*step);
  }
  error_if<DataError>(error && error != std::errc::no_such_file_or_directory, "cannot read '{}': {}",
                      root_.string(), error.message());
  std::ranges::sort(steps, std::greater<>());
  return steps;
}

std::optional<Index> CheckpointDirectory::best() const {
  if (!is_there(root_ / kBest)) return std::nullopt;
  std::string name = read_file(root_ / kBest);
  if (name.ends_with('\n')) name.pop_back();
  return step_of(name);
}

void CheckpointDirectory::mark_best(Index step) const {
  write_file_atomically(root_ / kBest, finished(step).filename().string() + "\n");
}

void CheckpointDirectory::remove_old(Index keep) const {
  const std::vector<Index> all = steps();
  const std::optional<Index> kept = best();
  for (std::size_t i = static_cast<std::size_t>(keep); i < all.size(); ++i) {
    if (all[i] != kept) remove_checkpoint(finished(all[i]));
  }
}

void CheckpointDirectory::make_partial(Index step) const {
  remove_partial();
  const std::filesystem::path directory = partial(step);
  std::error_code error;
  if (!std::filesystem::exists(root_, error)) create_synced_directories(root_, error);
  if (!error && !std::filesystem::create_directory(directory, error) && !error) {
    error = std::make_error_code(std::errc::file_exists);
  }
  if (error) throw DataError("cannot create '{}': {}", directory.string(), error.message());
}

void CheckpointDirectory::remove_partial() const {
  const std::string of_best = std::string(kBest) + kPartial;
  std::error_code ignored;
  for (const std::string& name : names_in(root_, ignored)) {
    const bool of_step = name.starts_with(kPrefix) && name.ends_with(kPartial);
    if (of_step || name.starts_with(of_best)) remove_checkpoint(root_ / name);
  }
}

std::vector<std::string> CheckpointDirectory::damaged() const {
  std::vector<std::string> damaged;
  std::error_code ignored;
  for (const std::string& name : names_in(root_, ignored)) {
    if (name.starts_with(kPrefix) && name.ends_with(kDamaged)) damaged.push_back(name);
  }
  std::ranges::sort(damaged);
  return damaged;
}

void CheckpointDirectory::set_aside(Index step) const {
  const std::filesystem::path away = finished(step).string() + kDamaged;
  std::error_code ignored;
  std::filesystem::remove_all(away, ignored);
  std::filesystem::rename(finished(step), away, ignored);
}

CheckpointFile describe_file(const std::filesystem::path& path) {
  CheckpointFile file;
  check_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(static_cast<std::size_t>(std::min(kCheckedBytes, file_bytes(path))));
  while (in && !block.empty()) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    const auto got = static_cast<std::size_t>(in.gcount());
    if (got == 0) break;
    file.bytes += static_cast<Index>(got);
    file.checksums.push_back(hash_bytes(std::as_bytes(std::span(block).first(got))));
  }
  if (!in.is_open() || in.bad()) {
    const std::string problem = fmt::format("cannot {} '{}': {}", in.is_open() ? "read" : "open",
                                            path.string(), std::strerror(errno));
    if (!in.is_open()) throw CannotOpenError(problem);
    throw DataError(problem);
  }
  return file;
}

CheckpointFile describe_bytes(std::span<const std::byte> bytes) {
  CheckpointFile file{.bytes = std::ssize(bytes), .checksums = {}};
  while (!bytes.empty()) {
    const std::size_t taken = std::min(bytes.size(), static_cast<std::size_t>(kCheckedBytes));
    file.checksums.push_back(hash_bytes(bytes.first(taken)));
    bytes = bytes.subspan(taken);
  }
  return file;
}

bool Interval::is_due(const Progress& before, const Progress& after) const {
  if (!training) return false;
  const auto passed = [&](const Progress& at) {
    return std::floor(training->measure(at) / training->value + 1e-9);
  };
  return passed(after) > passed(before);
}

Interval parse_interval(std::string_view key, std::string_view text) {
  if (text == "never") return {};
  if (const std::optional<double> seconds = clock_seconds(text)) return {.training = {}, .seconds = seconds};
  if (const std::optional<Duration> duration = training_time(key, text)) return {duration, {}};
  throw ConfigError(
      "{} is {}: expected \"never\", or a number above 0 with its unit, such as \"500 steps\", \"2000000 "
      "samples\", \"1 epoch\", \"10 minutes\"",
      key, in_quotes(text));
}

Interval parse_training_interval(std::string_view key, std::string_view text) {
  if (text == "never") return {};
  if (const std::optional<Duration> duration = training_time(key, text)) return {duration, {}};
  throw ConfigError(
      "{} is {}: expected \"never\", or a number above 0 with its unit, steps, samples or epochs (not a time "
      "by the clock, which would differ from run to run), such as \"500 steps\" or \"1 epoch\"",
      key, in_quotes(text));
}

std::optional<double> clock_seconds(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.ends_with('s')) unit.remove_suffix(1);
  for (const auto& [name, seconds] : kClockUnits) {
    if (unit == name) return number * seconds;
  }
  return std::nullopt;
}

void refuse_foreign_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run) {
  if (is_own(checkpoints, run)) return;
  if (const auto around = run_around(checkpoints)) {
    refuse(checkpoints, fmt::format("'{}'", around->root.string()));
  }
  const std::vector<Index> steps = checkpoints.steps();
  if (steps.empty()) return;
  const bool is_new = !is_there(run.config());
  if (const auto owner = owner_in(checkpoints)) {
    if (is_owner(*owner, identity_of(run), is_new)) return;
    refuse(checkpoints, fmt::format("'{}'", owner->directory.string()));
  }
  if (!is_new) return;
  refuse(checkpoints, fmt::format("its run.dir stands in '{}'",
                                  (checkpoints.finished(steps.front()) / kCheckpointConfig).string()));
}

RunLock claim_checkpoints(const CheckpointDirectory& checkpoints, const RunDirectory& run) {
  if (is_own(checkpoints, run)) return {};
  const std::filesystem::path& root = checkpoints.root();
  std::error_code error;
  create_synced_directories(root, error);
  if (error) throw DataError("cannot create checkpoint.dir '{}': {}", root.string(), error.message());
  RunLock lock(root / kLockName, fmt::format("checkpoint.dir '{}'", root.string()));
  refuse_foreign_checkpoints(checkpoints, run);
  RunIdentity identity = identity_of(run);
  if (identity.id.empty()) {
    // A run that lost its id takes it back from what it owns.
    const auto owner = checkpoints.steps().empty() ? std::nullopt : owner_in(checkpoints);
    identity.id = owner ? owner->id : random_id();
    write_file_atomically(run.id(), identity.id + "\n");
  }
  write_file_atomically(root / kOwnerName, fmt::format("{}\n{}\n", identity.id, identity.directory.string()));
  return lock;
}

}  // namespace lockstep
