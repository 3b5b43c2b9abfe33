// From a text to a model, as trainer init writes the config; the same bits on any ranks, and after a kill.
#include <regex>

#include "lockstep/math/kernels.h"
#include "support/numpy_files.h"
#include "support/trainer_runs.h"

namespace lockstep::test::text_runs_test {
namespace {

class TextRuns : public TrainerRuns {
 protected:
  TextRuns() {
    std::string text;
    for (Index i = 0; i < 400; ++i) text += fmt::format("{} sheep and {} goats, ", i % 10, i * i % 10);
    write("t.txt", text);
  }

  // The config that init writes, with a small model in place of its preset.
  ProcessResult init() const {
    ProcessResult result =
        run_command(fmt::format("cd {} && {} init t.txt", directory_.path().string(), trainer_path()));
    const std::string config = result.exit_code == 0 ? read_file(directory_ / "t.toml") : "";
    const std::regex preset("preset = \"gpt\"[^\n]*\noutputs = 22[^\n]*\n");
    EXPECT_TRUE(std::regex_search(config, preset)) << result.errors << config;
    write_file_atomically(
        directory_ / "t.toml",
        std::regex_replace(config, preset,
                           "layers = \"embedding(22, 32) positions(learned) transformer(1, 2, "
                           "causal=true) layer_norm dense(22)\"\n"));
    return result;
  }
  ProcessResult train(int ranks, const std::string& name, const std::string& flags = "") const {
    return run_trainer(ranks,
                       fmt::format("--config {} --data.train {} --run.dir {} --train.steps 40 {}",
                                   directory_ / "t.toml", directory_ / "t.txt", directory_ / name, flags));
  }

