// A checkpoint is written in three phases. *Staging*, on the main thread: each rank copies its parts of the
// state and its share of the model file into its own buffers; training stands still only for that. *Writing*,
// on a thread of each rank: the buffers go to files in the directory step-N.partial, and last of all the list
// of the rank's parts, state-R.json. *Commit*, on rank 0's thread: it waits for the lists of all ranks, joins
// them into the manifest, and renames the directory, which makes the checkpoint visible as a whole or not at
// all.
//
// The threads may not call MPI, so ranks see each other's progress through the lists. A failure on one rank
// is found by finish_write(), which is collective: it gathers the states of all threads before the next
// checkpoint and at the end. If one has failed, the others give up, rank 0 stops waiting, and a warning
// replaces the checkpoint. Only rank 0's thread can still be busy when all others are over.
#include "lockstep/train/storage/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/train/storage/staged_model.h"

namespace lockstep {
namespace {

std::string state_file(int rank) {
  return fmt::format("state-{:05}.bin", rank);
}
std::string parts_file(int rank) {
  return fmt::format("state-{:05}.json", rank);
}

std::string_view text_of(const AlignedBuffer<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(bytes.size())};
}

}  // namespace

CheckpointWriter::CheckpointWriter(Communicator& comm, CheckpointDirectory directory, Index keep,
                                   CheckpointHooks hooks)
    : comm_(comm), directory_(std::move(directory)), keep_(keep), hooks_(std::move(hooks)) {}

CheckpointWriter::~CheckpointWriter() {
  give_up_ = true;
  if (thread_.joinable()) thread_.join();
}

// As far as the other ranks are concerned: rank 0's thread may still wait for one that has failed.
CheckpointWriter::State CheckpointWriter::state() const {
  if (over_) return failure_.empty() ? State::kIdle : State::kFailed;
  return State::kBusy;
}

// *Collective.* Ends what can be ended: all threads if one has failed, else those that are over. How it
// stands on the rank that is furthest behind.
CheckpointWriter::State CheckpointWriter::finish_write() {
  const std::vector<Index> states = gather_numbers(comm_, static_cast<Index>(state()));
  const auto failed = std::ranges::find(states, static_cast<Index>(State::kFailed));
  if (failed != states.end()) give_up_ = true;
  if (thread_.joinable() && (over_ || give_up_)) thread_.join();
  if (failed == states.end()) return static_cast<State>(std::ranges::max(states));
  const auto rank = static_cast<int>(failed - states.begin());
  warn(fmt::format("rank {}: {}", rank, broadcast_text(comm_, failure_, rank)));
  failure_.clear();
  return State::kFailed;
}

void CheckpointWriter::warn(const std::string& failure) {
  last_failure_ = failure;
  newest_ = -1;
  if (comm_.rank() != 0) return;
  log_warning("no checkpoint of step {}: {}; training goes on{}", header_.progress.steps, failure,
              is_there(directory_.root()) ? ", and the checkpoints before it stay" : "");
  directory_.remove_partial();
}

void CheckpointWriter::start(const CheckpointContent& content) {
  const Stopwatch pause;
  if (finish_write() == State::kBusy) {
    if (comm_.rank() == 0) {
      log_warning(
          "no checkpoint of step {}: that of step {} is still being written; write fewer with "
          "checkpoint.every, or to a faster disk",
          content.header.progress.steps, header_.progress.steps);
    }
    return;
  }
  header_ = content.header;
  try {
    agree_on_first(comm_, [&] {
      if (hooks_.before) hooks_.before();
      directory_.make_partial(header_.progress.steps);
    });
    agree(comm_, [&] { stage(content); });
    if (content.staged != nullptr) gather_model(*content.staged);
  } catch (const AgreedError& error) {
    warn(error.what());
    return;
  }
  newest_ = header_.progress.steps;
  last_failure_.clear();
  written_ = false;
  over_ = false;
  give_up_ = false;
  pause_ = pause.seconds();
  watch_.lap();
  thread_ = std::thread([this] { write(); });
}

void CheckpointWriter::stage(const CheckpointContent& content) {
  parts_ = {};
  const std::string file = state_file(comm_.rank());
  Index end = 0;
  std::vector<std::pair<const SavedPart*, Index>> offsets;
  for (const SavedPart& part : content.state) {
    if (part.written.empty()) continue;
    CheckpointArray& array =
        parts_.arrays.try_emplace(part.array, CheckpointArray{part.memory.type, part.size, {}}).first->second;
    array.blocks.push_back({.range = part.written, .file = file, .offset = end});
    offsets.emplace_back(&part, end);
    end = round_up(end + part.written.size() * size_of(part.memory.type), kAlignmentBytes);
  }
  for (auto& [name, array] : parts_.arrays) {
    std::ranges::sort(array.blocks, {}, [](const CheckpointBlock& block) { return block.range.begin; });
  }
  if (bytes_.size() != end) bytes_ = AlignedBuffer<std::byte>(end);
  for (const auto& [part, offset] : offsets) {
    const Index element = size_of(part->memory.type);
    const auto* from = static_cast<const std::byte*>(part->memory.data);
    std::memcpy(bytes_.data() + offset, from + (part->written.begin - part->range.begin) * element,
                static_cast<std::size_t>(part->written.size() * element));
  }
  stage_model(content);
  if (comm_.rank() == 0) texts_ = content.texts;
}

