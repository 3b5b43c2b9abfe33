#include "lockstep/train/rank_colleagues.h"

#include <algorithm>

#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr int kParcels = 0;  // channel

}  // namespace

void RankColleagues::agree(const std::function<void()>& work) {
  lockstep::agree(comm_, work);
}

std::vector<Bytes> RankColleagues::all_gather(std::span<const std::byte> mine) {
  return all_to_all(std::vector<Bytes>(static_cast<std::size_t>(size()), Bytes(mine.begin(), mine.end())));
}

std::vector<Bytes> RankColleagues::all_to_all(const std::vector<Bytes>& parcels) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto me = static_cast<std::size_t>(rank());
  std::vector<Index> lengths;
  for (const Bytes& parcel : parcels) lengths.push_back(static_cast<Index>(parcel.size()));
  std::vector<Index> all(ranks * ranks);
  comm_.all_gather(as_buffer(std::span<const Index>(lengths)), as_buffer(std::span(all)));

  std::vector<Bytes> arrived(ranks);
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    arrived[peer].resize(static_cast<std::size_t>(all[peer * ranks + me]));
    if (peer == me) {
      arrived[peer] = parcels[peer];
      continue;
    }
    if (!parcels[peer].empty())
      sends.push_back({static_cast<int>(peer), as_buffer(std::span(parcels[peer]))});
    if (!arrived[peer].empty())
      receives.push_back({static_cast<int>(peer), as_buffer(std::span(arrived[peer]))});
  }
  comm_.start_exchange(kParcels, sends, receives)->wait();
  return arrived;
}

}  // namespace lockstep
