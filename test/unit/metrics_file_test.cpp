// metrics.jsonl of a run that goes on: what of it is kept.
#include "lockstep/report/metrics_file.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "support/error_text.h"
#include "support/temporary_directory.h"

namespace lockstep {
namespace {

// What is logged meanwhile.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TrainMetrics metrics_of(Index step) {
  TrainMetrics metrics;
  metrics.progress.steps = step;
  return metrics;
}

class MetricsFileTest : public testing::Test {
 protected:
  // The file after a run has gone on behind `keep` bytes of `text`, with a line of step 9.
  std::string rest_of(const std::string& text, std::size_t keep) {
    write_file_atomically(path_, text);
    const Log log;
    {
      MetricsFile file(path_, static_cast<Index>(keep));
      file.on_train_metrics(metrics_of(9));
      EXPECT_EQ(file.written_bytes(), file_bytes(path_));
      EXPECT_FALSE(file.failed());
    }
    warning_ = log.text();
    const std::string found = read_file(path_);
    const std::size_t added = found.find(R"({"kind":"train","step":9)");
    EXPECT_NE(added, std::string::npos) << found;
    return found.substr(0, added);
  }

  const test::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "metrics.jsonl";
  const std::string lines_ = "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n";
  std::string warning_;
};

TEST_F(MetricsFileTest, GoesOnBehindTheLinesOfTheCheckpoint) {
  EXPECT_EQ(rest_of(lines_, lines_.size()), lines_);
  EXPECT_EQ(rest_of(lines_ + "{\"step\":4}\n", lines_.size()), lines_);
  EXPECT_EQ(rest_of(lines_, 0), "");
  EXPECT_EQ(warning_, "");
}

TEST_F(MetricsFileTest, KeepsWholeLinesOfAFileThatWasCutOffAndSaysWhatIsMissing) {
  const std::string two = lines_.substr(0, 22);
  EXPECT_EQ(rest_of(lines_.substr(0, 27), 44), two);
  test::expect_parts(warning_, {"22 of the 44 bytes", "lines after step 2"});
  EXPECT_EQ(rest_of(two, 44), two);
  test::expect_parts(warning_, {"22 of the 44 bytes", "lines after step 2"});
  EXPECT_EQ(rest_of("{\"ste", 44), "");
  test::expect_parts(warning_, {"0 of the 44 bytes", "the lines are missing"});
  EXPECT_EQ(rest_of("no json\n{", 44), "no json\n");
}

// As after a line was taken out by hand, and as after a crash of the machine.
TEST_F(MetricsFileTest, KeepsWholeLinesWhereTheCheckpointEndsWithinOneOrThereAreZeros) {
  EXPECT_EQ(rest_of(lines_ + lines_, 40), lines_);
  test::expect_parts(warning_, {"33 of the 40 bytes", "lines after step 3"});
  EXPECT_EQ(rest_of(lines_ + std::string(20, '\0') + "\n" + lines_, 60), lines_);
  test::expect_parts(warning_, {"33 of the 60 bytes"});
}

TEST_F(MetricsFileTest, AMissingFileIsMissed) {
  const Log log;
  EXPECT_EQ(MetricsFile(path_, 44).written_bytes(), 0);
  test::expect_parts(log.text(), {"0 of the 44 bytes"});
}

TEST_F(MetricsFileTest, LinesOfADeletedFileAreLostAndItSaysSo) {
  const Log log;
  MetricsFile file(path_);
  file.on_train_metrics(metrics_of(1));
  EXPECT_FALSE(file.failed());
  std::filesystem::remove(path_);
  file.on_train_metrics(metrics_of(2));
  EXPECT_TRUE(file.failed());
  test::expect_parts(log.text(), {"it was deleted"});
}

}  // namespace
}  // namespace lockstep
