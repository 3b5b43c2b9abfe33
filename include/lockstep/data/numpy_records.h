// Structured arrays of numpy, whose records have named fields.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

/// The fields that hold numbers; none if the array holds plain numbers. Errors: DataError if that is no array
/// file of numpy.
std::vector<std::string> list_number_fields(const std::string& path);

}  // namespace lockstep
