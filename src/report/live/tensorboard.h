// Histograms as TensorBoard reads them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// Messages in the wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding), as far as event
// files need it: field by field, in any order.

class ProtobufMessage {
 public:
  ProtobufMessage& number(int field, std::uint64_t value) {
    begin(field, 0);
    varint(value);
    return *this;
  }
  ProtobufMessage& real(int field, double value) {
    begin(field, 1);
    little_endian(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  ProtobufMessage& real(int field, float value) {
    begin(field, 5);
    little_endian(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  ProtobufMessage& text(int field, std::string_view value) {
    begin(field, 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  /// An element of a packed field, whose elements are the bytes() of a message of their own.
  ProtobufMessage& packed_real(double value) {
    little_endian(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  ProtobufMessage& message(int field, const ProtobufMessage& value) { return text(field, value.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  void begin(int field, int wire_type) { varint(static_cast<std::uint64_t>(field * 8 + wire_type)); }
  void varint(std::uint64_t value) {
    for (; value >= 128; value /= 128) bytes_ += static_cast<char>(value % 128 + 128);
    bytes_ += static_cast<char>(value);
  }
  void little_endian(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i, value /= 256) bytes_ += static_cast<char>(value % 256);
  }

  std::string bytes_;
};

/// A HistogramProto of kHistogramBins counts. Its least and greatest number, sum and sum of squares are those
/// of the middles of the bins.
ProtobufMessage histogram_message(std::span<const double> counts);

// Records of TFRecord files: the length and the content, each with its checksum.

/// CRC-32C (Castagnoli), as RFC 3720 has it.
std::uint32_t crc32c(std::string_view bytes);

/// "LENGTH CHECKSUM CONTENT CHECKSUM" as the file has it (tensorflow.org/tutorials/load_data/tfrecord).
std::string tf_record(std::string_view content);

}  // namespace lockstep
