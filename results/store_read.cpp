#include <bit>
#include <map>
#include <nlohmann/json.hpp>

#include "harness/base/json.h"
#include "results/blob.h"
#include "results/store_impl.h"

namespace spt::results {
namespace {

StageState read_state(Query& query) {
  return {query.text(1), query.text(2), query.text(3), query.integer(4), query.integer(5), query.integer(6)};
}

Stamp read_stamp(Query& query, int first) {
  return {query.text(first),     query.text(first + 1), query.text(first + 2),    query.text(first + 3),
          query.text(first + 4), query.text(first + 5), query.integer(first + 6), query.integer(first + 7) != 0};
}

MatrixRow read_matrix(Query& query) {
  MatrixRow row;
  row.id = query.text(0);
  row.name = query.text(1);
  row.profile = query.text(2);
  row.reference = query.text(3);
  row.mode = query.text(4);
  row.toml = query.text(5);
  row.seeds = parse_json(query.text(6), "seeds of matrix " + row.id).get<std::vector<uint64_t>>();
  row.analysis_hash = query.text(7);
  row.analysis_changed = query.integer(8) != 0;
  row.margin = query.real(9);
  row.first_run_at = query.text(10);
  return row;
}

template <class T>
std::vector<T> read_blob(Database& database, const char* sql, const std::string& stage_key, const std::string& split,
                         std::vector<T> (*decompress)(std::string_view, int64_t, std::string_view)) {
  Query query = database.query(sql);
  if (!query.bind(stage_key, split).step()) return {};
  const std::string bytes = query.text(1);
  return decompress(bytes, query.integer(0), fmt::format("{} scores of stage {}", split, stage_key));
}

}  // namespace

std::unordered_map<std::string, StageState> Store::stage_states() const {
  return impl_->database.read([&] {
    std::unordered_map<std::string, StageState> states;
    Query query = impl_->database.query("SELECT * FROM stage_state");
    query.bind();
    while (query.step()) states.emplace(query.text(0), read_state(query));
    return states;
  });
}

std::unordered_map<std::string, StageState> Store::stage_states(const std::vector<std::string>& keys) const {
  return impl_->database.read([&] {
    std::unordered_map<std::string, StageState> states;
    Query query = impl_->database.query("SELECT * FROM stage_state WHERE key = ?");
    for (const std::string& key : keys)
      if (query.bind(key).step()) states.emplace(key, read_state(query));
    return states;
  });
}

std::vector<AttemptTimes> Store::attempt_times() const {
  return impl_->database.read([&] {
    std::vector<AttemptTimes> times;
    Query query = impl_->database.query(R"sql(
        SELECT stage.key, build_id, libtorch, compiler, device_kind, device_model, cpu_capability, threads, deterministic, steps, train_s, evaluate_s, wall_s
        FROM attempt JOIN stage ON stage.id = attempt.stage WHERE attempt.status = 'done' AND build_id IS NOT NULL ORDER BY attempt.id)sql");
    query.bind();
    while (query.step())
      times.push_back({query.text(0), read_stamp(query, 1), query.integer(9), query.real(10), query.real(11), query.real(12)});
    return times;
  });
}

uint64_t Store::ingested_offset(const std::string& stage_key) const {
  return impl_->database.read([&] {
    Query query = impl_->database.query("SELECT journal_offset FROM stage WHERE key = ?");
    return query.bind(stage_key).step() ? static_cast<uint64_t>(query.integer(0)) : uint64_t{0};
  });
}

std::vector<MatrixRow> Store::matrices() const {
  return impl_->database.read([&] {
    std::vector<MatrixRow> rows;
    Query query = impl_->database.query(
        "SELECT key, name, profile, reference, mode, toml, seeds, analysis_hash, analysis_changed, margin, first_run_at FROM matrix ORDER "
        "BY first_run_at, id");
    query.bind();
    while (query.step()) rows.push_back(read_matrix(query));
    return rows;
  });
}

StatusCounts Store::status(const std::string& matrix_id) const {
  return impl_->database.read([&] {
    StatusCounts counts;
    Query query = impl_->database.query(
        matrix_id.empty()
            ? "SELECT state, count(*) FROM job_state GROUP BY state"
            : "SELECT state, count(*) FROM job_state WHERE job IN (SELECT job FROM label JOIN matrix ON matrix.id = label.matrix "
              "WHERE matrix.key = ?) GROUP BY state");
    if (matrix_id.empty()) query.bind();
    else query.bind(matrix_id);
    while (query.step()) {
      const std::string state = query.text(0);
      const int64_t n = query.integer(1);
      counts.jobs += n;
      if (state == "done") counts.done = n;
      else if (state == "running") counts.running = n;
      else if (state == "planned") counts.planned = n;
      else counts.failed[state] = n;
    }
    return counts;
  });
}

std::vector<float> Store::scores(const std::string& stage_key, const std::string& split) const {
  constexpr const char* kSql =
      "SELECT n, scores FROM score JOIN stage ON stage.id = score.stage WHERE stage.key = ? AND split = ? ORDER BY score.rowid LIMIT 1";
  return impl_->database.read([&] { return read_blob(impl_->database, kSql, stage_key, split, decompress_floats); });
}

std::vector<int32_t> Store::predicted(const std::string& stage_key, const std::string& split) const {
  constexpr const char* kSql =
      "SELECT n_predicted, predicted FROM score JOIN stage ON stage.id = score.stage WHERE stage.key = ? AND split = ? ORDER BY "
      "score.rowid LIMIT 1";
  return impl_->database.read([&] { return read_blob(impl_->database, kSql, stage_key, split, decompress_ints); });
}

std::vector<int32_t> Store::clusters(const std::string& stage_key, const std::string& split) const {
  constexpr const char* kSql =
      "SELECT n_clusters, clusters FROM score JOIN stage ON stage.id = score.stage WHERE stage.key = ? AND split = ? AND n_clusters > 0 "
      "ORDER BY score.rowid LIMIT 1";
  return impl_->database.read([&] { return read_blob(impl_->database, kSql, stage_key, split, decompress_ints); });
}

}  // namespace spt::results