  ProcessResult generate(const std::string& name, const std::string& flags) const {
    return run_command(
        fmt::format("{} generate --model {} {} </dev/null", trainer_path(), directory_ / name, flags));
  }
};

TEST_F(TextRuns, GiveTheSameBitsOnAnyRanksAndAfterAResume) {
  expect_parts(succeeded(init()).output, {"a vocabulary of 22 (characters)", "bits per character", "mpirun"});
  const ProcessResult whole = succeeded(train(1, "one", "--train.threads 2"));
  expect_parts(whole.output + whole.errors, {"a vocabulary of 22", "bits_per_character",
                                             " windows that begin anywhere, over all replicas"});
  succeeded(train(2, "two"));
  EXPECT_EQ(model("two"), model("one"));
  ASSERT_NE(
      train(3, "three", "--checkpoint.every '15 steps' --debug.fail_rank 2 --debug.fail_step 25").exit_code,
      0);
  succeeded(train(2, "three", "--checkpoint.every '15 steps'"));
  EXPECT_EQ(model("three"), model("one"));
  const auto figures = evaluate(2, fmt::format("--model {}", directory_ / "two"));
  EXPECT_NEAR(figures.front().at("bits_per_character").get<double>(),
              figures.front().at("loss").get<double>() / 0.693147, 1e-4);
}

TEST_F(TextRuns, SamplesAreWhatGenerateWritesAndLeaveTheTrainingAsItIs) {
  succeeded(init());
  const std::string steps = "--eval.every '10 steps' --checkpoint.every '15 steps' ";
  const std::string flags = steps + "--report.sample '3 sheep and '";
  const auto samples_of = [this](const std::string& name) {
    std::vector<std::string> samples;
    for (const nlohmann::json& json : metric_lines(path(name) + "/metrics.jsonl")) {
      if (json.contains("sample")) samples.push_back(json.at("sample").get<std::string>());
    }
    return samples;
  };
  const ProcessResult one = succeeded(train(1, "one", flags));
  expect_parts(one.output, {"sample: 3 sheep and "});
  succeeded(train(1, "plain", steps));
  EXPECT_EQ(model("one"), model("plain"));
  ASSERT_NE(train(3, "three", flags + " --debug.fail_rank 2 --debug.fail_step 25").exit_code, 0);
  succeeded(train(2, "three", flags));
  const std::vector<std::string> samples = samples_of("one");
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_NE(samples[0], samples[3]);
  EXPECT_EQ(samples_of("three"), samples);
  const std::string last = directory_ / "one" + "@last --prompt '3 sheep and ' --length 200";
  EXPECT_EQ(run_command(fmt::format("{} generate --model {}", trainer_path(), last)).output,
            samples[3] + "\n");
  const ProcessResult refused = ended_with(train(2, "refused", "--report.sample wolf"), 3);
  expect_parts(refused.errors, {"report.sample: its text, character 1 (byte 0", "the character 'w'"});
  EXPECT_FALSE(std::filesystem::exists(directory_ / "refused"));
  expect_parts(read_file(directory_ / "one/report.html"), {"\"texts\":[{\"step\":10,\"text\":\"3 sheep"});
}

TEST_F(TextRuns, AVocabularyIsThatOfTheRun) {
  succeeded(init());
  succeeded(train(1, "run", "--train.steps 3"));
  expect_failed(run_trainer(2, fmt::format("eval --model {} --data.tokens bytes", directory_ / "run")), 2,
                {"data.tokens = \"bytes\"", "the run, which has characters and refuses"});
  write_file_atomically(directory_ / "new.txt",
                        "3 sheep, 4 goats and 5 sheep, 6 goats and 7 sheep, 8 wolves, 9 sheep");
  const auto predict = [&] {
    return run_trainer(2, fmt::format("predict --model {} --input {} --output {} --overwrite",
                                      directory_ / "run", directory_ / "new.txt", directory_ / "p.csv"));
  };
  expect_failed(predict(), 3, {"new.txt', byte 53", "the character 'w'"});
  write_file_atomically(directory_ / "new.txt", std::string(150, '3'));
  succeeded(predict());
  EXPECT_TRUE(read_file(directory_ / "p.csv").starts_with("row,record,position,prediction,p_0,"));
}

TEST_F(TextRuns, GenerateGoesOnWithAPrompt) {
  succeeded(init());
  succeeded(train(2, "run", "--train.steps 150 --train.lr 0.003"));
  // Twice as long as the window.
  const ProcessResult likely =
      succeeded(generate("run", "--prompt '3 sheep and ' --length 130 --temperature 0"));
  EXPECT_TRUE(likely.output.starts_with("3 sheep and ") && likely.output.ends_with("\n")) << likely.output;
  EXPECT_EQ(likely.output.size(), 12 + 130 + 1);
  expect_parts(likely.output.substr(90), {" sheep and ", " goats, "});
  expect_parts(likely.errors, {"130 tokens in ", " a second"});

  const std::string drawn = "--prompt 4 --length 40 --top_k 5 --top_p 0.95 ";
  const std::string one = generate("run", drawn).output;
  EXPECT_EQ(generate("run", drawn).output, one);
  EXPECT_NE(generate("run", drawn + "--seed 2").output, one);
  const ProcessResult piped =
      run_command(fmt::format("printf 4 | {} generate --model {} --length 40 --top_k 5 --top_p 0.95",
                              trainer_path(), directory_ / "run"));
  EXPECT_EQ(piped.output, one) << piped.errors;
  EXPECT_EQ(run_trainer(2, fmt::format("generate --model {} {}", directory_ / "run", drawn)).output, one);
  // A launcher gets the text when it has read the log, or mpirun of Open MPI 5 would mix them.
  const ProcessResult launched =
      run_command(fmt::format("cd {} && mkfifo errors && bash -c 'exec 3<>errors; "
                              "OMPI_COMM_WORLD_RANK=0 {} generate --model run {} 2>errors | cat >text & "
                              "sleep 1; wc -c <text; read -r line <&3; wait; cat text'",
                              directory_.path().string(), trainer_path(), drawn));
  EXPECT_EQ(launched.output, "0\n" + one) << launched.errors;
  const std::string three = generate("run", drawn + "--samples 3").output;
  EXPECT_TRUE(three.starts_with("--- 1 of 3\n" + one + "--- 2 of 3\n4")) << three;
  expect_parts(three, {"--- 3 of 3\n4"});

  const bool rounds = bf16_support() != Bf16Support::kNone;
  succeeded(train(1, "other",
                  fmt::format("--train.calibrate temperature --train.precision {}",
                              rounds ? "bf16 --debug.emulate_bf16 true" : "fp32")));
  succeeded(generate("other", "--prompt 4 --length 9"));

  const auto expect_refused = [&](const std::string& flags, int code, const std::vector<std::string>& parts) {
    expect_failed(generate("run", flags), code, parts);
  };
  expect_refused("--prompt wolf", 3, {"--prompt", "the character 'w'"});
  expect_refused("--prompt ''", 2, {"the prompt is empty"});
  expect_refused("--prompt " + std::string(65, '3'), 2,
                 {"the prompt has 65 tokens", "sees 32", "data.window"});
  expect_refused("--prompt 3 --top_p 1.5", 2, {"--top_p: expected a number from 0 to 1, found '1.5'"});
  expect_refused("", 2, {"the prompt is empty"});
  expect_refused("--prompt 3 >/dev/full", 3,
                 {"cannot write all to standard output: No space left on device"});
  expect_refused("--prompt '3 sh\u00e9ep'", 3, {"--prompt, character 5 (byte 4", "'\u00e9'"});
  const std::string schema = directory_ / "run/schema.json";
  const std::string whole = read_file(schema);
  for (const std::string format : {"3", "null", "[]", "\"other\""}) {
    write_file_atomically(
        schema, std::regex_replace(whole, std::regex("\"format\": \"text\""), "\"format\": " + format));
    expect_refused("--prompt 3", 3, {"run/schema.json' is no schema"});
  }
  expect_failed(run_trainer(2, fmt::format("eval --model {}", directory_ / "run")), 3,
                {"run/schema.json' is no schema"});
  std::filesystem::remove(directory_ / "run/model.safetensors");
  expect_refused("--prompt 3", 2, {"it has no model.safetensors", "run@last'"});
}

// The padded outputs of a model are drawn by none of 300 tokens at a high temperature.
TEST_F(TextRuns, IdsAreNumbersInPromptsAndTexts) {
  std::vector<std::int32_t> ids;
  for (Index i = 0; i < 2000; ++i) ids.push_back(static_cast<std::int32_t>(i * i % 13));
  write("i.npy", npy_content("<i4", {2000}, bytes_of(ids)));
  const std::string array = directory_ / "i.npy";
  const auto inspected =
      nlohmann::json::parse(succeed(1, fmt::format("inspect {} --data.tokens ids --json -", array)).output);
  EXPECT_EQ(inspected.at("vocabulary"), 13);
  EXPECT_EQ(inspected.contains("characters") || inspected.contains("bits_per_character"), false);
  const std::string config = directory_ / "i.toml";
  succeed(1, fmt::format("init {} --data.tokens ids --output {}", array, config));
  const std::string flags = "--model.outputs 20 --train.steps 2 --run.dir ";
  succeed(1, fmt::format("--config {} {} {}", config, flags, directory_ / "ids"));
  const std::string text =
      succeeded(generate("ids", "--prompt '12 7 9' --length 300 --temperature 9")).output;
  EXPECT_TRUE(text.starts_with("12 7 9 ")) << text;
  std::istringstream words(text);
  Index count = 0;
  for (Index id = 0; words >> id; ++count) EXPECT_LT(id, 13);
  EXPECT_EQ(count, 303);
  expect_failed(generate("ids", "--prompt '12 13'"), 3, {"character 4 (byte 3 counted from 0): found '13'"});
  expect_failed(run_trainer(1, fmt::format("--config {} {} {} --eval.metrics bits_per_character", config,
                                           flags, directory_ / "bits")),
                2, {"bits_per_character in eval.metrics with data.tokens ids"});
}

TEST_F(TextRuns, PiecesReadAndWriteAnyText) {
  succeeded(init());
  const std::string pieces =
      "--data.tokens 'pieces(266)' --model.layers 'embedding(266, 16) positions(learned) transformer(1, 2, "
      "causal=true) dense(266)' --train.steps 20";
  succeeded(train(1, "one", pieces));
  succeeded(train(2, "two", pieces));
  EXPECT_EQ(model("two"), model("one"));
  const ProcessResult generated = succeeded(generate("one", "--prompt 'W\u00f6lfe\n' --length 20"));
  EXPECT_TRUE(generated.output.starts_with("W\u00f6lfe\n")) << generated.output;
  const auto figures = evaluate(2, fmt::format("--model {}", directory_ / "one")).front();
  const double bits_of_token = figures.at("loss").get<double>() / 0.693147;
  EXPECT_LT(figures.at("bits_per_character").get<double>(), 0.8 * bits_of_token);
}

TEST_F(TextRuns, InitSizesAModelForMinutes) {
  const auto init_for = [&](const std::string& flags) {
    const ProcessResult result = run_command(fmt::format("cd {} && {} init t.txt --overwrite {}",
                                                         directory_.path().string(), trainer_path(), flags));
    return result.exit_code == 0 ? read_file(directory_ / "t.toml") : result.errors;
  };
  // No model learns from 10 tokens for each weight of a text so short: it is the smallest, for 50 epochs.
  const std::string config = init_for("--minutes 9000");
  expect_parts(config, {"layers = \"embedding(22, 64, ", "transformer(2, 2, causal=true)",
                        "of what passes alone have reached here"});
  std::smatch steps;
  ASSERT_TRUE(std::regex_search(config, steps, std::regex("\nsteps = ([0-9]+).*\nglobal_batch = ([0-9]+) ")));
  const double tokens = std::stod(steps[1]) * std::stod(steps[2]) * 32;
  EXPECT_NEAR(tokens, 50 * 0.9 * static_cast<double>(file_bytes(directory_ / "t.txt")), 2000);
  expect_parts(init_for("--minutes 0"), {"--minutes", "1 to 100000"});
}

// init and inspect tell a text by the same rule: its name, in small letters or capital ones, or the format.
TEST_F(TextRuns, InitAndInspectAgreeOnWhatIsAText) {
  const std::string text = read_file(directory_ / "t.txt");
  for (const char* name : {"A.TXT", "b.log", "c"}) write_file_atomically(directory_ / name, text);
  write_file_atomically(directory_ / "one.txt", "a");
  for (const std::string command : {"init", "inspect"}) {
    const auto run = [&](const std::string& words) {
      return run_command(
          fmt::format("cd {} && {} {} {}", directory_.path().string(), trainer_path(), command, words));
    };
    SCOPED_TRACE(command);
    expect_parts(run("A.TXT").output, {"A.TXT: 8,400 tokens"});
    for (const std::string name : {"b.log", "c"}) {
      expect_failed(run(name), 2,
                    {"the end of '" + name + "' does not tell its format", "--data.format text"});
    }
    expect_parts(run("b.log --data.format text").output, {"b.log: 8,400 tokens"});
    expect_failed(run("one.txt"), 3);
    expect_failed(run("none.of.them"), 3);
  }
}

TEST_F(TextRuns, FlagsOfRecordsAreRefused) {
  for (const std::string flags :
       {"init t.txt --lengths t.txt", "init t.txt --label x", "inspect t.txt --label x"}) {
    expect_failed(
        run_command(fmt::format("cd {} && {} {}", directory_.path().string(), trainer_path(), flags)), 2,
        {flags.ends_with("x") ? "--label: the label of a text is its next token"
                              : "--lengths: records of a text"});
  }
}

}  // namespace
}  // namespace lockstep::test::text_runs_test
