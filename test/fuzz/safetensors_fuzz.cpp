// A safetensors file from anywhere: what fits the layout of a small model is taken, and nothing else happens.
#include <string>
#include <vector>

#include "lockstep/base/errors.h"
#include "lockstep/train/storage/model_file.h"
#include "scratch_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  Layout layout;
  layout.params.push_back({.name = "0.weight", .shape = {{2, 3}}, .range = {0, 6}});
  layout.params.push_back({.name = "0.running_var", .shape = {{2}}, .range = {16, 18}});
  layout.size = 32;
  std::vector<Scalar> values(32);
  const std::string path = fuzz::scratch_file(std::as_bytes(std::span(data, size)), ".safetensors");
  try {
    const ModelFile file(path);
    file.differences(layout);
    file.fill({.layout = &layout, .values = values});
    file.input();
  } catch (const Error&) {
    // What a user is told is a fine end.
  }
  return 0;
}
