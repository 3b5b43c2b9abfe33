// Data sets as people have them, through the real executable: formats, many files, streaming, and the same
// bits on any number of ranks.
#include "support/numpy_files.h"
#include "support/trainer_runs.h"

namespace lockstep::test::data_test {
namespace {

// The images of the small experiment, of 12 bytes, and its labels.
struct Samples {
  std::string images;
  std::string labels;
};

class Data : public SmallRuns {
 protected:
  Data() {
    const Samples train = read(experiment_.train());
    samples_ = train;
    write("x.npy", npy_content("|u1", {203, 4, 3}, train.images));
    write("y.npy", npy_content("|u1", {203}, train.labels));
  }

  static Samples read(const IdxPair& files) {
    const auto data_of = [](const std::string& path) { return run_command("gunzip -c " + path).output; };
    return {data_of(files.images).substr(16), data_of(files.labels).substr(8)};
  }
  std::string write(const std::string& name, const std::string& content) {
    const std::string path = experiment_.directory() / name;
    write_file_atomically(path, content);
    return path;
  }
  // Records of a label and an image.
  std::string packed(Index begin, Index end) const {
    std::string bytes;
    for (Index i = begin; i < end; ++i) {
      bytes += at(samples_.labels, i);
      bytes += samples_.images.substr(static_cast<std::size_t>(12 * i), 12);
    }
    return bytes;
  }
  // A config that trains on `data`, the lines of its section.
  std::string config(const std::string& data) {
    return write("own.toml", fmt::format("[data]\n{}\n"
                                         "[model]\nlayers = \"flatten dense(16) relu dense(4)\"\n"
                                         "[train]\nlr = 0.05\nepochs = 2\nglobal_batch = 24\nreplicas = 8\n"
                                         "[distribute]\nreduction = \"ordered\"\n",
                                         data));
  }
  std::string model_of(int ranks, const std::string& config, const std::string& flags = "") {
    const std::string run = experiment_.fresh_run();
    const ProcessResult result =
        succeed(ranks, fmt::format("--config {} --run.dir {} {}", config, run, flags));
    last_log_ = result.errors + result.output;
    return result.exit_code == 0 ? read_file(run + "/model.safetensors") : result.errors;
  }

