// Sparse records as text, as LIBSVM, SVMlight and XGBoost take them.
#include "sparse_source.h"

namespace lockstep {
namespace {

const std::vector<std::string> kLibsvmExtensions = {".libsvm", ".libsvm.gz", ".svm",
                                                    ".svm.gz", ".svmlight",  ".svmlight.gz"};

}  // namespace

FormatEntry libsvm_format() {
  return {
      .name = "libsvm",
      .help =
          "sparse records as text, raw or gzip: \"LABEL INDEX:VALUE ...\", counted from 0 if the training "
          "data has an index 0, else from 1; data.columns = [\"label: categorical\"] makes classes of labels",
      .extensions = kLibsvmExtensions,
      .options = {"data.train", "data.validation", "data.test", "data.columns", "data.positive",
                  "data.on_bad_record", "data.max_bad_share", "data.chunk_kib"},
      .open = [](const OpenRequest& request) {
        return open_tables<SparseSource>(request, kLibsvmExtensions);
      }};
}

}  // namespace lockstep
