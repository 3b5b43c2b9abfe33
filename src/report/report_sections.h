// The parts of a page that are texts and tables. Each is HTML, and empty where the runs have nothing of it.
#pragma once

#include <string>
#include <vector>

#include "lockstep/report/report_page.h"

namespace lockstep {

std::string summary_section(const std::vector<RunDescription>& runs);
/// Measures side by side, and the keys whose values differ.
std::string comparison_section(const std::vector<RunDescription>& runs);
std::string workers_section(const std::vector<RunDescription>& runs);
/// Confusion matrix, and precision and recall of each class.
std::string classes_section(const std::vector<RunDescription>& runs);
/// The records with the largest losses.
std::string worst_section(const std::vector<RunDescription>& runs);
std::string columns_section(const std::vector<RunDescription>& runs);
std::string plan_section(const std::vector<RunDescription>& runs);
std::string config_section(const std::vector<RunDescription>& runs);
std::string environment_section(const std::vector<RunDescription>& runs);

}  // namespace lockstep
