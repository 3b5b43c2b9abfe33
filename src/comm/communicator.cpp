#include "lockstep/comm/communicator.h"

namespace lockstep {

Index size_of(DataType type) {
  switch (type) {
    case DataType::kByte:
      return 1;
    case DataType::kFloat:
      return 4;
    case DataType::kInt64:
    case DataType::kDouble:
      return 8;
  }
  return 0;
}

}  // namespace lockstep
