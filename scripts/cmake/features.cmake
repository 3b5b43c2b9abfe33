# Libraries: what was found, in which version, and the optional ones. Each optional library is a feature, switched by
# LOCKSTEP_WITH_NAME = AUTO (taken where it is found), ON (an error where it is not) or OFF. The rows collected here are
# compiled in (src/base/build_info.cpp): `trainer --version` and the errors about missing features come from them.
set(library_rows "")
set(feature_rows "")

# lockstep_library(NAME VERSION): a library that is always linked.
function(lockstep_library name version)
  string(APPEND library_rows "    {\"${name}\", \"${version}\"},\n")
  set(library_rows "${library_rows}" PARENT_SCOPE)
endfunction()

# lockstep_header_version(VARIABLE HEADER MACRO...): the version that a header states, in one macro or in several; what
# stands between a macro and its first digit is passed over.
function(lockstep_header_version variable header)
  set(parts "")
  foreach(macro IN LISTS ARGN)
    set(line "")
    if(EXISTS "${header}")
      file(STRINGS "${header}" line REGEX "#[ \t]*define[ \t]+${macro}[ \t]" LIMIT_COUNT 1)
    endif()
    string(REGEX REPLACE ".*${macro}[^0-9]*([0-9.]+).*" "\\1" number "${line}")
    list(APPEND parts "${number}")
  endforeach()
  list(JOIN parts "." version)
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

