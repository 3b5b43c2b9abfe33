#include "lockstep/data/inputs/reading_row.h"

#include <fmt/format.h>

#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr double kSilentSeconds = 2;
constexpr double kRedrawSeconds = 0.2;

thread_local ReadingRow* row_of_thread = nullptr;

}  // namespace

ReadingRow::ReadingRow(bool shows)
    : outermost_(shows && row_of_thread == nullptr && output_is_live() && rows_can_be_redrawn()) {
  if (outermost_) row_of_thread = this;
}

ReadingRow::~ReadingRow() {
  if (!outermost_) return;
  row_of_thread = nullptr;
  if (drawn_) erase_live_row();
}

void ReadingRow::note(std::string_view path, Index position, Index file_bytes, bool compressed) {
  ReadingRow* const row = row_of_thread;
  if (row == nullptr || row->since_start_.seconds() < kSilentSeconds) return;
  if (row->drawn_ && row->since_drawn_.seconds() < kRedrawSeconds) return;
  row->drawn_ = true;
  row->since_drawn_.lap();
  const std::string drawn = text(path, position, file_bytes, compressed);
  draw_live_row(std::string_view(drawn).substr(0, static_cast<std::size_t>(terminal_columns() - 1)));
}

std::string ReadingRow::text(std::string_view path, Index position, Index file_bytes, bool compressed) {
  const std::string name = excerpt(path.substr(path.rfind('/') + 1), 40);
  if (compressed || file_bytes == 0) return fmt::format("reading {}: {}", name, human_bytes(position));
  return fmt::format("reading {}: {} %", name, 100 * position / file_bytes);
}

}  // namespace lockstep
