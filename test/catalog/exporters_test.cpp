// What every exporter must keep, and the bytes of those whose form is simple.
#include <zlib.h>

#include "lockstep/base/catalog.h"
#include "lockstep/base/file.h"
#include "lockstep/train/storage/exporter.h"
#include "lockstep/train/storage/model_file.h"
#include "support/exportable_model.h"
#include "support/temporary_directory.h"

namespace lockstep::exporters_test {
namespace {

using namespace test;

class Exporters : public testing::Test {
 protected:
  const Layout& layout() const { return exportable_.model.stored_layout(); }
  std::string exported(const std::string& name) {
    const std::string path = directory_ / ("model." + name);
    OutputFile file(path);
    find_entry(exporter_catalog(), "export format", name).write(exportable_.to_export(), file);
    file.commit();
    const std::string bytes = read_file(path);
    EXPECT_EQ(file.bytes(), std::ssize(bytes));
    return bytes;
  }

  TemporaryDirectory directory_;
  ExportableModel exportable_{"dense(5) batch_norm relu dense(3)", {{2, 3}}};
};

TEST_F(Exporters, DescribeThemselvesAndWriteTheSameBytesTwice) {
  std::set<std::string> names;
  for (const ExporterEntry& entry : exporter_catalog()) {
    SCOPED_TRACE(entry.name);
    EXPECT_TRUE(names.insert(entry.name).second);
    EXPECT_FALSE(entry.help.empty());
    const std::string first = exported(entry.name);
    EXPECT_GT(std::ssize(first), layout().count() * Index{sizeof(Scalar)});
    EXPECT_TRUE(exported(entry.name) == first);
    exportable_.stored.data()[0] += 1;
    EXPECT_FALSE(exported(entry.name) == first) << "the weights are not in it";
  }
}

TEST_F(Exporters, SafetensorsIsTheFileOfARun) {
  const std::string path = directory_ / "run.safetensors";
  save_model(path, exportable_.store(), exportable_.model.input());
  EXPECT_TRUE(exported("safetensors") == read_file(path));
}

TEST_F(Exporters, SafetensorsKeepsWhatTheOutputsMean) {
  const std::string path = directory_ / "calibrated.safetensors";
  ModelToExport calibrated = exportable_.to_export();
  calibrated.temperature = 2;
  calibrated.threshold = 0.25;
  OutputFile file(path);
  find_entry(exporter_catalog(), "export format", "safetensors").write(calibrated, file);
  file.commit();
  EXPECT_EQ(ModelFile(path).fact(kTemperatureFact), "2");
  EXPECT_EQ(ModelFile(path).fact(kThresholdFact), "0.25");
}

template <class T>
T number(const std::string& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The files of a zip file whose local headers are complete, not compressed (PKWARE's APPNOTE, 4.3.7).
std::map<std::string, std::string> unzip(const std::string& zip) {
  std::map<std::string, std::string> files;
  std::size_t at = 0;
  while (number<std::uint32_t>(zip, at) == 0x04034b50) {
    EXPECT_EQ(number<std::uint16_t>(zip, at + 6) & 8, 0) << "sizes come later";
    EXPECT_EQ(number<std::uint16_t>(zip, at + 8), 0) << "compressed";
    const auto check_sum = number<std::uint32_t>(zip, at + 14);
    const auto size = number<std::uint32_t>(zip, at + 22);
    const auto name_size = number<std::uint16_t>(zip, at + 26);
    const auto extra_size = number<std::uint16_t>(zip, at + 28);
    const std::string content = zip.substr(at + 30 + name_size + extra_size, size);
    const auto* bytes = reinterpret_cast<const Bytef*>(content.data());
    EXPECT_EQ(crc32(0, bytes, static_cast<uInt>(content.size())), check_sum);
    files[zip.substr(at + 30, name_size)] = content;
    at += 30 + name_size + extra_size + size;
  }
  EXPECT_EQ(number<std::uint32_t>(zip, at), 0x02014b50U) << "no directory follows";
  return files;
}

TEST_F(Exporters, NpzHoldsAnArrayForEachTensor) {
  const std::map<std::string, std::string> files = unzip(exported("npz"));
  ASSERT_EQ(files.size(), layout().params.size());
  EXPECT_NE(files.at("0.weight.npy").find("'descr': '<f4', 'fortran_order': False, 'shape': (5, 6), }"),
            std::string::npos);
  EXPECT_NE(files.at("3.bias.npy").find("'shape': (3,), }"), std::string::npos);
  for (const ParamInfo& param : layout().params) {
    const std::string& file = files.at(param.name + ".npy");
    const std::span<const Scalar> values = part(exportable_.store().values, param.range);
    ASSERT_EQ(file.size(), 128 + values.size_bytes()) << param.name;
    EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    EXPECT_EQ(std::memcmp(file.data() + 128, values.data(), values.size_bytes()), 0) << param.name;
  }
}

}  // namespace
}  // namespace lockstep::exporters_test
