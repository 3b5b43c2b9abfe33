#include "lockstep/comm/agree.h"

#include <fmt/format.h>

#include <filesystem>

#include "lockstep/base/process.h"

namespace lockstep {
namespace {

// An Error as text for other ranks: exit code and message; "" for none.
std::string encode(const std::optional<Error>& error) {
  return error ? fmt::format("{}:{}", error->exit_code(), error->what()) : "";
}

[[noreturn]] void rethrow(const std::string& text, const std::string& prefix) {
  const std::size_t colon = text.find(':');
  throw AgreedError(prefix + text.substr(colon + 1), std::stoi(text.substr(0, colon)));
}

}  // namespace

void agree(Communicator& comm, const std::function<void()>& work) {
  std::optional<Error> error;
  try {
    work();
  } catch (const CommError&) {
    throw;
  } catch (const Error& caught) {
    error = caught;
  } catch (const std::filesystem::filesystem_error& caught) {
    error = DataError("cannot use '{}': {}", caught.path1().string(), caught.code().message());
  } catch (const std::exception& caught) {
    if (!is_out_of_memory(caught)) throw;
    error = ConfigError(describe_out_of_memory(caught) + "; `trainer plan` shows what a rank needs");
  }
  const std::vector<std::string> outcomes = gather_texts(comm, encode(error));
  const auto failed = std::ranges::find_if(outcomes, [](const std::string& text) { return !text.empty(); });
  if (failed == outcomes.end()) return;
  const bool all_alike =
      std::ranges::all_of(outcomes, [&](const std::string& text) { return text == *failed; });
  rethrow(*failed, all_alike ? "" : fmt::format("rank {}: ", failed - outcomes.begin()));
}

void agree_on_first(Communicator& comm, const std::function<void()>& work) {
  agree(
      comm, comm.rank() == 0 ? work : [] {});
}

bool all_true(Communicator& comm, bool mine) {
  Index others = mine ? 0 : 1;
  comm.all_reduce_sum(as_buffer(std::span(&others, 1)));
  return others == 0;
}

std::vector<std::string> gather_texts(Communicator& comm, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::vector<Index> lengths = gather_numbers(comm, std::ssize(mine));
  const Index longest = *std::ranges::max_element(lengths);
  std::vector<std::string> texts(ranks);
  if (longest == 0) return texts;
  std::string padded = mine;
  padded.resize(static_cast<std::size_t>(longest));
  std::string all(static_cast<std::size_t>(longest) * ranks, '\0');
  comm.all_gather(as_buffer(std::span<const char>(padded)), as_buffer(std::span(all)));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts[rank] = all.substr(rank * padded.size(), static_cast<std::size_t>(lengths[rank]));
  }
  return texts;
}

std::string text_of_first(Communicator& comm, Index position, const std::string& mine) {
  const std::vector<Index> positions = gather_numbers(comm, position);
  const auto first = std::ranges::min_element(positions) - positions.begin();
  return broadcast_text(comm, mine, static_cast<int>(first));
}

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::string result = text;
  result.resize(static_cast<std::size_t>(broadcast_value(comm, std::ssize(text), root)));
  if (!result.empty()) comm.broadcast(as_buffer(std::span(result)), root);
  return result;
}

}  // namespace lockstep