// Shares end where checksums do.
Range CheckpointWriter::share_of_model(Index bytes, Index rank) const {
  const Range blocks = split_evenly(divide_up(bytes, kCheckedBytes), comm_.size(), rank);
  if (blocks.empty()) return {};
  return {blocks.begin * kCheckedBytes, std::min(blocks.end * kCheckedBytes, bytes)};
}

// Memory for this rank's share, which is copied, unless it has to be gathered from the stages.
void CheckpointWriter::stage_model(const CheckpointContent& content) {
  std::optional<ModelBytes> model;
  if (content.staged == nullptr) model.emplace(*content.layout, content.stored, content.input);
  model_ = share_of_model(model ? model->size() : content.staged->size(), comm_.rank());
  if (model_bytes_.size() != model_.size()) model_bytes_ = AlignedBuffer<std::byte>(model_.size());
  if (model) model->copy(model_, model_bytes_.data());
}

// *Collective.* Each group has the whole model, so the ranks of one get their shares from each other.
void CheckpointWriter::gather_model(const StagedModel& model) {
  const StageGrid& grid = model.pipeline().grid();
  std::vector<Range> shares;
  for (Index stage = 0; stage < grid.stages(); ++stage) {
    shares.push_back(share_of_model(model.size(), grid.rank_of(grid.group_of(comm_.rank()), stage)));
  }
  model.gather(shares, model_bytes_.data());
}

// The thread.
void CheckpointWriter::write() {
  try {
    const std::filesystem::path directory = directory_.partial(header_.progress.steps);
    write_parts(directory);
    written_ = true;
    if (comm_.rank() == 0 && wait_for_parts(directory)) commit(directory);
  } catch (const std::exception& error) {
    failure_ = error.what();
  }
  written_ = true;
  last_seconds_ = watch_.seconds() + pause_;
  over_ = true;
}

void CheckpointWriter::write_parts(const std::filesystem::path& directory) {
  // Described by what it is to be: a disk that keeps other bits is found out when they are read.
  const auto write = [&](const std::string& name, Index offset, std::string_view bytes) {
    if (bytes.empty()) return;
    write_part(directory / name, offset, bytes);
    parts_.files[name] = describe_bytes(std::as_bytes(std::span(bytes)));
  };
  write(state_file(comm_.rank()), 0, text_of(bytes_));
  write(kCheckpointModel, model_.begin, text_of(model_bytes_));
  for (const auto& [name, text] : texts_) write(name, 0, text);
  write_file_atomically(directory / parts_file(comm_.rank()), to_json(parts_));
}

// A rank's list is there once its file is whole.
bool CheckpointWriter::wait_for_parts(const std::filesystem::path& directory) const {
  for (int rank = 0; rank < comm_.size(); ++rank) {
    while (!is_there(directory / parts_file(rank))) {
      if (give_up_) return false;
      if (!is_there(directory)) {
        throw DataError("'{}' is gone: it was moved or removed", directory.string());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  return true;
}

void CheckpointWriter::commit(const std::filesystem::path& directory) {
  CheckpointManifest manifest{.header = header_, .parts = {}};
  Index bytes = 0;
  std::error_code error;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    const std::filesystem::path list = directory / parts_file(rank);
    manifest.parts.add(parse_parts(read_file(list), list.string()));
    std::filesystem::remove(list, error);  // one that stays does no harm
  }
  for (const auto& [name, file] : manifest.parts.files) bytes += file.bytes;
  const std::string text = to_json(manifest);
  bytes += std::ssize(text);
  write_file_atomically(directory / kManifestName, text);
  if (hooks_.sync) hooks_.sync();
  const Index step = header_.progress.steps;
  std::filesystem::rename(directory, directory_.finished(step), error);
  if (error) throw DataError("cannot rename '{}': {}", directory.string(), error.message());
  sync_directory(directory_.root());
  {
    const std::lock_guard lock(best_mutex_);
    committed_ = step;
    if (best_ == step) directory_.mark_best(step);
  }
  if (hooks_.after) hooks_.after();
  {
    const std::lock_guard lock(best_mutex_);
    directory_.remove_old(keep_);
  }
  log_info("checkpoint of step {}: {} in {:.0f} ms; training stood still for {:.1f} ms", with_commas(step),
           human_bytes(bytes), 1e3 * (watch_.seconds() + pause_), 1e3 * pause_);
}

void CheckpointWriter::finish() {
  // Rank 0's thread ends by itself once the others' parts are there; whether they will be is known when they
  // have ended, well or not.
  while (comm_.rank() != 0 ? !over_ : !written_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (finish_write() == State::kFailed) return;
  if (thread_.joinable()) thread_.join();
  const std::string failure = broadcast_text(comm_, failure_);  // the failure of rank 0 in its last part
  failure_.clear();
  if (!failure.empty()) warn("rank 0: " + failure);
}

void CheckpointWriter::mark_best(Index step) {
  if (comm_.rank() != 0) return;
  const std::lock_guard lock(best_mutex_);
  best_ = step;
  if (committed_ != step) return;
  try {
    directory_.mark_best(step);
    directory_.remove_old(keep_);  // the one that was best, which the commit left
  } catch (const Error& error) {
    log_warning("the best checkpoint, of step {}, is not marked: {}", step, error.what());
  }
}

}  // namespace lockstep
