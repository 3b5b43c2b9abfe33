#include "program.h"

int main(int argc, char** argv) {
  return lockstep::run_program({argv + 1, argv + argc});
}
