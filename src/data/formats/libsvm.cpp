// Sparse records as text, as LIBSVM, SVMlight and XGBoost take them.
#include "lockstep/data/format.h"
#include "lockstep/data/split_files.h"
#include "lockstep/data/table/sparse_source.h"

namespace lockstep {
namespace {

std::unique_ptr<RecordSource> open(const OpenRequest& request) {
  const std::string path = records_path(request.options, request.split);
  if (path.empty()) return nullptr;
  return std::make_unique<SparseSource>(TableRequest{.paths = {path},
                                                     .key = "data." + to_string(request.split),
                                                     .name = path,
                                                     .options = request.options.table,
                                                     .schema = request.schema,
                                                     .colleagues = request.colleagues});
}

std::unique_ptr<RecordSource> open_input(const InputRequest& request) {
  return std::make_unique<SparseSource>(TableRequest{.paths = {request.path},
                                                     .key = "--input",
                                                     .name = request.path,
                                                     .options = request.options.table,
                                                     .schema = request.schema,
                                                     .labels = false,
                                                     .colleagues = request.colleagues});
}

}  // namespace

FormatEntry libsvm_format() {
  return {
      .name = "libsvm",
      .help =
          "sparse records as text, raw or gzip: \"LABEL INDEX:VALUE ...\", counted from 0 if the training "
          "data has an index 0, else from 1; data.columns = [\"label: categorical\"] makes classes of labels",
      .extensions = {".libsvm", ".libsvm.gz", ".svm", ".svm.gz", ".svmlight", ".svmlight.gz"},
      .options = {"data.train", "data.validation", "data.test", "data.columns", "data.on_bad_record",
                  "data.max_bad_share", "data.chunk_kib"},
      .open = open,
      .open_input = open_input};
}

}  // namespace lockstep
