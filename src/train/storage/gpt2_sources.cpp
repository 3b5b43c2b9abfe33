#include <fmt/format.h>

#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {

std::vector<TensorSource> gpt2_sources(const Layout& layout) {
  // Their linear layers are "Conv1D", whose weight is in x out.
  static const std::array<TensorSource, 12> kBlock{{{.name = "ln_1.weight"},
                                                    {.name = "ln_1.bias"},
                                                    {.name = "attn.c_attn.weight", .transposed = true},
                                                    {.name = "attn.c_attn.bias"},
                                                    {.name = "attn.c_proj.weight", .transposed = true},
                                                    {.name = "attn.c_proj.bias"},
                                                    {.name = "ln_2.weight"},
                                                    {.name = "ln_2.bias"},
                                                    {.name = "mlp.c_fc.weight", .transposed = true},
                                                    {.name = "mlp.c_fc.bias"},
                                                    {.name = "mlp.c_proj.weight", .transposed = true},
                                                    {.name = "mlp.c_proj.bias"}}};
  constexpr std::size_t kAround = 4;  // embedding, positions, the last norm's two
  const std::size_t count = layout.params.size();
  const std::size_t blocks = count < kAround ? 0 : (count - kAround) / kBlock.size();
  const std::size_t rest = count - blocks * kBlock.size();
  error_if(
      blocks == 0 || (rest != kAround && rest != kAround + 1),
      "train.init_map = \"gpt2\": the model has {} tensors, and a GPT-2 of B blocks has 4 + 12 B, or one "
      "more without tie: expected layers such as embedding(50257, 768) positions(learned) transformer(12, "
      "12, "
      "causal=true, mlp=gelu(tanh)) layer_norm dense(50257, bias=false, tie=0)",
      count);
  std::vector<TensorSource> sources{{.name = "wte.weight"}, {.name = "wpe.weight", .first_rows = true}};
  for (std::size_t block = 0; block < blocks; ++block) {
    for (TensorSource source : kBlock) {
      source.name.insert(0, fmt::format("h.{}.", block));
      sources.push_back(source);
    }
  }
  sources.insert(sources.end(), {{.name = "ln_f.weight"}, {.name = "ln_f.bias"}});
  if (rest > kAround) sources.push_back({.name = "lm_head.weight"});
  return sources;
}

}  // namespace lockstep
