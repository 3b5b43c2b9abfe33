"""All cases of compare-outputs."""

from . import cases_of_data, cases_of_runs, cases_of_training


def all_cases(keys):
    data, training, runs = cases_of_data, cases_of_training, cases_of_runs
    return [*data.of_help(keys), *data.of_configs(), *data.of_data(), *training.of_training(), *data.of_texts(),
            *data.of_series(), *training.of_keys(), *training.of_ranks(), *runs.of_searches(), *runs.of_runs(),
            *runs.of_errors(), *runs.of_damage(), *runs.of_second_times()]
