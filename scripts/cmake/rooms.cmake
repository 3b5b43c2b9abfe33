# Rooms: the folders below src/. Hot rooms compute and are compiled as the preset says; cold rooms read, write and talk
# to people, and are compiled with -O1. In a unity build (CMAKE_UNITY_BUILD) the files of a room are compiled together,
# at most lockstep_max_batch of them.
set(cold_rooms "app|comm|config|report|train/plan|train/storage")
# Hash and random numbers are needed in each step and for each checkpoint.
set(cold_files "base/(aligned|build|catalog|embedded|file|json|log|output|process|terminal|terms|text|trace)"
               "data/inspect/(findings|inspect)"
               "data/table/(values/schema_json|schema/(declare_columns|infer|kept_columns|learn_schema))")
list(JOIN cold_files "|" cold_files)
set(cold_sources "/src/((${cold_rooms})/|${cold_files})")

# Rooms of a few files are compiled with the room that they belong to.
set(small_rooms "app/.*|data/(inputs|inspect|kinds|loading|parts|text|windows)(/.*)?|data/table/.*|distributed/exchange/.*|distributed/strategies/parameter_server|nn/losses"
                "|optim/.*|report/.*|train/storage/.*|train/bench")
list(JOIN small_rooms "" small_rooms)
set(lockstep_max_batch 16)

# lockstep_batches(NAME MOST SOURCE...): divides sources into unity groups of about the same number of files, at most MOST.
function(lockstep_batches name most)
  list(LENGTH ARGN count)
  math(EXPR batches "(${count} + ${most} - 1) / ${most}")
  set(i 0)
  foreach(source IN LISTS ARGN)
    math(EXPR batch "${i} * ${batches} / ${count}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${name}_${batch})
    math(EXPR i "${i} + 1")
  endforeach()
endfunction()

# lockstep_unity(SOURCE...): divides sources of one target into unity groups, each within one room. Files with flags of
# their own are left out by CMake, and so are those that it makes.
function(lockstep_unity)
  set(rooms "")
  foreach(source IN LISTS ARGN)
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR}/src ${folder})
    if(room MATCHES "^(${small_rooms})$")
      string(REGEX MATCH "^[a-z_]+(/(exchange|strategies|storage|table))?" room ${room})
    endif()
    if(NOT room MATCHES "^[.]")
      string(MAKE_C_IDENTIFIER ${room} room)
      list(APPEND rooms ${room})
      list(APPEND sources_of_${room} ${source})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    lockstep_batches(${room} ${lockstep_max_batch} ${sources_of_${room}})
  endforeach()
endfunction()