  Samples samples_;
  std::string last_log_;
};

// The same samples in the same order, whatever file they come from.
TEST_F(Data, EveryFormatTrainsTheSameModel) {
  const std::string idx =
      model_of(2, config(fmt::format("train = \"{}\"\ntrain_labels = \"{}\"", experiment_.train().images,
                                     experiment_.train().labels)));
  const std::string directory = experiment_.directory().path().string();
  const std::string npy = fmt::format("train = \"{0}/x.npy\"\ntrain_labels = \"{0}/y.npy\"", directory);
  EXPECT_TRUE(model_of(3, config(npy)) == idx);
  write_npz(directory + "/all.npz",
            {{"x", npy_content("|u1", {203, 4, 3}, samples_.images)},
             {"y", npy_content("|u1", {203}, samples_.labels)}},
            true);
  EXPECT_TRUE(model_of(2, config(fmt::format("train = \"{0}/all.npz:x\"\ntrain_labels = \"{0}/all.npz:y\"",
                                             directory))) == idx);
  const std::string raw = "format = \"raw\"\nraw_layout = \"label:u8 features:u8[4,3]\"\n";
  write("all.bin", packed(0, 203));
  EXPECT_TRUE(model_of(2, config(raw + fmt::format("train = \"{}/all.bin\"", directory))) == idx);
  std::filesystem::create_directory(directory + "/parts");
  write("parts/part-0.bin", packed(0, 5));
  write("parts/part-1.bin", packed(5, 150));
  write("parts/part-2.bin", packed(150, 203));
  EXPECT_TRUE(model_of(1, config(raw + fmt::format("train = \"{}/parts\"", directory))) == idx);
  EXPECT_TRUE(model_of(4, config(raw + fmt::format("train = \"{}/parts/part-*.bin\"", directory))) == idx);
}

TEST_F(Data, StreamingGivesTheSameBitsOnAnyNumberOfRanks) {
  write("all.bin", packed(0, 203));
  const std::string path = config(
      fmt::format("format = \"raw\"\nraw_layout = \"label:u8 features:u8[4,3]\"\ntrain = \"{}/all.bin\"",
                  experiment_.directory().path().string()));
  for (const std::string flags :
       {"--data.memory stream --data.shuffle_buffer 10", "--data.memory stream --data.mode full",
        "--data.memory stream --data.reshuffle global"}) {
    const std::string one = model_of(1, path, flags);
    expect_parts(last_log_, {"streams"});
    EXPECT_TRUE(model_of(3, path, flags) == one) << flags;
  }
  EXPECT_TRUE(model_of(2, path, "--data.memory auto") == model_of(1, path, "--data.memory load"));
}

TEST_F(Data, OrdersOfShardsGiveTheSameBitsOnAnyNumberOfRanks) {
  write("all.bin", packed(0, 203));
  const std::string path = config(
      fmt::format("format = \"raw\"\nraw_layout = \"label:u8 features:u8[4,3]\"\ntrain = \"{}/all.bin\"",
                  experiment_.directory().path().string()));
  const std::string usual = model_of(1, path);
  for (const std::string flags :
       {"--data.shard_order contiguous", "--data.shard_order strided", "--data.reshuffle global"}) {
    const std::string one = model_of(1, path, flags);
    EXPECT_TRUE(one != usual) << flags;
    EXPECT_TRUE(model_of(3, path, flags) == one) << flags;
  }
}

TEST_F(Data, AuditsValidationSharesAndWarningsOfTheShards) {
  std::string sorted;
  for (char label = 0; label < 4; ++label) {
    for (Index i = 0; i < 203; ++i) {
      if (at(samples_.labels, i) == label) sorted += packed(i, i + 1);
    }
  }
  write("sorted.bin", sorted);
  const std::string path = config(
      fmt::format("format = \"raw\"\nraw_layout = \"label:u8 features:u8[4,3]\"\ntrain = \"{}/sorted.bin\"",
                  experiment_.directory().path().string()));
  const std::string usual = model_of(2, path, "--data.audit true");
  EXPECT_EQ(count_of(last_log_, "audit: epoch"), 2) << last_log_;
  expect_parts(last_log_, {"audit: epoch 2 used 203 samples, each 1 time"});
  EXPECT_TRUE(model_of(1, path) == usual);
  model_of(3, path, "--data.audit true --data.mode full --data.memory stream");
  expect_parts(last_log_, {"audit: epoch 2 used 1,624 samples, each 8 times"});

  const std::string held = model_of(1, path, "--data.audit true --data.validation 'share(0.2)'");
  expect_parts(last_log_, {"validation loss"});
  EXPECT_TRUE(model_of(3, path, "--data.validation 'share(0.2)'") == held);
  EXPECT_TRUE(held != usual);

  const auto plan = [&](const std::string& flags) {
    return run_trainer("plan --config " + path + " " + flags).output;
  };
  EXPECT_EQ(count_of(plan(""), "WARNING"), 0);
  EXPECT_EQ(count_of(plan("--data.shard_order contiguous"), "WARNING: the shards are not alike"), 1);
  EXPECT_EQ(count_of(plan("--data.memory stream"), "WARNING: the shards are not alike"), 1);
  EXPECT_EQ(count_of(plan("--data.shard_order strided"), "WARNING"), 0);
}

TEST_F(Data, WhatIsRefusedSaysWhy) {
  write("all.bin", packed(0, 203));
  const std::string path = config(
      fmt::format("format = \"raw\"\nraw_layout = \"label:u8 features:u8[4,3]\"\ntrain = \"{}/all.bin\"",
                  experiment_.directory().path().string()));
  // First on two ranks, then on one.
  auto expect = [&, ranks = 2](const std::string& flags, int exit_code,
                               const std::vector<std::string>& parts) mutable {
    const ProcessResult result = ended_with(
        run_trainer(std::exchange(ranks, 1),
                    fmt::format("--config {} --run.dir {} {}", path, experiment_.fresh_run(), flags)),
        exit_code);
    EXPECT_EQ(count_of(result.errors, "error: "), 1) << result.errors;
    for (const std::string& part : parts)
      EXPECT_NE(result.errors.find(part), std::string::npos) << part << " in " << result.errors;
  };
  expect("--data.memory stream --data.shard_order strided", kExitConfig, {"data.memory = \"load\""});
  expect("--data.audit true --train.tail drop", kExitConfig, {"data.audit with train.tail drop"});
  expect("--data.memory stream --data.memory_limit 0.000001", kExitConfig,
         {"data.shuffle_buffer = 16,384", "data.memory_limit"});
  expect("--data.memory load --data.shuffle_buffer 5", kExitConfig, {"data.shuffle_buffer has no effect"});
  expect("--data.train '/nowhere/*.bin'", kExitData, {"/nowhere/*.bin", "matches no file"});
  expect("--data.raw_layout 'label:u8 features:u8[5,3]'", kExitData, {"all.bin", "a multiple of 16"});
  expect("--data.memory stream --model.layers 'flatten dense(3)'", kExitData, {"all.bin", "found label 3"});
}

TEST_F(Data, PredictsFromFilesOfTheFormatOfTheRun) {
  const std::string directory = experiment_.directory().path().string();
  write("all.bin", packed(0, 203));
  const std::string path = config(fmt::format(
      "format = \"raw\"\nraw_layout = \"label:u8 features:u8[4,3]\"\ntrain = \"{}/all.bin\"", directory));
  model_of(2, path);
  const std::string run = directory + "/run-1";
  const ProcessResult raw = succeed(
      2, fmt::format("predict --model {} --input {}/all.bin --output {}/raw.csv", run, directory, directory));
  const ProcessResult npy = succeed(
      1, fmt::format("predict --model {} --input {}/x.npy --output {}/npy.csv", run, directory, directory));
  EXPECT_EQ(read_file(directory + "/raw.csv"), read_file(directory + "/npy.csv"));
}

}  // namespace
}  // namespace lockstep::test::data_test
