// A model that no rank holds as a whole: its file, and its predictions.
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/nn/stages.h"
#include "lockstep/train/evaluation/evaluation_details.h"
#include "lockstep/train/evaluation/prediction.h"
#include "lockstep/train/storage/checkpoint.h"
#include "lockstep/train/storage/staged_model.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/saving_cases.h"

namespace lockstep::test::staged_models_test {
namespace {

const ModelOptions kOptions{
    .layers = "dense(9) relu batch_norm residual(dense(9) tanh) dense(7) batch_norm tanh dense(3)"};

const std::vector<std::string> kCut{kAutoCut};

// The model, and the stage of it that this rank runs, with numbers.
struct Staged {
  Staged(Communicator& comm, Index stages, const ModelOptions& model = kOptions)
      : options(model),
        pipeline(comm, {comm.size(), stages, StagePlacement::kNeighbours}),
        stage(options, whole, at(divide_model(whole, stages, kCut), pipeline.stage())),
        all(whole.stored_layout().size),
        stored(stage.stored_layout().size) {
    initialise({&whole.stored_layout(), all.span()}, 1, 1);
    initialise({&stage.stored_layout(), stored.span()}, 1, 1);
  }
  ModelValues values() const { return stored_values(stage, stored.span()); }

  ModelOptions options;
  Model whole{options, {{12}}};
  Pipeline pipeline;
  Model stage;
  AlignedBuffer<Scalar> all;
  AlignedBuffer<Scalar> stored;
};

// Calls `body` for groups of two, three and four stages.
void in_stages(const std::function<void(Communicator& comm, Index stages)>& body) {
  on_ranks({2, 3, 4}, [&](Communicator& comm) {
    for (Index stages = 2; stages <= comm.size(); ++stages) {
      if (comm.size() % stages == 0) body(comm, stages);
    }
  });
}

TEST(StagedModel, HasTheFileOfTheWholeModelInPiecesOfAnySize) {
  in_stages([](Communicator& comm, Index stages) {
    const SharedDirectory directory(comm);
    Staged model(comm, stages);
    const ModelFacts facts{{kThresholdFact, "0.25"}};
    const std::string path = directory.path() + "/staged.safetensors";
    for (const Index piece : {Index{1}, Index{100}, Index{4096}, kModelPieceBytes}) {
      // Only the first rank knows the facts.
      const StagedModel staged(model.pipeline, model.stage, model.values(),
                               comm.rank() == 0 ? facts : ModelFacts());
      if (model.pipeline.workers().rank() == 0) save_staged_model([&] { return path; }, staged, piece);
      if (comm.rank() > 0) continue;
      const std::string expected = directory.path() + "/whole.safetensors";
      save_model(expected, {&model.whole.stored_layout(), model.all.span()}, model.whole.input(), facts);
      EXPECT_TRUE(read_file(path) == read_file(expected)) << stages << " stages, pieces of " << piece;
    }
    comm.barrier();
  });
}

// Each rank writes its share, of several blocks with checksums, wherever its group is.
TEST(StagedModel, IsWrittenByAllRanksForACheckpoint) {
  on_ranks({4}, [](Communicator& comm) {
    if (comm.size() % 2 != 0) return;  // under mpiexec
    const SharedDirectory directory(comm);
    Staged model(comm, 2, {.layers = "dense(1500) relu dense(1500) batch_norm relu dense(1500) dense(3)"});
    const StagedModel staged(model.pipeline, model.stage, model.values());
    EXPECT_GT(staged.size(), comm.size() * kCheckedBytes);
    const std::map<std::string, std::string> texts;
    CheckpointHeader header;
    header.progress.steps = 5;
    CheckpointWriter writer(comm, CheckpointDirectory(directory.path()), 3);
    writer.start({.header = header,
                  .state = {},
                  .layout = &model.whole.stored_layout(),
                  .input = model.whole.input(),
                  .texts = texts,
                  .staged = &staged});
    writer.finish();
    EXPECT_EQ(writer.last_failure(), "");
    if (comm.rank() > 0) return;
    CheckpointReader(writer.finished(5)).verify(1, 0);
    const std::string expected = directory.path() + "/whole.safetensors";
    save_model(expected, {&model.whole.stored_layout(), model.all.span()}, model.whole.input());
    EXPECT_TRUE(read_file(writer.finished(5) / kCheckpointModel) == read_file(expected));
  });
}

// Nobody waits for the rank that could not write.
TEST(StagedModel, EndsOnAllRanksWhereItCannotBeWritten) {
  in_stages([](Communicator& comm, Index stages) {
    const SharedDirectory directory(comm);
    Staged model(comm, stages);
    const StagedModel staged(model.pipeline, model.stage, model.values());
    const std::string nowhere = directory.path() + "/nowhere/model.safetensors";
    const auto unknown = []() -> std::filesystem::path { throw DataError("no directory"); };
    const auto save = [&] { save_staged_model([&] { return nowhere; }, staged, 100); };
    const auto save_where = [&] { save_staged_model(unknown, staged, 100); };
    const auto no_memory = []() -> std::filesystem::path { throw std::bad_alloc(); };
    const auto save_without = [&] { save_staged_model(no_memory, staged, 100); };
    if (comm.rank() == 0) {
      expect_parts(error_text<DataError>(save), {"cannot create", nowhere});
      EXPECT_EQ(error_text<DataError>(save_where), "no directory");
      EXPECT_THROW(save_without(), std::bad_alloc);
    } else if (model.pipeline.workers().rank() == 0) {
      save();
      save_where();
      save_without();
    }
    comm.barrier();
  });
}

std::unique_ptr<RecordSource> open_records() {
  DataOptions data;
  data.format = "synthetic";
  data.synthetic = {
      .rows = 1, .validation_rows = 0, .test_rows = 101, .features = 12, .classes = 3, .noise = 1};
  return choose_format(data).open({data, Split::kTest, 1, alone()});
}

std::vector<Scalar> predict(Communicator& comm, const Model& model, Pipeline* pipeline,
                            const ModelValues& values) {
  const auto source = open_records();
  const Normaliser normaliser({0.5}, {2.0}, {{12}});
  ThreadTeam team(1);
  Prediction prediction({.comm = comm,
                         .model = model,
                         .form = TargetKind::kClass,
                         .normaliser = normaliser,
                         .team = team,
                         .batch = 4,
                         .temperature = 2,
                         .pipeline = pipeline},
                        *source);
  std::vector<Scalar> all;
  prediction.run(values, [&](const ConstMatrix& rows) {
    EXPECT_EQ(comm.rank(), 0);
    all.insert(all.end(), rows.data(), rows.data() + rows.size());
  });
  return all;
}

TEST(StagedModel, PredictsWithTheBitsOfOneRank) {
  in_stages([](Communicator& comm, Index stages) {
    Staged model(comm, stages);
    const std::vector<Scalar> found = predict(comm, model.stage, &model.pipeline, model.values());
    const auto single = comm.split(comm.rank(), 0);
    const std::vector<Scalar> expected =
        predict(*single, model.whole, nullptr, stored_values(model.whole, model.all.span()));
    EXPECT_EQ(expected.size(), 101U * 4);
    if (comm.rank() == 0) {
      EXPECT_TRUE(found == expected) << stages << " stages";
    } else {
      EXPECT_TRUE(found.empty());
    }
  });
}

std::vector<ShownRecord> worst_records(Communicator& comm, const Model& model, Pipeline* pipeline,
                                       const ModelValues& values) {
  const auto source = open_records();
  const auto loss = find_entry(loss_catalog(), "loss", "softmax_cross_entropy").make({});
  const Normaliser normaliser({0.5}, {2.0}, {{12}});
  ThreadTeam team(1);
  const EvalOptions options{.batch = 4, .metrics = {}};
  const MetricSet metrics({}, TargetKind::kClass, 3);
  const EvaluationContext context{.comm = comm,
                                  .model = model,
                                  .loss = *loss,
                                  .normaliser = normaliser,
                                  .team = team,
                                  .options = options,
                                  .metrics = metrics,
                                  .pipeline = pipeline};
  Evaluation evaluation(context, *source, Split::kTest);
  return describe_evaluation(context, evaluation, *source, values).worst;
}

// The values of a record are known to the first rank of the group that evaluates it.
TEST(StagedModel, ShowsTheWorstRecordsAsOneRankDoes) {
  in_stages([](Communicator& comm, Index stages) {
    Staged model(comm, stages);
    const std::vector<ShownRecord> found = worst_records(comm, model.stage, &model.pipeline, model.values());
    const auto single = comm.split(comm.rank(), 0);
    const std::vector<ShownRecord> expected =
        worst_records(*single, model.whole, nullptr, stored_values(model.whole, model.all.span()));
    if (comm.rank() > 0) return;
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found[i].record.id, expected[i].record.id) << stages << " stages";
      EXPECT_EQ(found[i].cells, expected[i].cells) << stages << " stages, record " << found[i].record.id;
      EXPECT_EQ(found[i].cells.size(), 12U);
    }
  });
}

}  // namespace
}  // namespace lockstep::test::staged_models_test
