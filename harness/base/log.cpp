#include "harness/base/log.h"

#include <spdlog/sinks/basic_file_sink.h>

#include "harness/base/error.h"

namespace spt {

void log_to_file(const std::filesystem::path& file) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    auto logger = std::make_shared<spdlog::logger>("spt", std::move(sink));
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
    logger->flush_on(spdlog::level::trace);
    spdlog::set_default_logger(std::move(logger));
  } catch (const spdlog::spdlog_ex& e) {
    throw Error("cannot write the log file '{}': {}", file.string(), e.what());
  }
}

}  // namespace spt
