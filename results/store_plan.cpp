#include <algorithm>
#include <bit>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "harness/base/json.h"
#include "results/store_impl.h"

namespace spt::results {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

// The analysis is fixed by the first run: as long as no stage of the matrix has been tried, a plan may still change it.
bool results_were_seen(Database& database, int64_t matrix) {
  Query query = database.query(R"sql(
    SELECT EXISTS (SELECT 1 FROM label JOIN job_stage ON job_stage.job = label.job JOIN stage ON stage.id = job_stage.stage
                   WHERE label.matrix = ? AND stage.attempts > 0))sql");
  return query.bind(matrix).step() && query.integer(0) != 0;
}

int64_t record_matrix(Database& database, const MatrixRow& row) {
  const std::string seeds = canonical(nlohmann::json(row.seeds));
  Query known = database.query("SELECT id, analysis_hash FROM matrix WHERE key = ?");
  if (!known.bind(row.id).step()) {
    database
        .query(
            "INSERT INTO matrix (key, name, profile, reference, mode, toml, seeds, analysis_hash, analysis_changed, margin, first_run_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        .run(row.id, row.name, row.profile, row.reference, row.mode, row.toml, seeds, row.analysis_hash, int64_t{row.analysis_changed},
             row.margin, row.first_run_at.empty() ? utc_now() : row.first_run_at);
    return database.last_id();
  }
  const int64_t id = known.integer(0);
  const std::string first_hash = known.text(1);
  const bool seen = results_were_seen(database, id);
  database
      .query(
          "UPDATE matrix SET name = ?, profile = ?, reference = ?, mode = ?, toml = ?, seeds = ?, analysis_hash = ?, analysis_changed = ?, "
          "margin = ? "
          "WHERE id = ?")
      .run(row.name, row.profile, row.reference, row.mode, row.toml, seeds, seen ? first_hash : row.analysis_hash,
           int64_t{seen && first_hash != row.analysis_hash}, row.margin, id);
  return id;
}

void record_stages(Database& database, const std::vector<PlannedStage>& stages) {
  std::vector<const PlannedStage*> order;  // parents first
  for (const PlannedStage& stage : stages) order.push_back(&stage);
  std::stable_sort(order.begin(), order.end(), [](const PlannedStage* a, const PlannedStage* b) { return a->index < b->index; });
  Query insert = database.query("INSERT OR IGNORE INTO stage (key, name, position, parent) VALUES (?, ?, ?, nullif(?, 0))");
  Query spec = database.query("INSERT INTO stage_spec (stage, spec) VALUES (?, ?)");
  for (const PlannedStage* stage : order) {
    const int64_t parent = stage->parent.empty() ? 0 : require_stage(database, stage->parent);
    if (insert.run(stage->key, stage->name, stage->index, parent) == 1) spec.run(database.last_id(), stage->spec);
  }
}

// A job is its last stage; its chain follows from the key, so what is known already is right.
int64_t record_job(Database& database, const PlannedJob& job) {
  SPT_CHECK(!job.stages.empty() && job.stages.back() == job.key, "job {} has the stages {}", job.key, fmt::join(job.stages, " "));
  const int64_t id = require_stage(database, job.key);
  if (database.query("INSERT OR IGNORE INTO job (stage, seed, flops) VALUES (?, ?, ?)")
          .run(id, std::bit_cast<int64_t>(job.seed), job.flops) == 0)
    return id;
  Query chain = database.query("INSERT INTO job_stage (job, position, stage) VALUES (?, ?, ?)");
  for (size_t i = 0; i < job.stages.size(); ++i) chain.run(id, static_cast<int64_t>(i), require_stage(database, job.stages[i]));
  return id;
}

void record_labels(Database& database, int64_t matrix, const std::vector<PlannedJob>& jobs) {
  database.query("DELETE FROM label WHERE matrix = ?").run(matrix);
  Query insert = database.query("INSERT INTO label VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  int64_t position = 0;
  for (const PlannedJob& job : jobs) {
    const int64_t id = record_job(database, job);
    insert.run(matrix, position++, id, job.name, job.task, job.architecture, job.protocol, job.arm, job.arm_kind, job.pairs_with,
               job.purpose, int64_t{job.trivial}, job.match_cost, job.metric, job.unit, int64_t{job.higher_is_better});
  }
}

}  // namespace

void Store::record_plan(const MatrixRow& matrix, const std::vector<PlannedJob>& jobs, const std::vector<PlannedStage>& stages) {
  impl_->database.write([&] {
    const int64_t id = record_matrix(impl_->database, matrix);
    record_stages(impl_->database, stages);
    record_labels(impl_->database, id, jobs);
  });
}

bool Store::is_needed(const std::string& stage_key) const {
  return impl_->database.read([&] {
    Query query = impl_->database.query(R"sql(
      SELECT EXISTS (SELECT 1 FROM stage AS child JOIN job_stage ON job_stage.stage = child.id JOIN label ON label.job = job_stage.job
                     WHERE child.parent = (SELECT id FROM stage WHERE key = ?) AND child.status <> 'done'))sql");
    return query.bind(stage_key).step() && query.integer(0) != 0;
  });
}

int64_t find_stage(Database& database, const std::string& key) {
  Query query = database.query("SELECT id FROM stage WHERE key = ?");
  return query.bind(key).step() ? query.integer(0) : 0;
}

int64_t require_stage(Database& database, const std::string& key) {
  const int64_t stage = find_stage(database, key);
  if (stage == 0) throw Error("stage '{}' is not in the database: no plan has recorded it", key);
  return stage;
}

}  // namespace spt::results
