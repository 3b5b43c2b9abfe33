#include "declare_sections.h"

namespace lockstep {

void declare_model(OptionList& list, ModelOptions& model, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  list.option("model.layers", model.layers,
              "The layers, from the input on, such as \"dense(256) relu dense(10)\"")
      .most_used()
      .example("conv2d(32,3,padding=1) relu maxpool(2) flatten dense(10)")
      .synonyms(
          "hidden_layers hidden_units hidden_layer_sizes hidden_sizes hidden_size hidden_dim hidden "
          "layer_sizes num_layers n_layers activation activation_function dropout dropout_rate",
          "Lockstep lists every layer in model.layers, such as \"dense(256) relu dropout(0.5) "
          "dense(10)\"")
      .if_not_given("preset")
      .expected("one text such as \"dense(256) relu dense(10)\"");
  list.choice("model.preset", model.preset, "A well-known model instead of layers of one's own",
              names.presets)
      .alias("preset")
      .if_not_given("layers")
      .synonyms("arch architecture model_name model_type backbone");
  list.option("model.outputs", model.outputs, "Outputs of the preset: classes, or numbers to predict",
              between(1, kMaxWidth))
      .read_if("model.preset", [](const Config& c) { return !c.model.preset.empty(); })
      .synonyms(
          "num_classes n_classes num_class num_labels output_size",
          "the last layer has an output for each class, such as dense(10); only a preset has model.outputs");
  list.choice("model.init", model.init, "Random numbers that the weights start from",
              {"he", "xavier", "normal", "zero"})
      .synonyms("kernel_initializer initializer weight_init");
  list.option("model.batch_norm", model.batch_norm,
              "Whose samples batch norm normalises with: local (the replica's own), averaged (the same, but "
              "running moments of all replicas), sync (all replicas), group(G) (groups of G neighbouring "
              "replicas)")
      .read_if("a batch_norm layer in the model", names.facts.has_batch_norm)
      .example("group(4)");
  list.option("model.init_std", model.init_std, "Standard deviation of the weights with init 'normal'",
              above(0))
      .read_if("model.init = \"normal\"", [](const Config& c) { return c.model.init == "normal"; });
}

}  // namespace lockstep
