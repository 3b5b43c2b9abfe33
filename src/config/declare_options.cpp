#include "declare_sections.h"

namespace lockstep {

std::vector<Option> declare_options(Config& config, const KnownNames& names) {
  OptionList list;
  declare_run(list, config.run);
  declare_data(list, config.data, names);
  declare_folds(list, config.folds);
  declare_model(list, config.model, names);
  declare_train(list, config, names);
  declare_eval(list, config.eval, names);
  declare_checkpoint(list, config.checkpoint);
  declare_report(list, config.report);
  declare_distribute(list, config.distribute, names);
  declare_comm(list, config.comm);
  declare_debug(list, config.debug);
  return list.take();
}

}  // namespace lockstep
