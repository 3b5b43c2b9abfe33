#include "lockstep/data/loading/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/hash.h"
#include "lockstep/data/inputs/byte_stream.h"

namespace lockstep {
namespace {

constexpr Index kBlockBytes = Index{64} << 10;
constexpr Index kBlocks = 66;  // blocks of all files together: the first, the last, and 64 between
constexpr Index kMaxFiles = 64;

constexpr std::array kPartsOfRecords{"features", "labels", "weights", "lengths"};

// The hash of bytes at a position: equal bytes that changed positions do not cancel.
std::uint64_t keyed(std::uint64_t hash, Index position) {
  std::uint64_t x = hash ^ (static_cast<std::uint64_t>(position) * 0x9E37'79B9'7F4A'7C15U);
  x = (x ^ (x >> 32)) * 0xD6E8'FEB8'6659'FD93U;
  return x ^ (x >> 32);
}

// `count` of [0, size), evenly spread, with the first and the last; all if there are no more.
std::vector<Index> spread(Index size, Index count) {
  std::vector<Index> chosen;
  const Index wanted = std::min(size, count);
  for (Index i = 0; i < wanted; ++i) chosen.push_back(wanted == 1 ? 0 : i * (size - 1) / (wanted - 1));
  return chosen;
}

std::vector<std::string> sampled_files(const std::vector<std::string>& all) {
  std::vector<std::string> chosen;
  for (const Index file : spread(std::ssize(all), kMaxFiles)) {
    chosen.push_back(at(all, file));
  }
  return chosen;
}

// *Collective.* Takes at least two blocks of each file: `blocks` of all together, or, if that is 0, all that
// there are.
Fingerprint sum_of_blocks(const std::vector<std::string>& files, Index blocks, PeerGroup& peers) {
  Fingerprint mine{.kind = Fingerprint::kFileBlocks, .parts = std::vector<std::uint64_t>(files.size())};
  peers.agree([&] {
    std::vector<std::byte> block(static_cast<std::size_t>(kBlockBytes));
    Index number = 0;
    for (std::size_t file = 0; file < files.size(); ++file) {
      ByteStream stream(files[file], Packing::kNone);
      const Index bytes = stream.file_bytes();
      const Index count = blocks > 0 ? blocks / std::ssize(files) : bytes / kBlockBytes + 1;
      for (const Index offset :
           spread(std::max<Index>(1, bytes - kBlockBytes + 1), std::max<Index>(2, count))) {
        if (number++ % peers.size() != peers.rank()) continue;
        stream.go_to(offset);
        const Index found = stream.read(block);
        mine.parts[file] += keyed(
            hash_bytes(std::span<const std::byte>(block).first(static_cast<std::size_t>(found))), offset);
      }
    }
  });
  mine.parts = sum_over_ranks(mine.parts, peers);
  return mine;
}

}  // namespace

RecordHashes::RecordHashes(const DatasetInfo& info)
    : bytes_{static_cast<std::size_t>(info.record_bytes - info.label_columns() * Index{sizeof(Scalar)}),
             static_cast<std::size_t>(info.target_columns) * sizeof(Scalar),
             info.weighted ? sizeof(Scalar) : 0} {
  if (info.has_lengths) bytes_.push_back(sizeof(Scalar));
  sums_.resize(bytes_.size());
}

void RecordHashes::add(Index id, std::span<const std::byte> record) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    const bool no_weight = i == 2 && bytes_[i] == 0;
    if (!no_weight) sums_[i] += keyed(hash_bytes(record.first(bytes_[i])), id);
    record = record.subspan(bytes_[i]);
  }
}

Fingerprint RecordHashes::sum(PeerGroup& peers) const {
  return {.kind = Fingerprint::kRecords, .parts = sum_over_ranks(sums_, peers)};
}

Fingerprint sample_files(const RecordSource& source, PeerGroup& peers) {
  const std::vector<std::string> files = sampled_files(source.files());
  return files.empty() ? Fingerprint{} : sum_of_blocks(files, kBlocks, peers);
}

std::string hash_files(const std::vector<std::string>& files, bool whole, PeerGroup& peers) {
  const Fingerprint found =
      whole ? sum_of_blocks(files, 0, peers) : sum_of_blocks(sampled_files(files), kBlocks, peers);
  return fmt::format("{} {:016x}", whole ? "all bytes" : found.kind,
                     hash_bytes(std::as_bytes(std::span(found.parts))));
}

std::vector<std::string> describe_changes(const Fingerprint& before, const Fingerprint& now,
                                          const RecordSource& source) {
  if (now.kind.empty() || before.kind != now.kind) return {};
  const bool of_records = now.kind == Fingerprint::kRecords;
  const std::vector<std::string> files =
      of_records ? std::vector<std::string>{} : sampled_files(source.files());
  if (before.parts.size() != now.parts.size()) {
    if (of_records)
      return {fmt::format("'{}' has {}lengths, unlike that of the run", source.info().name,
                          source.info().has_lengths ? "" : "no ")};
    return {fmt::format("'{}' is not in as many files as that of the run", source.info().name)};
  }
  std::vector<std::string> changes;
  for (std::size_t i = 0; i < now.parts.size(); ++i) {
    if (before.parts[i] == now.parts[i]) continue;
    const std::string what = of_records ? fmt::format("the {} of '{}' are not those of the run",
                                                      kPartsOfRecords[i], source.info().name)
                                        : fmt::format("the content of '{}' is not that of the run", files[i]);
    changes.push_back(
        fmt::format("{} (fingerprint {:016x}, was {:016x})", what, now.parts[i], before.parts[i]));
  }
  return changes;
}

}  // namespace lockstep
