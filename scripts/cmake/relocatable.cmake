# LOCKSTEP_RELOCATABLE: an installed tree that can be copied anywhere and needs glibc and an MPI library only. {fmt}, spdlog and
# toml++ are taken as headers, zlib and HDF5 as archives. Debian has no archives of oneDNN, libzip, ISA-L and ONNX's classes,
# and its Protobuf archive does not go with the latter: these are installed beside the program (scripts/cmake/install.cmake), and with
# them what they need, libstdc++ too, since two of it in one process do not go together.
add_library(text_libraries INTERFACE)
target_compile_definitions(text_libraries INTERFACE FMT_HEADER_ONLY=1 SPDLOG_FMT_EXTERNAL TOML_HEADER_ONLY=1)
foreach(library spdlog::spdlog fmt::fmt tomlplusplus::tomlplusplus)
  get_target_property(directories ${library} INTERFACE_INCLUDE_DIRECTORIES)
  if(directories)
    target_include_directories(text_libraries SYSTEM INTERFACE ${directories})
  endif()
endforeach()
set(text_libraries text_libraries)

# lockstep_archive(VARIABLE NAME...): one of the archives.
macro(lockstep_archive variable)
  find_library(${variable} NAMES ${ARGN} PATH_SUFFIXES hdf5/serial)
  if(NOT ${variable})
    message(FATAL_ERROR "None of ${ARGN} was found, which LOCKSTEP_RELOCATABLE links")
  endif()
endmacro()
set(archives libz.a)
if(has_HDF5)
  lockstep_archive(HDF5_ARCHIVE libhdf5_serial.a libhdf5.a)
  lockstep_archive(SZ_ARCHIVE libsz.a)
  lockstep_archive(AEC_ARCHIVE libaec.a)
  # As a target, so that what it needs comes after it.
  add_library(hdf5_archive STATIC IMPORTED)
  set_target_properties(hdf5_archive PROPERTIES IMPORTED_LOCATION ${HDF5_ARCHIVE})
  target_link_libraries(hdf5_archive INTERFACE ${SZ_ARCHIVE} ${AEC_ARCHIVE} ZLIB::ZLIB ${CMAKE_DL_LIBS})
  set(HDF5_LIBRARY hdf5_archive)
  string(APPEND archives ":libhdf5_serial.a:libhdf5.a:libsz.a:libaec.a")
endif()

# The MPI library is that of the place where the program runs, not that of this machine: no path of it is kept. The others are
# found by RPATH, not RUNPATH, so that theirs are found there too, whatever LD_LIBRARY_PATH says.
set_property(TARGET MPI::MPI_CXX PROPERTY INTERFACE_LINK_OPTIONS "")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/lockstep")
add_link_options(-Wl,--disable-new-dtags -Wl,--as-needed -Wl,--exclude-libs,${archives})
