#include "lockstep/data/records.h"

namespace lockstep {

std::string to_string(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValidation:
      return "validation";
    case Split::kTest:
      return "test";
  }
  return "";
}

}  // namespace lockstep
