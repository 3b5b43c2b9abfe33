# What is compiled in about the build itself: generated/build_values.h, written when CMake runs, and generated/commit.h,
# written by each build in which the commit has changed.
foreach(library Eigen3 CLI11 spdlog fmt tomlplusplus nlohmann_json)
  lockstep_library(${library} "${${library}_VERSION}")
endforeach()
lockstep_library(zlib "${ZLIB_VERSION_STRING}")
lockstep_header_version(version "${XXHASH_INCLUDE_DIR}/xxhash.h" XXH_VERSION_MAJOR XXH_VERSION_MINOR XXH_VERSION_RELEASE)
lockstep_library(xxHash "${version}")
if("onednn" IN_LIST back_ends)
  lockstep_header_version(version "${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" DNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH)
  lockstep_library(oneDNN "${version}")
endif()

set(LOCKSTEP_COMMIT "" CACHE STRING "The commit that --version names; empty: asked of git")
set(generated ${PROJECT_BINARY_DIR}/generated)
configure_file(scripts/cmake/build_values.h.in ${generated}/build_values.h @ONLY)
set(write_commit ${CMAKE_COMMAND} -D "COMMIT=${LOCKSTEP_COMMIT}" -D "SOURCE=${PROJECT_SOURCE_DIR}" -D "OUTPUT=${generated}/commit.h"
    -P ${PROJECT_SOURCE_DIR}/scripts/cmake/write_commit.cmake)
add_custom_target(lockstep_commit COMMAND ${write_commit} BYPRODUCTS ${generated}/commit.h COMMENT "")
add_library(lockstep_build_info INTERFACE)
target_include_directories(lockstep_build_info INTERFACE ${generated})
add_dependencies(lockstep_build_info lockstep_commit)
