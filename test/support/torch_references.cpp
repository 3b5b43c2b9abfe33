#include "torch_references.h"

#include "lockstep/base/file.h"

namespace lockstep::test {

nlohmann::json torch_references(const std::string& section, const std::string& name) {
  const auto cases =
      parse_json<nlohmann::json>(read_file(LOCKSTEP_TEST_DATA "/regression/" + name)).at(section);
  EXPECT_FALSE(cases.empty()) << section;
  return cases;
}

}  // namespace lockstep::test
