// ONNX files of models, read back with the classes of the format.
#pragma once

#include <onnx/onnx_pb.h>

#include "lockstep/base/catalog.h"
#include "lockstep/base/file.h"
#include "lockstep/train/storage/exporter.h"
#include "support/temporary_directory.h"

namespace lockstep::test {

inline onnx::ModelProto export_onnx(const ModelToExport& exported, const std::string& format = "onnx") {
  const TemporaryDirectory directory;
  const std::string path = directory / "model.onnx";
  OutputFile output(path);
  find_entry(exporter_catalog(), "export format", format).write(exported, output);
  output.commit();
  onnx::ModelProto file;
  EXPECT_TRUE(file.ParseFromString(read_file(path)));
  return file;
}

}  // namespace lockstep::test
