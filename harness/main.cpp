#include <iostream>

#include "harness/cli/cli.h"

int main(int argc, char** argv) { return spt::cli::run({argv + 1, argv + argc}, std::cout, std::cerr); }
