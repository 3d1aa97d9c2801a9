#include "results/store.h"

#include "results/database.h"
#include "results/schema.h"
#include "results/store_impl.h"

namespace spt::results {

Store::Store(const std::filesystem::path& file, Mode mode, int busy_timeout_ms)
    : impl_(std::make_unique<Impl>(file, mode == Mode::kReadOnly, busy_timeout_ms)) {}

Store::~Store() = default;

const std::string& Store::note() const { return impl_->database.note(); }

int Store::schema_version() { return static_cast<int>(migrations().size()); }

std::string Store::integrity_problem() const {
  try {
    return impl_->database.read([&] {
      Query query = impl_->database.query("PRAGMA quick_check");
      std::string problem;
      while (query.step()) {
        const std::string line = query.text(0);
        if (line != "ok") problem += (problem.empty() ? "" : "; ") + line;
      }
      return problem;
    });
  } catch (const Error& e) {
    return e.what();  // damage that stops the check is what was asked for
  }
}

}  // namespace spt::results
