#include "lockstep/train/loop/run_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/stop_signal.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr double kLookSeconds = 0.1;
constexpr double kMaxLooks = 1e6;

}  // namespace

RunControl::RunControl(Communicator& comm, const RunControlOptions& options)
    : comm_(comm), options_(options) {}

bool RunControl::look(std::optional<std::uint64_t> checksum) {
  if (checksum) return agree(*checksum);
  if (stops() || checkpoint_due_) return true;
  ++looks_skipped_;
  return looks_skipped_ > looks_to_skip_ && agree();
}

// Rank 0 decides how many looks make the time between two agreements. Checksums are sent as halves, whose
// sums stay below 2^63.
bool RunControl::agree(std::uint64_t checksum) {
  has_wish_ = false;
  const bool first = comm_.rank() == 0;
  const std::string mine = wish();
  const double seconds = std::max(since_look_.lap(), 1e-9);
  const double looks = static_cast<double>(std::max<Index>(looks_skipped_, 1)) * kLookSeconds / seconds;
  constexpr std::uint64_t kHalf = 0xffffffff;
  std::array<Index, 5> sums{mine.empty() ? 0 : 1, first && clock_wants_checkpoint() ? 1 : 0,
                            first ? static_cast<Index>(std::min(looks, kMaxLooks)) : 0,
                            static_cast<Index>(checksum & kHalf), static_cast<Index>(checksum >> 32U)};
  comm_.all_reduce_sum(as_buffer(std::span(sums)));
  checksums_agree_ = static_cast<std::uint64_t>(sums[3]) + (static_cast<std::uint64_t>(sums[4]) << 32U) == 0;
  // Steps may become slower at once, but not faster.
  looks_to_skip_ = std::min(sums[2], 2 * looks_to_skip_ + 1);
  looks_skipped_ = 0;
  checkpoint_due_ = sums[1] > 0;  // the clock says so until one is taken
  if (sums[0] > 0 && !stops()) {
    const std::vector<std::string> reasons = gather_texts(comm_, mine);
    const auto rank = std::ranges::find_if(reasons, [](const std::string& text) { return !text.empty(); });
    reason_ = fmt::format("{}{}", *rank,
                          sums[0] == comm_.size() || comm_.size() == 1
                              ? ""
                              : fmt::format(" on rank {}", rank - reasons.begin()));
  }
  return stops() || checkpoint_due_;
}

bool RunControl::has_wish() {
  if (has_wish_ || since_wish_.seconds() < kLookSeconds) return has_wish_;
  since_wish_.lap();
  has_wish_ = !wish().empty() || (comm_.rank() == 0 && clock_wants_checkpoint());
  return has_wish_;
}

std::string RunControl::wish() const {
  if (const std::string signal = stop_signal(); !signal.empty()) return signal;
  if (comm_.rank() != 0) return "";
  std::vector<std::filesystem::path> files = options_.further_stop_files;
  if (!options_.stop_file.empty()) files.push_back(options_.stop_file);
  for (const std::filesystem::path& file : files) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return fmt::format("the file '{}'", file.string());
  }
  const double checkpoint = options_.last_checkpoint ? options_.last_checkpoint() : 0;
  const double reserve = kReserveSeconds + 2 * checkpoint;
  if (options_.seconds_left && since_start_.seconds() + reserve > *options_.seconds_left) {
    return fmt::format("the time limit ({:.0f} s are kept in reserve)", reserve);
  }
  return "";
}

bool RunControl::clock_wants_checkpoint() const {
  return options_.checkpoint_seconds && since_checkpoint_.seconds() >= *options_.checkpoint_seconds;
}

void RunControl::checkpoint_taken() {
  checkpoint_due_ = false;
  since_checkpoint_.lap();
}

}  // namespace lockstep
