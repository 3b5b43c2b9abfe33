// Agreement of the ranks on errors and values, and exchanges of small things that are not gradients.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/comm/communicator.h"

namespace lockstep {

/// An error that all ranks throw together: nobody waits for anybody, so the job can end in an orderly way.
class AgreedError : public Error {
 public:
  using Error::Error;
};

/// *Collective.* Runs `work` on each rank; if it fails with an Error anywhere, every rank throws the same
/// AgreedError: the lowest failing rank's message and exit code, naming the rank unless all failed alike.
/// Other exceptions pass through (and abort the job); so does a CommError: the call that failed may be one in
/// which the other ranks wait, and they would never come here.
void agree(Communicator& comm, const std::function<void()>& work);

/// *Collective.* Likewise; gives the result of `work`, of each rank its own.
template <class Work>
requires(!std::is_void_v<std::invoke_result_t<const Work&>>) auto agree(Communicator& comm,
                                                                        const Work& work) {
  std::optional<std::invoke_result_t<const Work&>> result;
  agree(comm, [&] { result.emplace(work()); });
  return *std::move(result);
}

/// *Collective.* Runs `work` on rank 0 alone, likewise.
void agree_on_first(Communicator& comm, const std::function<void()>& work);

/// *Collective.* Whether it is true on all ranks.
bool all_true(Communicator& comm, bool mine);

/// *Collective.* One number of each rank, in order.
template <class Number = Index>
std::vector<Number> gather_numbers(Communicator& comm, std::type_identity_t<Number> mine) {
  std::vector<Number> all(static_cast<std::size_t>(comm.size()));
  comm.all_gather(as_buffer(std::span<const Number>(&mine, 1)), as_buffer(std::span(all)));
  return all;
}

/// *Collective.* The root's number, or its bool, everywhere.
template <class Value>
Value broadcast_value(Communicator& comm, Value mine, int root = 0) {
  comm.broadcast(as_buffer(std::span(&mine, 1)), root);
  return mine;
}

/// *Collective, blocking.* On rank 0 the records of all ranks, in order of the ranks; nothing elsewhere.
template <class Record>
std::vector<Record> gather_records(Communicator& comm, std::span<const Record> mine) {
  static_assert(std::is_trivially_copyable_v<Record>);
  constexpr int kRecords = 0;  // channel
  const std::vector<Index> counts = gather_numbers(comm, std::ssize(mine));
  if (comm.rank() > 0) {
    if (mine.empty()) return {};
    comm.start_send(kRecords, 0, as_buffer(std::as_bytes(mine)))->wait();
    return {};
  }
  std::vector<Record> all(static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), Index{0})));
  std::ranges::copy(mine, all.begin());
  std::span<Record> rest = std::span(all).subspan(mine.size());
  for (int rank = 1; rank < comm.size(); ++rank) {
    const auto count = static_cast<std::size_t>(at(counts, rank));
    if (count == 0) continue;
    comm.start_receive(kRecords, rank, as_buffer(std::as_writable_bytes(rest.first(count))))->wait();
    rest = rest.subspan(count);
  }
  return all;
}

/// *Collective.* The texts of all ranks, in order; they may differ in length.
std::vector<std::string> gather_texts(Communicator& comm, const std::string& mine);

/// *Collective.* The text of the rank with the least `position`, everywhere; of several, the lowest rank's.
std::string text_of_first(Communicator& comm, Index position, const std::string& mine);

/// *Collective.* The root's text, everywhere.
std::string broadcast_text(Communicator& comm, const std::string& text, int root = 0);

}  // namespace lockstep
