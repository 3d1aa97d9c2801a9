#include "harness/schedule/follower.h"

#include <algorithm>
#include <fstream>

#include "harness/base/log.h"
#include "results/journal.h"

namespace spt::schedule {

JournalFollower::JournalFollower(results::Store& store, std::filesystem::path run_dir, std::string stage_key, int64_t attempt)
    : store_(store),
      journal_(std::move(run_dir) / "journal.jsonl"),
      stage_key_(std::move(stage_key)),
      attempt_(attempt),
      offset_(store.ingested_offset(stage_key_)) {}

bool JournalFollower::poll() {
  results::JournalTail tail = results::read_journal(journal_, offset_);
  if (tail.offset == offset_) return false;
  for (const std::string& problem : tail.problems) spdlog::warn("journal: {}", problem);
  std::erase_if(tail.lines, [&](const results::JournalLine& line) {
    if (line.stage_key == stage_key_) return false;
    spdlog::warn("journal '{}' holds a line of another stage: {}", journal_.string(), line.stage_key);
    return true;
  });
  for (const std::string& warning : store_.ingest(tail.lines)) spdlog::warn("ingest: {}", warning);
  store_.set_ingested_offset(stage_key_, tail.offset);
  offset_ = tail.offset;
  for (const results::JournalLine& line : tail.lines) {
    if (line.attempt != attempt_) continue;
    step_ = line.step;
    if (const auto* progress = std::get_if<results::ProgressEvent>(&line.event)) progress_ = *progress;
    if (const auto* failed = std::get_if<results::FailedEvent>(&line.event)) failed_ = *failed;
    done_ = done_ || std::holds_alternative<results::DoneEvent>(line.event);
  }
  return true;
}

std::string log_tail(const std::filesystem::path& log, size_t lines) {
  constexpr std::streamoff kWindow = 16384;
  std::ifstream in(log, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kWindow));
  std::string text(std::istreambuf_iterator<char>(in), {});
  size_t start = text.size();
  for (size_t n = 0; start > 0 && n <= lines; --start)
    if (text[start - 1] == '\n' && start != text.size() && ++n == lines) break;
  return text.substr(start);
}

}  // namespace spt::schedule
