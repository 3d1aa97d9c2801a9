#include <csignal>
#include <cstring>
#include <iostream>

#include "harness/cli/cli.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its size limit is an error of the write, as a full disk is
  const int code = spt::cli::run({argv + 1, argv + argc}, std::cout, std::cerr);
  errno = 0;
  if (std::cout.flush()) return code;
  std::cerr << "spt-bench: cannot write to standard output: " << (errno ? std::strerror(errno) : "an earlier part was lost") << '\n';
  return code == 0 ? 2 : code;
}
