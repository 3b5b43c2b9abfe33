// Records of TFRecord files: the length and the content, each with its checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// CRC-32C (Castagnoli), as RFC 3720 has it.
std::uint32_t crc32c(std::string_view bytes);

/// "LENGTH CHECKSUM CONTENT CHECKSUM" as the file has it (tensorflow.org/tutorials/load_data/tfrecord).
std::string tf_record(std::string_view content);

}  // namespace lockstep
