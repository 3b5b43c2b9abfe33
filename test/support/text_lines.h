// The records of the files of a text as lines, "1:a,b" with the line that each begins in.
#pragma once

#include "lockstep/data/table/text/text_files.h"
#include "support/common.h"

namespace lockstep::test {

/// Takes the records of all chunks of a rank.
class LinesPass final : public TextPass {
 public:
  explicit LinesPass(const TextFiles& files) : files_(files), reader_(files) {}
  TextReader& text() override { return reader_; }
  bool names_lines() const override { return tells_lines; }
  void start_again() override {
    lines.clear();
    ++starts;
  }
  void take(const TextChunk& chunk, std::size_t) override {
    const std::string_view text = reader_.read(chunk);
    RecordLines records(text, files_.dialect, reader_.first_line());
    for (std::string_view record; records.next(record);)
      lines.push_back(fmt::format("{}:{}", records.line(), record));
  }

  std::vector<std::string> lines;
  int starts = 1;
  bool tells_lines = true;

 private:
  const TextFiles& files_;
  TextReader reader_;
};

inline TextFiles look_at_files(std::span<const std::string> paths, Index chunk_bytes, PeerGroup& peers,
                               bool quotes = true) {
  return {.files = look_at_text_files(paths, {.quotes = quotes}, peers),
          .chunk_bytes = chunk_bytes,
          .dialect = {.quotes = quotes}};
}

/// Finds the chunks of a text.
inline void find_chunks(TextFiles& files, PeerGroup& peers = alone()) {
  LinesPass pass(files);
  read_text(files, peers, pass);
}

/// *Collective.* The files with their chunks.
inline TextFiles index_text(std::span<const std::string> paths, Index chunk_bytes, PeerGroup& peers,
                            bool quotes = true) {
  TextFiles files = look_at_files(paths, chunk_bytes, peers, quotes);
  find_chunks(files, peers);
  return files;
}

}  // namespace lockstep::test
