# Writes OUTPUT, a header with COMMIT or, where that is empty, with what git says of SOURCE; an unchanged file is left alone.
if(NOT COMMIT)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT "unknown")
  endif()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/write_if_changed.cmake)
lockstep_write_if_changed("${OUTPUT}" "#define LOCKSTEP_COMMIT \"${COMMIT}\"\n")