# lockstep_switch(NAME LABEL): declares LOCKSTEP_WITH_NAME.
macro(lockstep_switch name label)
  set(LOCKSTEP_WITH_${name} AUTO CACHE STRING "${label}: AUTO (where it is found), ON or OFF")
  set_property(CACHE LOCKSTEP_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT LOCKSTEP_WITH_${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "LOCKSTEP_WITH_${name} is \"${LOCKSTEP_WITH_${name}}\": give AUTO, ON or OFF")
  endif()
endmacro()

# lockstep_find(NAME HEADER SUFFIX LIBRARY...): looks for them unless the feature is switched off; sets NAME_INCLUDE_DIR,
# NAME_LIBRARY and found.
macro(lockstep_find name header suffix)
  if(LOCKSTEP_WITH_${name})
    find_path(${name}_INCLUDE_DIR ${header} PATH_SUFFIXES ${suffix})
    find_library(${name}_LIBRARY NAMES ${ARGN} PATH_SUFFIXES ${suffix})
  endif()
  set(found 0)
  if(${name}_INCLUDE_DIR AND ${name}_LIBRARY)
    set(found 1)
  endif()
endmacro()

# lockstep_feature(NAME LABEL LABEL FOUND 0|1 VERSION V PACKAGES "..." GIVES "..." WITHOUT "..."): sets has_NAME. GIVES: what
# the program can do with it; WITHOUT: what to do or what happens where it is missing.
function(lockstep_feature name)
  cmake_parse_arguments(arg "" "LABEL;FOUND;VERSION;PACKAGES;GIVES;WITHOUT" "" ${ARGN})
  set(has 0)
  set(version "")
  if(LOCKSTEP_WITH_${name} AND arg_FOUND)
    set(has 1)
    set(version "${arg_VERSION}")
  elseif(LOCKSTEP_WITH_${name} STREQUAL "ON")
    message(FATAL_ERROR "${arg_LABEL} was not found. On Debian: apt-get install ${arg_PACKAGES} (or -DLOCKSTEP_WITH_${name}=OFF)")
  elseif(LOCKSTEP_WITH_${name} STREQUAL "AUTO")
    message(STATUS "${arg_LABEL} was not found (Debian: apt-get install ${arg_PACKAGES}); it gives: ${arg_GIVES}")
  endif()
  string(APPEND feature_rows "    {\"${name}\", \"${arg_LABEL}\", ${has}, \"${version}\", \"${arg_PACKAGES}\", \"${arg_GIVES}\",\n"
                             "     \"${arg_WITHOUT}\"},\n")
  set(feature_rows "${feature_rows}" PARENT_SCOPE)
  set(has_${name} ${has} PARENT_SCOPE)
endfunction()

# ---- the optional libraries -----------------------------------------------------------------------------------------
# The classes of ONNX files. ONNX's CMake files take Protobuf as found.
lockstep_switch(ONNX "Models as ONNX files")
if(LOCKSTEP_WITH_ONNX)
  find_package(Protobuf QUIET)
  if(Protobuf_FOUND)
    find_package(ONNX QUIET)
  endif()
  # ONNX 1.12 exports its target without a namespace.
  if(ONNX_FOUND AND NOT TARGET ONNX::onnx_proto)
    add_library(ONNX::onnx_proto ALIAS onnx_proto)
  endif()
endif()
lockstep_feature(ONNX LABEL "ONNX" FOUND "${ONNX_FOUND}" VERSION "${ONNX_VERSION} with Protobuf ${Protobuf_VERSION}"
  PACKAGES "libonnx-dev libprotobuf-dev" GIVES "models as ONNX files (export --format onnx)"
  WITHOUT "export as safetensors or npz")

lockstep_switch(HDF5 "Data in HDF5 files")
lockstep_find(HDF5 hdf5.h hdf5/serial hdf5_serial hdf5)
lockstep_header_version(version "${HDF5_INCLUDE_DIR}/H5public.h" H5_VERS_MAJOR H5_VERS_MINOR H5_VERS_RELEASE)
lockstep_feature(HDF5 LABEL "HDF5" FOUND ${found} VERSION "${version}" PACKAGES "libhdf5-dev"
  GIVES "data in HDF5 files (.h5)" WITHOUT "save the arrays with numpy.save")

# Not by find_package: Debian's libzip-config.cmake fails unless three command-line tools are installed too.
lockstep_switch(ZIP "Archives of numpy arrays")
lockstep_find(ZIP zip.h "" zip)
find_file(ZIP_VERSION_HEADER zipconf.h HINTS ${ZIP_INCLUDE_DIR})
mark_as_advanced(ZIP_VERSION_HEADER)
lockstep_header_version(version "${ZIP_VERSION_HEADER}" LIBZIP_VERSION)
lockstep_feature(ZIP LABEL "libzip" FOUND ${found} VERSION "${version}" PACKAGES "libzip-dev"
  GIVES "data in .npz archives, and export --format npz" WITHOUT "read .npy files of numpy, and export as safetensors")

# Gzip files are unpacked by ISA-L where it is there, else by zlib.
lockstep_switch(ISAL "Gzip files by ISA-L")
lockstep_find(ISAL isa-l/igzip_lib.h "" isal)
lockstep_header_version(version "${ISAL_INCLUDE_DIR}/isa-l.h" ISAL_MAJOR_VERSION ISAL_MINOR_VERSION ISAL_PATCH_VERSION)
lockstep_feature(ISAL LABEL "ISA-L" FOUND ${found} VERSION "${version}" PACKAGES "libisal-dev"
  GIVES "gzip files are read two to three times as fast" WITHOUT "zlib reads them")

# The charts of `trainer report`: one file of JavaScript, which becomes part of the program (report_page.cmake).
lockstep_switch(CHARTJS "Charts in pages of trainer report")
if(LOCKSTEP_WITH_CHARTJS)
  find_file(CHARTJS_FILE chart.min.js PATHS /usr/share /usr/local/share PATH_SUFFIXES javascript/chart.js nodejs/chart.js/dist)
endif()
set(found 0)
set(version "")
if(CHARTJS_FILE)
  file(STRINGS "${CHARTJS_FILE}" line REGEX "Chart.js v[0-9.]+" LIMIT_COUNT 1)
  string(REGEX REPLACE ".*Chart.js v([0-9.]+).*" "\\1" version "${line}")
  set(found 1)
endif()
lockstep_feature(CHARTJS LABEL "Chart.js" FOUND ${found} VERSION "${version}" PACKAGES "libjs-chart.js"
  GIVES "pages that show what a run did (trainer report)" WITHOUT "trainer export-metrics writes the numbers as CSV")

# What stands for a feature in the sources, and what stands for it where it is missing.
set(unused_sources "")
function(lockstep_sources name with without)
  if(has_${name})
    list(APPEND unused_sources "${without}")
  else()
    list(APPEND unused_sources "${with}")
  endif()
  set(unused_sources "${unused_sources}" PARENT_SCOPE)
endfunction()
lockstep_sources(ONNX "/exporters/onnx/(writer|graph|table_inputs)" "/exporters/onnx/missing")
lockstep_sources(ZIP "/exporters/npz|/inputs/array" "/exporters/npz_missing|/inputs/array_missing")
lockstep_sources(HDF5 "/hdf5/dataset" "/hdf5/missing")
lockstep_sources(ISAL "/inputs/gzip_isal" "/inputs/gzip")
list(JOIN unused_sources "|" unused_sources)
set(unused_sources "(${unused_sources}).cpp$")

# lockstep_link_features(TARGET): the headers and libraries of the readers' features. The headers are public: tests write such
# files themselves.
function(lockstep_link_features target)
  foreach(name HDF5 ZIP ISAL)
    if(has_${name})
      target_include_directories(${target} SYSTEM PUBLIC ${${name}_INCLUDE_DIR})
      target_link_libraries(${target} PRIVATE ${${name}_LIBRARY})
    endif()
  endforeach()
endfunction()
