#include "declare_sections.h"

namespace lockstep {

void declare_report(OptionList& list, ReportOptions& report) {
  list.begin_section(OnResume::kMayChange);
  list.option("report.html", report.html,
              "Write report.html into run.dir at the end of the run: a page that shows what was trained and "
              "how well, as trainer report does")
      .synonyms("html_report report_html write_report");
  list.option("report.tensorboard", report.tensorboard,
              "Write event files for TensorBoard into run.dir/tensorboard as the run goes on: losses, "
              "metrics, rate, throughput, shares of the time, staleness, and the config as hyperparameters")
      .synonyms("use_tensorboard tensorboard_dir tensorboard_log logger.tensorboard");
  list.option("report.histograms", report.histograms,
              "Put histograms of the weights and of the gradients of each tensor into the event files, "
              "wherever a line of metrics has norms")
      .synonyms("histogram_freq log_histograms watch_gradients")
      .read_if("report.tensorboard", [](const Config& c) { return c.report.tensorboard; });
  list.option("report.trace", report.trace,
              "Record these steps of all ranks and threads as a timeline, trace.json.gz in run.dir, for "
              "ui.perfetto.dev or chrome://tracing: the first and the last of the run, and the slowest")
      .if_not_given("no timeline")
      .example("first 20, last 20, slowest 20 steps")
      .synonyms("profile profiler use_profiler profile_steps timeline torch_profiler");
}

}  // namespace lockstep
