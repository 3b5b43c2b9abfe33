# cmake --install, and packages of it by CPack: a .tar.gz with LOCKSTEP_RELOCATABLE, else a .deb. share/lockstep is laid out
# as the sources are, so that the links of the documents hold there too.
set(LOCKSTEP_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where the completion of zsh is installed")
set(share ${CMAKE_INSTALL_DATADIR}/lockstep)

# lockstep_write(FORMAT NAME): what the program writes about itself.
set(written_files "")
function(lockstep_write format name)
  set(file ${PROJECT_BINARY_DIR}/generated/${name})
  add_custom_command(OUTPUT ${file} COMMAND trainer reference --format ${format} > ${file} DEPENDS trainer VERBATIM)
  set(written_files ${written_files} ${file} PARENT_SCOPE)
endfunction()
lockstep_write(man trainer.1)
lockstep_write(bash trainer.bash)
lockstep_write(zsh _trainer)
add_custom_target(written_files ALL DEPENDS ${written_files})

list(GET written_files 0 manual)
list(GET written_files 1 bash_completion)
list(GET written_files 2 zsh_completion)
install(FILES ${manual} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${bash_completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME trainer)
install(FILES ${zsh_completion} DESTINATION ${LOCKSTEP_ZSH_DIR})
install(FILES README.md LICENSE DESTINATION ${share})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(DIRECTORY configs DESTINATION ${share} FILES_MATCHING PATTERN "*.toml" PATTERN "*.md" PATTERN texts EXCLUDE)
install(PROGRAMS scripts/run-until-done DESTINATION ${share}/scripts)
install(FILES scripts/mpi-environment DESTINATION ${share}/scripts)
install(DIRECTORY scripts/slurm DESTINATION ${share}/scripts FILES_MATCHING PATTERN "*.sbatch" PATTERN "*.md")

if(LOCKSTEP_RELOCATABLE)
  install(TARGETS trainer RUNTIME_DEPENDENCY_SET needed_libraries DESTINATION bin)
  install(RUNTIME_DEPENDENCY_SET needed_libraries
          PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util)\\.so" "^libmpi" "^libopen-"
          LIBRARY DESTINATION lib/lockstep)
else()
  install(TARGETS trainer)
endif()

# ---- packages ---------------------------------------------------------------------------------------------------------
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_CONTACT "The Lockstep authors")
set(CPACK_PACKAGE_VENDOR "Lockstep")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_FILE_NAME lockstep-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}-${LOCKSTEP_ARCH})
if(LOCKSTEP_RELOCATABLE)
  set(CPACK_GENERATOR TGZ)
else()
  set(CPACK_GENERATOR DEB)
endif()
# The libraries that it needs, by dpkg-shlibdeps, and the launcher, which is no library.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpiexec_version ERROR_QUIET)
if(mpiexec_version MATCHES "Open MPI|OpenRTE")
  set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS mpich)
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"One executable, trainer, reads one config in TOML and trains a neural network on
the ranks of mpirun. Its config files and batch scripts are in /usr/share/lockstep.")
include(CPack)
