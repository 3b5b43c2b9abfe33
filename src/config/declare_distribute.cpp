#include "declare_sections.h"

namespace lockstep {
namespace {

constexpr std::string_view kAsynchronous =
    "distribute.mode = \"async\" or \"bounded\", or distribute.backup_workers";

void declare_local_steps(OptionList& list, DistOptions& distribute) {
  list.option("distribute.average_every", distribute.average_every,
              "Steps that each replica takes alone before the weights of all are averaged", at_least(1))
      .synonyms("local_steps sync_every sync_interval");
  list.option("distribute.average_state", distribute.average_state,
              "Average the state of the optimizer with the weights; else each replica keeps its own");
  list.option("distribute.local_after", distribute.local_after,
              "Time during which all replicas still take each step together, as in train.warmup: post-local "
              "SGD")
      .example("2 epochs");
  list.option("distribute.block_momentum", distribute.block_momentum,
              "Share of the last change of the average that the next one keeps; 0 is off",
              from_to_below(0, 1));
  list.option("distribute.block_lr", distribute.block_lr,
              "Share of the way from the last average to the next that is gone", above_up_to(0, 1e6));
  list.option("distribute.block_nesterov", distribute.block_nesterov,
              "Start the next local steps where the block momentum leads")
      .read_if("distribute.block_momentum above 0",
               [](const Config& c) { return c.distribute.block_momentum > 0; });
}

// How the model is divided among the ranks of a group.
void declare_stages(OptionList& list, DistOptions& distribute) {
  const auto divided = [](const Config& c) { return c.distribute.stages != 1; };
  list.count_or_auto(
          "distribute.stages", distribute.stages,
          "Parts into which the layers of the model are divided, each on a rank of its own (model "
          "parallel); the ranks are groups of so many, and each group takes its replicas one after the "
          "other through its stages; auto: as few as a rank has memory for",
          between(1, kMaxReplicas))
      .on_resume(OnResume::kMayChange)
      .synonyms(
          "pipeline_parallel_size pipeline_model_parallel_size pipeline_parallel_degree pp pp_size "
          "num_stages model_parallel_size");
  list.option(
          "distribute.cut", distribute.cut,
          "Layers before which the model is cut into stages, such as 3 or 3.body.1; auto: where each rank "
          "has the memory, and the stages have about as much to compute and little to send")
      .example("4,7.body.2")
      .takes_numbers()
      .on_resume(OnResume::kMayChange)
      .read_if("distribute.stages above 1, or auto", divided)
      .synonyms("split_points split_spec partition_method");
  list.option("distribute.schedule", distribute.schedule,
              "1f1b: a stage takes a micro-batch back as soon as it can, so that at most as many are in "
              "memory as there are stages; gpipe: all go forward before the first one goes back; "
              "interleaved(v): as 1f1b, with v chunks of the model on each rank, so that ranks are idle for "
              "less time, and send more")
      .example("interleaved(2)")
      .on_resume(OnResume::kMayChange)
      .read_if("distribute.stages above 1, or auto", divided)
      .synonyms("pipeline_schedule pipeline_parallel_schedule");
  list.option("distribute.placement", distribute.placement,
              "neighbours: a group is ranks that follow one another, so that activations stay inside a node; "
              "spread: the ranks that have the same stage follow one another, so that its gradients stay "
              "inside a node, and the stages lie on several")
      .on_resume(OnResume::kMayChange)
      .read_if("distribute.stages above 1, or auto", divided)
      .synonyms("rank_order mesh_order use_tp_pp_dp_mapping");
  list.option(
          "distribute.memory_per_rank", distribute.memory_per_rank,
          "GiB that a rank may have: a plan that needs more is refused, and distribute.stages and "
          "distribute.cut = \"auto\" keep to it; 0: what ulimit leaves, or (for auto) its share of the host",
          between(0, 1e6))
      .alias("memory-per-rank")
      .on_resume(OnResume::kMayChange)
      .synonyms("max_memory memory_per_worker mem_per_rank");
}

}  // namespace

void declare_distribute(OptionList& list, DistOptions& distribute, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  list.choice("distribute.strategy", distribute.strategy,
              "How gradients become weights on all ranks; auto: central_storage where all ranks share one "
              "node and no key about the exchange of gradients is given, else allreduce",
              names.strategies)
      .on_resume(OnResume::kIfAlike)
      .synonyms("distribution_strategy zero_optimization zero_stage tree_learner ddp_backend backend",
                "ranks talk by MPI; distribute.strategy says how gradients become weights on all of them");
  list.option(
          "distribute.reduction", distribute.reduction,
          "native: gradients are added in whatever order is fast; ordered: along one fixed tree, which gives "
          "the same bits on any ranks")
      .most_used();
  list.choice("distribute.algorithm", distribute.algorithm,
              "How the sum of the gradients gets to all ranks, where all get the whole sum; auto: what is "
              "fastest here for each size of bucket (with ordered reduction the numbers are the same)",
              names.algorithms)
      .on_resume(OnResume::kMayChange)
      .read_if("distribute.strategy = \"allreduce\" or \"local_sgd\", with distribute.compression = \"fp32\"",
               names.facts.uses_algorithm)
      .about_exchange();
  list.option("distribute.calibrate", distribute.calibrate,
              "Measure at the start what is fastest, which takes 0.15 s or a few exchanges by each "
              "algorithm; else auto takes memory where ranks share it (shared, hierarchical), and mpi where "
              "they do not")
      .on_resume(OnResume::kMayChange)
      .read_if("distribute.algorithm = \"auto\"", names.facts.calibrates)
      .about_exchange();
  list.option("distribute.bucket_kib", distribute.bucket_kib,
              "Gradient that is sent together, in KiB; small buckets start earlier, large ones cost less",
              between(1, 1e9))
      .on_resume(OnResume::kMayChange)
      .about_exchange()
      .synonyms("bucket_cap_mb bucket_size fusion_threshold reduce_bucket_size allreduce_bucket_size",
                "Lockstep calls it distribute.bucket_kib, in KiB");
  list.option("distribute.progress_thread", distribute.progress_thread,
              "A helper thread moves messages on, where a core is to spare; needs MPI_THREAD_MULTIPLE")
      .on_resume(OnResume::kMayChange)
      .about_exchange();
  list.option("distribute.servers", distribute.servers, "Ranks that are parameter servers: the last ones",
              between(1, kMaxReplicas))
      .on_resume(OnResume::kMayChange)
      .synonyms("num_ps num_servers");
  list.option("distribute.mode", distribute.mode,
              "When the servers take a step: sync, with the gradients of all workers; async, with each "
              "gradient as it arrives; bounded, the same, but no worker is far ahead of the slowest");
  list.option(
          "distribute.staleness", distribute.staleness,
          "Gradients that a worker may be ahead of the slowest with mode 'bounded'; further ahead it waits",
          between(0, 1e6))
      .read_if("distribute.mode = \"bounded\"",
               [](const Config& c) { return c.distribute.mode == ServerMode::kBounded; })
      .synonyms("max_staleness staleness_bound");
  list.option("distribute.backup_workers", distribute.backup_workers,
              "Workers whose gradients a step of mode 'sync' does not wait for: the last to arrive are "
              "dropped, and counted",
              between(0, kMaxReplicas));
  list.option("distribute.staleness_lr", distribute.staleness_lr,
              "Divide the learning rate of a gradient by its staleness: the steps that others took since its "
              "weights were pulled")
      .read_if("distribute.mode = \"async\" or \"bounded\"",
               [](const Config& c) { return c.distribute.mode != ServerMode::kSync; });
  list.option("distribute.record", distribute.record,
              "Write down the order in which servers hear from workers, into arrivals.*.txt in run.dir")
      .on_resume(OnResume::kMayChange)
      .read_if(kAsynchronous, names.facts.asynchronous);
  list.option("distribute.replay", distribute.replay,
              "Directory with the arrivals.*.txt of a recorded run, to be repeated bit for bit")
      .if_not_given("as they arrive")
      .on_resume(OnResume::kMayChange)
      .read_if(kAsynchronous, names.facts.asynchronous);
  list.option("distribute.timeout_seconds", distribute.timeout_seconds,
              "Seconds without a sign of life from a worker or server after which the run ends with its name",
              above_up_to(0, 1e6))
      .on_resume(OnResume::kMayChange)
      .read_if(kAsynchronous, names.facts.asynchronous);
  list.choice("distribute.compression", distribute.compression,
              "How gradients are sent between ranks (central_storage: between nodes); weights are always "
              "sent as they are",
              names.codecs)
      .about_exchange()
      .synonyms(
          "wire distribute.wire grad_compression gradient_compression fp16_allreduce "
          "communication_data_type");
  list.option("distribute.error_feedback", distribute.error_feedback,
              "What a message loses on lossy compression is kept and added to the next one")
      .about_exchange();
  list.option("distribute.top_k", distribute.top_k,
              "Share of the numbers of a gradient that are sent with compression 'top_k'", above_up_to(0, 1))
      .about_exchange();
  declare_local_steps(list, distribute);
  declare_stages(list, distribute);
}

}  // namespace lockstep
