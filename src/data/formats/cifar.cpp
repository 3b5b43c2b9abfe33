// The binary versions of CIFAR-10 and CIFAR-100 (A. Krizhevsky, "Learning multiple layers of features from
// tiny images", 2009): files of records without a header.
//
//   record = label image              CIFAR-10, 3073 bytes
//   record = coarse fine image        CIFAR-100, 3074 bytes; the label is the fine one
//   image = 32x32 bytes of red, then of green, then of blue
#include <fmt/format.h>

#include "data/record_file.h"
#include "fixed_records.h"

namespace lockstep {
namespace {

constexpr Index kSide = 32;
constexpr Index kChannels = 3;
constexpr Index kImage = kSide * kSide * kChannels;

FixedRecords records_with(Index labels) {
  const Element* byte = find_element("u8", ByteOrder::kLittle);
  return {.record_bytes = labels + kImage,
          .shape = {{kSide, kSide, kChannels}},
          .features = {.offset = labels, .count = kImage, .element = byte, .planes = kChannels},
          .targets = FixedField{.offset = labels - 1, .count = 1, .element = byte}};
}

FormatEntry entry(const std::string& name, const std::string& help, Index labels) {
  const FixedRecords records = records_with(labels);
  return {.name = name,
          .help = help,
          .extensions = {},
          .options = {"data.train", "data.validation_share", "data.validation", "data.test"},
          .open =
              [records](const OpenRequest& request) {
                return open_files(request, Labels::kWithTheRecords, {}, [&](const FileGroup& files) {
                  return open_fixed_records(files.records, records, true);
                });
              },
          .open_input =
              [records](const InputRequest& request) {
                return open_input_files(request, {}, [&](const FileGroup& files) {
                  return open_fixed_records(files.records, records, false);
                });
              }};
}

}  // namespace

FormatEntry cifar10_format() {
  return entry("cifar10", "the binary version of CIFAR-10: images of 32x32x3 (bytes are scaled to 0..1)", 1);
}

FormatEntry cifar100_format() {
  return entry("cifar100", "the binary version of CIFAR-100, with its fine labels", 2);
}

}  // namespace lockstep
