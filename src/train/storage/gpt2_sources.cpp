#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/terms.h"
#include "lockstep/train/storage/model_file.h"

namespace lockstep {
namespace {

// The arguments of attend(), as it takes them.
struct Attention {
  explicit Attention(const ModelOp& op) {
    const Term term = parse_terms(op.text).front();
    TermArguments arguments(term);
    heads = arguments.take_index("heads", 1);
    const bool causal = arguments.take_flag("causal", false);
    arguments.take_index("kv_heads", 1, heads);
    const Index window = arguments.take_index("window", 0, 0);
    is_theirs = causal && window == 0 && !arguments.take_flag("rotary", false);
  }

  Index heads;
  bool is_theirs;
};

// The tensors do not say what is computed with them, nor how many heads there were: theirs have 64 numbers.
void check_operations(const Model& model) {
  static constexpr std::array<std::string_view, 5> kOthers{"embedding", "positions", "dense", "dropout",
                                                           "residual"};
  for (const ModelOp& op : model.ops()) {
    const bool is_theirs = op.name() == "attend" ? Attention(op).is_theirs
                                                 : op.text == "layer_norm" || op.text == "gelu(tanh)" ||
                                                       std::ranges::count(kOthers, op.name()) > 0;
    error_if(!is_theirs,
             "train.init_map = \"gpt2\": {} is no part of a GPT-2, which has attend(heads, causal=true), "
             "layer_norm and gelu(tanh)",
             op.title);
  }
  const ModelOp& first = *std::ranges::find(model.ops(), "attend", &ModelOp::name);
  if (first.out.dims.back() != 64 * Attention(first).heads)
    log_warning("{}: a GPT-2 has heads of 64 numbers; with others than in the file the outputs are wrong",
                first.title);
}

}  // namespace

std::vector<TensorSource> gpt2_sources(const Model& model) {
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
  const std::size_t count = model.layout().params.size();
  const std::size_t blocks = count < kAround ? 0 : (count - kAround) / kBlock.size();
  const std::size_t rest = count - blocks * kBlock.size();
  const auto ops_called = [&model](const char* name) {
    return static_cast<std::size_t>(std::ranges::count(model.ops(), name, &ModelOp::name));
  };
  error_if(
      blocks == 0 || (rest != kAround && rest != kAround + 1) || ops_called("attend") != blocks ||
          ops_called("residual") != 2 * blocks,
      "train.init_map = \"gpt2\": the model has {} tensors, and a GPT-2 of B blocks has 4 + 12 B, or one "
      "more without tie, and 2 B residuals: expected layers such as embedding(50257, 768) positions(learned) "
      "transformer(12, 12, causal=true, mlp=gelu(tanh)) layer_norm dense(50257, bias=false, tie=0)",
      count);
  check_operations(model);
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
