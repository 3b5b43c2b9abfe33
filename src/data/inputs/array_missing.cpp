// A build that reads no archives of numpy arrays.
#include <fmt/format.h>

#include "byte_inputs.h"
#include "lockstep/base/build_info.h"

namespace lockstep {

std::unique_ptr<ByteStream::Input> open_array(const ArrayPath& path) {
  require_feature("ZIP", fmt::format("cannot read '{}'", path.file));
  return nullptr;
}

std::vector<std::string> names_in_archive(const std::string& path) {
  require_feature("ZIP", fmt::format("cannot read '{}'", path));
  return {};
}

}  // namespace lockstep
