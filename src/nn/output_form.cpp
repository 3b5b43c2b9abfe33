#include "lockstep/nn/loss.h"

namespace lockstep {
namespace {

Link usual_link(TargetKind kind) {
  switch (kind) {
    case TargetKind::kClass:
      return Link::kSoftmax;
    case TargetKind::kBinary:
      return Link::kLogit;
    case TargetKind::kValue:
      return Link::kIdentity;
  }
  return Link::kIdentity;
}

}  // namespace

OutputForm::OutputForm(TargetKind kind) : OutputForm(kind, usual_link(kind)) {}

}  // namespace lockstep
