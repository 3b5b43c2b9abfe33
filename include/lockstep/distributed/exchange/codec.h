// The form in which numbers are sent: as they are, or in fewer bytes at the price of what a message loses. A
// property of the messages, not of a strategy: gradients go through the codec of the config wherever they are
// sent, and weights as they are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/distributed/options.h"

namespace lockstep {

/// A lossy encoding. The same numbers give the same message everywhere. If a number is NaN or infinite, so is
/// one at least that the message stands for: a bad gradient does not hide. Not for two threads at a time.
class Codec {
 public:
  virtual ~Codec() = default;

  /// Bytes of a message of `count` numbers, whatever they are: so both sides know it.
  virtual Index bytes(Index count) const = 0;
  /// `message`: bytes(values.size()), on a border of 4 bytes.
  virtual void encode(std::span<const Scalar> values, std::span<std::byte> message) = 0;
  /// values += factor * the numbers of the message, which are as many.
  virtual void add(std::span<const std::byte> message, Scalar factor, std::span<Scalar> values) const = 0;
};

struct CodecEntry {
  std::string name;
  std::string help;
  std::vector<std::string> options = {};  ///< keys that it reads
  /// Null for numbers that are sent as they are, and without a copy.
  std::function<std::unique_ptr<Codec>(const DistOptions&)> make;
};

/// Every codec there is. To add one: src/README.md.
std::span<const CodecEntry> codec_catalog();

/// The codec of the options; null for numbers that are sent as they are.
std::unique_ptr<Codec> make_codec(const DistOptions& options);

/// Whether numbers are rounded or left out on their way.
bool is_lossy(const DistOptions& options);

}  // namespace lockstep
