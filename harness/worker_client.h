#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "harness/catalog.h"

namespace spt {

/// What the worker program answers. The planner asks through this, so that tests need no worker.
class WorkerClient {
 public:
  virtual ~WorkerClient() = default;
  virtual Catalog catalog() = 0;
  virtual DescribeAnswer describe(const DescribeQuery& query) = 0;
  virtual std::vector<std::vector<ProbeAnswer>> probe(const ProbeQuery& query) = 0;
  virtual ConvertAnswer convert(const ConvertQuery& query) = 0;  ///< writes query.output
};

struct WorkerOptions {
  std::filesystem::path program;  ///< spt-bench-worker
  std::filesystem::path cache;    ///< folder of the answers; "": none are kept
  std::chrono::seconds timeout{600};
};

/// `flag` if it is given, else spt-bench-worker beside the running program. Errors: Error if there is no such program.
std::filesystem::path worker_program(const std::string& flag);

/// $XDG_CACHE_HOME/spt-bench or ~/.cache/spt-bench; "" where neither variable is set.
std::filesystem::path default_cache();

/// Starts the worker for what its cache does not hold. Catalog and describe answers are kept in <cache>/<build id>/, one file an answer;
/// answers about data are kept by what the data folder holds (names, sizes, times). A file that cannot be read is asked for again; a cache
/// that cannot be written is done without. Probes and conversions are never kept.
/// Errors: Error naming the program, with the last lines it wrote to stderr, if it fails, answers no JSON or takes longer than the
/// time-out.
std::unique_ptr<WorkerClient> make_worker_client(WorkerOptions options);

/// GNU build id of an ELF file, in hexadecimal. Errors: Error for a file that is none or has none.
std::string elf_build_id(const std::filesystem::path& file);

}  // namespace spt
