#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/base/json.h"
#include "results/blob.h"
#include "results/journal.h"
#include "results/store_impl.h"

namespace spt::results {
namespace {

/// Writes the events of one batch. Rows are found once a batch and a stage's summary is refreshed once, at the end.
class Ingest {
 public:
  explicit Ingest(Database& database) : database_(database) {}
  void line(const JournalLine& line);
  std::vector<std::string> finish();

 private:
  struct Place {  // of a line: what the events need to know of it
    int64_t stage = 0, attempt = 0;
    const JournalLine* line = nullptr;
  };
  void event(const Place& place, const StartEvent& event);
  void event(const Place& place, const ProgressEvent& event);
  void event(const Place& place, const EvaluationEvent& event);
  void event(const Place& place, const CheckpointEvent& event);
  void event(const Place& place, const InitEvent& event);
  void event(const Place& place, const TransferEvent& event);
  void event(const Place& place, const ScoresEvent& event);
  void event(const Place& place, const DoneEvent& event);
  void event(const Place& place, const FailedEvent& event);
  void metrics(const Place& place, int64_t step, const std::vector<Metric>& metrics);
  void metric(const Place& place, int64_t step, const Metric& metric);
  int64_t series(const Metric& metric);
  bool equal_stamps(int64_t stage, int64_t a, int64_t b);

