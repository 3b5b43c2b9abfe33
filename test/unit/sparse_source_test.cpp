// A label of a libsvm file that the loss refuses; all else: cases/sparse.case.
#include "data/table/sources/sparse_source.h"

#include "lockstep/base/errors.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep::sparse_source_test {

// It is told when its records are packed, as a label that suits no class.
TEST(SparseSource, ARefusedLabelIsToldByItsLineInAnyChunk) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "labels.libsvm";
  std::ofstream file(path);
  for (Index i = 1; i <= 200; ++i) file << (i == 150 ? -3 : 1) << " 1:" << i << " 2:0.5\n";
  file.close();
  TableOptions options;
  options.chunk_kib = 1;
  const SparseSource source(
      {.paths = {path}, .name = path, .options = options, .schema = "", .peers = alone()});
  ASSERT_EQ(source.chunks().size(), 3U);
  const auto reader = source.reader({.non_negative = true});
  const auto read = [&](Index chunk) {
    std::vector<std::byte> packed(
        static_cast<std::size_t>(at(source.chunks(), chunk).records.size() * source.info().record_bytes));
    reader->read(chunk, packed);
  };
  read(0);
  test::expect_parts(test::error_text<DataError>([&] {
                       read(1);
                       read(2);
                     }),
                     {"line 150: found label -3"});
}

}  // namespace lockstep::sparse_source_test
