#include "lockstep/base/print.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

int first_error = 0;

}  // namespace

void print_text(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written && first_error == 0) first_error = errno;
}

void finish_printing() {
  if (std::fflush(stdout) != 0 && first_error == 0) first_error = errno;
  if (first_error == 0) return;
  throw DataError(fmt::format("cannot write all to standard output: {}", std::strerror(first_error)));
}

}  // namespace lockstep
