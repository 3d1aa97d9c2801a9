#include "harness/schedule/progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace spt::schedule {
namespace {

std::string summary_line(const ProgressView& view) {
  std::string line = fmt::format("{}/{} stages done", view.done, view.total);
  if (view.failed > 0) line += fmt::format(", {} failed", view.failed);
  return line + fmt::format(", {} elapsed, about {} left", format_duration(view.elapsed_s), format_duration(view.eta_s));
}

std::string running_line(const RunningView& row) {
  std::string line = fmt::format("  {} [{}]", row.label, row.slot);
  if (row.steps == 0) return line + " starting";
  line += fmt::format(" step {}/{} loss {:.4f}", row.step, row.steps, row.loss);
  if (!row.metric.empty()) line += fmt::format(" {} {:.4f}", row.metric, row.metric_value);
  return line + fmt::format(" ETA {}", format_duration(row.eta_s));
}

std::string ended_line(const StageTask& task, const std::string& status, const std::string& message, double seconds) {
  return fmt::format("{} {} ({}){}", status, task.label, format_duration(seconds), message.empty() ? "" : ": " + message);
}

class LiveObserver : public Observer {
 public:
  LiveObserver(std::ostream& out, int width) : out_(out), width_(static_cast<size_t>(std::max(20, width))) {}
  ~LiveObserver() override { erase(); }
  void started(const StageTask&, const Slot&) override {}
  void ended(const StageTask& task, const std::string& status, const std::string& message, double seconds) override {
    if (status == "done") return;
    erase();
    out_ << ended_line(task, status, message, seconds) << '\n';
  }
  void progress(const ProgressView& view) override {
    erase();
    put(summary_line(view));
    for (const RunningView& row : view.running) put(running_line(row));
    out_.flush();
  }

 private:
  void put(std::string line) {
    if (line.size() > width_) line.resize(width_);
    out_ << line << '\n';
    ++drawn_;
  }
  void erase() {
    if (drawn_ > 0) out_ << fmt::format("\x1b[{}A\x1b[J", drawn_);
    drawn_ = 0;
  }
  std::ostream& out_;
  size_t width_;
  int drawn_ = 0;
};

class PlainObserver : public Observer {
 public:
  PlainObserver(std::ostream& out, std::chrono::seconds interval) : out_(out), interval_(interval) {}
  void started(const StageTask& task, const Slot& slot) override {
    out_ << fmt::format("start {} on {}", task.label, slot.name()) << std::endl;
  }
  void ended(const StageTask& task, const std::string& status, const std::string& message, double seconds) override {
    out_ << ended_line(task, status, message, seconds) << std::endl;
  }
  void progress(const ProgressView& view) override {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + interval_;
    out_ << summary_line(view) << std::endl;
  }

 private:
  std::ostream& out_;
  std::chrono::seconds interval_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + interval_;
};

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds >= 0)) return "?";
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::unique_ptr<Observer> make_live_observer(std::ostream& out, int width) { return std::make_unique<LiveObserver>(out, width); }

std::unique_ptr<Observer> make_plain_observer(std::ostream& out, std::chrono::seconds interval) {
  return std::make_unique<PlainObserver>(out, interval);
}

}  // namespace spt::schedule