  Database& database_;
  std::map<std::string, int64_t, std::less<>> stages_;
  std::map<std::pair<int64_t, int64_t>, int64_t> attempts_;
  std::map<std::pair<std::string, std::string>, int64_t> series_;
  std::set<int64_t> touched_;
  std::set<std::string> unknown_;
  std::vector<std::string> warnings_;
};

void Ingest::line(const JournalLine& line) {
  const auto [known, fresh] = stages_.try_emplace(line.stage_key, 0);
  if (fresh) known->second = find_stage(database_, line.stage_key);
  if (known->second == 0) {
    unknown_.insert(line.stage_key);
    return;
  }
  Place place{known->second, 0, &line};
  int64_t& attempt = attempts_[{place.stage, line.attempt}];
  if (attempt == 0) attempt = require_attempt(database_, place.stage, line.attempt);
  place.attempt = attempt;
  touched_.insert(place.stage);
  database_
      .query("UPDATE attempt SET step = max(step, ?2), begun_at = coalesce(begun_at, ?3) WHERE id = ?1 AND (step < ?2 OR begun_at IS NULL)")
      .run(attempt, line.step, line.time);
  std::visit([&](const auto& e) { event(place, e); }, line.event);
}

std::vector<std::string> Ingest::finish() {
  for (const int64_t stage : touched_) refresh_stage(database_, stage);
  for (const std::string& key : unknown_)
    warnings_.push_back(fmt::format("journal lines of stage '{}' are left out: no plan has recorded it", key));
  return std::move(warnings_);
}

void Ingest::event(const Place& place, const StartEvent& e) {
  const Stamp& s = e.stamp;
  database_
      .query(
          R"sql(UPDATE attempt SET build_id = ?, libtorch = ?, compiler = ?, device_kind = ?, device_model = ?, cpu_capability = ?, threads = ?,
          deterministic = ?, begun_at = ?, host = ?, pid = ?, resumed_from = ?, resume_note = ?, parameters = ?, parameters_body = ?, data_hash = ?,
          partial_data = ?, train_size = ?, validation_size = ?, test_size = ?, chance = ?, majority = ?, notes = ?, startup_s = ?, open_s = ?
          WHERE id = ?)sql")
      .run(s.build_id, s.libtorch, s.compiler, s.device_kind, s.device_model, s.cpu_capability, s.threads, int64_t{s.deterministic},
           place.line->time, e.host, e.pid, e.resumed_from, e.resume_note, e.parameters, e.parameters_body, e.data_hash,
           int64_t{e.partial_data}, e.train_size, e.validation_size, e.test_size, e.chance, e.majority, canonical(nlohmann::json(e.notes)),
           e.startup_s, e.open_s, place.attempt);
}

void Ingest::event(const Place& place, const ProgressEvent& e) {
  database_
      .query(R"sql(UPDATE attempt SET progress_sequence = ?2, progress_at = ?3, progress_loss = ?4, progress_lr = ?5, progress_step_s = ?6,
          progress_steps = ?7, progress_metric = ?8, progress_value = ?9 WHERE id = ?1 AND coalesce(progress_sequence, -1) < ?2)sql")
      .run(place.attempt, place.line->sequence, place.line->time, e.loss, e.lr, e.step_s, e.steps, e.metric, e.metric_value);
}

void Ingest::event(const Place& place, const EvaluationEvent& e) {
  database_.query("UPDATE attempt SET evaluations = max(evaluations, ?2) WHERE id = ?1").run(place.attempt, e.index);
  metrics(place, place.line->step, e.metrics);
}

void Ingest::event(const Place& place, const CheckpointEvent& e) {
  database_.query("UPDATE attempt SET checkpoint = ?2, checkpoint_step = ?3 WHERE id = ?1 AND coalesce(checkpoint_step, -1) <= ?3")
      .run(place.attempt, e.file, place.line->step);
}

void Ingest::event(const Place& place, const InitEvent& e) {
  database_.query("UPDATE attempt SET init = ?2 WHERE id = ?1").run(place.attempt, format_fields(e));
}

void Ingest::event(const Place& place, const TransferEvent& e) {
  database_.query("UPDATE attempt SET transfer = ?2 WHERE id = ?1").run(place.attempt, format_fields(e));
}

void Ingest::event(const Place& place, const ScoresEvent& e) {
  const std::string scores = compress(e.scores), predicted = compress(e.predicted), clusters = compress(e.clusters);
  Query query = database_.query(R"sql(
      INSERT INTO score (stage, split, metric, attempt, sequence, n, n_predicted, n_clusters, scores, predicted, clusters)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET attempt = excluded.attempt, sequence = excluded.sequence, n = excluded.n, n_predicted = excluded.n_predicted,
        n_clusters = excluded.n_clusters, scores = excluded.scores, predicted = excluded.predicted, clusters = excluded.clusters
      WHERE (excluded.attempt, excluded.sequence) > (score.attempt, score.sequence))sql");
  query.bind(place.stage, e.split, e.metric, place.line->attempt, place.line->sequence, static_cast<int64_t>(e.scores.size()),
             static_cast<int64_t>(e.predicted.size()), static_cast<int64_t>(e.clusters.size()));
  query.statement().bind(9, scores.data(), static_cast<int>(scores.size()));
  query.statement().bind(10, predicted.data(), static_cast<int>(predicted.size()));
  query.statement().bind(11, clusters.data(), static_cast<int>(clusters.size()));
  query.statement().exec();
}

void Ingest::event(const Place& place, const DoneEvent& e) {
  metrics(place, e.steps, e.last);
  metrics(place, e.selected_step, e.selected);
  // A whole result counts, whatever else is said of how its process ended.
  database_
      .query(
          R"sql(UPDATE attempt SET status = 'done', ended_by = 'journal', message = '', tensor = '', log_tail = '', ended_at = ?, selected_step = ?,
          not_converged = ?, steps = ?, examples = ?, tokens = ?, flops = ?, train_s = ?, evaluate_s = ?, save_s = ?, reload_s = ?, test_s = ?,
          data_wait_s = ?, wall_s = ?, peak_memory = ?, reload_equal = ? WHERE id = ?)sql")
      .run(place.line->time, e.selected_step, int64_t{e.not_converged}, e.steps, e.examples, e.tokens, e.flops, e.train_s, e.evaluate_s,
           e.save_s, e.reload_s, e.test_s, e.data_wait_s, e.wall_s, e.peak_memory, int64_t{e.reload_equal}, place.attempt);
}

void Ingest::event(const Place& place, const FailedEvent& e) {
  database_
      .query(
          "UPDATE attempt SET status = ?2, ended_by = 'journal', message = ?3, tensor = ?4, ended_at = ?5 "
          "WHERE id = ?1 AND status <> 'done' AND coalesce(ended_by, '') <> 'supervisor'")
      .run(place.attempt, std::string(failure_name(e.failure)), e.message, e.tensor, place.line->time);
}

void Ingest::metrics(const Place& place, int64_t step, const std::vector<Metric>& metrics) {
  for (const Metric& each : metrics) metric(place, step, each);
}

bool same_value(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) || a == b || (std::isnan(a) && std::isnan(b));
}

void Ingest::metric(const Place& place, int64_t step, const Metric& metric) {
  const int64_t series = this->series(metric);
  const int64_t attempt = place.line->attempt, sequence = place.line->sequence;
  Query insert =
      database_.query("INSERT OR IGNORE INTO metric (stage, series, step, value, n, attempt, sequence) VALUES (?, ?, ?, ?, ?, ?, ?)");
  if (insert.run(place.stage, series, step, metric.value, metric.n, attempt, sequence) == 1) return;
  Query stored = database_.query("SELECT value, attempt, sequence FROM metric WHERE stage = ? AND series = ? AND step = ?");
  SPT_CHECK(stored.bind(place.stage, series, step).step(), "a metric is neither new nor stored");
  const double value = stored.real(0);
  const std::pair<int64_t, int64_t> stored_at{stored.integer(1), stored.integer(2)};
  if (!same_value(value, metric.value) && equal_stamps(place.stage, stored_at.first, attempt))
    warnings_.push_back(fmt::format("stage {} step {}: {} {} is {} in attempt {} and {} in attempt {} under an equal stamp",
                                    place.line->stage_key, step, metric.split, metric.name, value, stored_at.first, metric.value, attempt));
  if (stored_at >= std::pair{attempt, sequence}) return;
  database_.query("UPDATE metric SET value = ?4, n = ?5, attempt = ?6, sequence = ?7 WHERE stage = ?1 AND series = ?2 AND step = ?3")
      .run(place.stage, series, step, metric.value, metric.n, attempt, sequence);
}

int64_t Ingest::series(const Metric& metric) {
  int64_t& id = series_[{metric.split, metric.name}];
  if (id != 0) return id;
  database_.query("INSERT OR IGNORE INTO series (split, name) VALUES (?, ?)").run(metric.split, metric.name);
  Query query = database_.query("SELECT id FROM series WHERE split = ? AND name = ?");
  SPT_CHECK(query.bind(metric.split, metric.name).step(), "a series is neither new nor stored");
  return id = query.integer(0);
}

bool Ingest::equal_stamps(int64_t stage, int64_t a, int64_t b) {
  if (a == b) return true;
  Query query = database_.query(R"sql(
      SELECT count(*) FROM attempt a JOIN attempt b USING (build_id, libtorch, compiler, device_kind, device_model, cpu_capability, threads, deterministic)
      WHERE a.stage = ?1 AND a.number = ?2 AND b.stage = ?1 AND b.number = ?3)sql");
  return query.bind(stage, a, b).step() && query.integer(0) == 1;
}

}  // namespace

int64_t require_attempt(Database& database, int64_t stage, int64_t number) {
  database.query("INSERT OR IGNORE INTO attempt (stage, number) VALUES (?, ?)").run(stage, number);
  Query query = database.query("SELECT id FROM attempt WHERE stage = ? AND number = ?");
  SPT_CHECK(query.bind(stage, number).step(), "attempt {} is neither new nor stored", number);
  return query.integer(0);
}

void refresh_stage(Database& database, int64_t stage) {
  database
      .query(
          R"sql(UPDATE stage SET (attempts, oom_attempts) = (SELECT count(*), count(*) FILTER (WHERE status = 'oom') FROM attempt WHERE stage = ?1),
          latest = (SELECT id FROM attempt WHERE stage = ?1 ORDER BY number DESC LIMIT 1),
          result = (SELECT id FROM attempt WHERE stage = ?1 AND status = 'done' ORDER BY number DESC LIMIT 1) WHERE id = ?1)sql")
      .run(stage);
  database
      .query(R"sql(UPDATE stage SET (status, step) = (
          SELECT CASE WHEN latest.status = 'running' THEN 'running' WHEN stage.result IS NOT NULL THEN 'done' WHEN stage.blocked IS NOT NULL THEN 'blocked'
                      ELSE coalesce(latest.status, 'planned') END,
                 coalesce(iif(latest.status = 'running', latest.step, coalesce(result.step, latest.step)), 0)
          FROM (SELECT 1) LEFT JOIN attempt latest ON latest.id = stage.latest LEFT JOIN attempt result ON result.id = stage.result) WHERE id = ?1)sql")
      .run(stage);
}

std::vector<std::string> Store::ingest(const std::vector<JournalLine>& lines) {
  return impl_->database.write([&] {
    Ingest ingest(impl_->database);
    for (const JournalLine& line : lines) ingest.line(line);
    return ingest.finish();
  });
}

int64_t Store::begin_attempt(const std::string& stage_key) {
  return impl_->database.write([&] {
    Database& database = impl_->database;
    const int64_t stage = require_stage(database, stage_key);
    Query query = database.query("SELECT coalesce(max(number), 0) + 1 FROM attempt WHERE stage = ?");
    query.bind(stage).step();
    const int64_t number = query.integer(0);
    require_attempt(database, stage, number);
    database.query("UPDATE stage SET blocked = NULL WHERE id = ?").run(stage);
    refresh_stage(database, stage);
    return number;
  });
}

void Store::fail_attempt(const std::string& stage_key, int64_t attempt, Failure failure, const std::string& message,
                         const std::string& log_tail) {
  impl_->database.write([&] {
    Database& database = impl_->database;
    const int64_t stage = require_stage(database, stage_key);
    database
        .query(
            "UPDATE attempt SET status = ?2, ended_by = 'supervisor', message = ?3, log_tail = ?4, ended_at = coalesce(ended_at, "
            "(julianday('now') - 2440587.5) * 86400) "
            "WHERE id = ?1 AND status <> 'done'")
        .run(require_attempt(database, stage, attempt), std::string(failure_name(failure)), message, log_tail);
    refresh_stage(database, stage);
  });
}

void Store::block(const std::string& stage_key, const std::string& message) {
  impl_->database.write([&] {
    const int64_t stage = require_stage(impl_->database, stage_key);
    impl_->database.query("UPDATE stage SET blocked = ? WHERE id = ?").run(message, stage);
    refresh_stage(impl_->database, stage);
  });
}

void Store::set_ingested_offset(const std::string& stage_key, uint64_t offset) {
  impl_->database.write([&] {
    impl_->database.query("UPDATE stage SET journal_offset = ? WHERE id = ?")
        .run(static_cast<int64_t>(offset), require_stage(impl_->database, stage_key));
  });
}

}  // namespace spt::results
