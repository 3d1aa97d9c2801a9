#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "results/store_impl.h"

namespace spt::results {
namespace {

/// What a job has used, summed over its stages, and the compute that an arm is matched on.
struct JobTotals {
  int64_t steps = 0, examples = 0, tokens = 0, peak_memory = 0;
  double flops = 0, train_s = 0;
  std::string pretrain_key;
};

/// What `row` has spent on the basis that `arm` is matched on.
double matched_cost(const ResultRow& arm, const ResultRow& row) {
  const std::string_view basis = matched_basis(arm.arm);
  if (basis == "examples") return static_cast<double>(row.examples);
  if (basis == "tokens") return static_cast<double>(row.tokens);
  if (basis == "flops") return row.flops;
  return static_cast<double>(row.steps);
}

std::map<int64_t, JobTotals> read_totals(Database& database, const std::string& matrix_id) {
  Query query = database.query(R"sql(
      SELECT job_stage.job, stage.id, stage.key, steps, examples, tokens, flops, train_s, peak_memory
      FROM (SELECT DISTINCT job FROM label JOIN matrix ON matrix.id = label.matrix WHERE matrix.key = ? AND purpose = 'reported') AS wanted
        JOIN job_stage ON job_stage.job = wanted.job JOIN stage ON stage.id = job_stage.stage LEFT JOIN attempt ON attempt.id = stage.result
      ORDER BY job_stage.job, job_stage.position)sql");
  query.bind(matrix_id);
  std::map<int64_t, JobTotals> totals;
  while (query.step()) {
    const int64_t job = query.integer(0);
    JobTotals& total = totals[job];
    if (query.integer(1) != job) total.pretrain_key = query.text(2);  // a chain of several: the one the last stage starts from
    if (query.null(3)) continue;                                      // this stage has no result
    total.steps += query.integer(3);
    total.examples += query.integer(4);
    total.tokens += query.integer(5);
    total.flops += query.real(6);
    total.train_s += query.real(7);
    total.peak_memory = std::max(total.peak_memory, query.integer(8));
  }
  return totals;
}

// The attempt is the one with the result, else the latest: a failed job still says its sizes and machine.
// A job that is blocked because its pretraining diverged has an outcome: its method diverged.
constexpr const char* kResultsSql = R"sql(
    SELECT label.job, last.key, label.name, label.task, label.architecture, label.protocol, label.arm, label.arm_kind, label.pairs_with, job.seed, label.trivial,
      iif(job_state.state = 'blocked' AND EXISTS (SELECT 1 FROM job_stage JOIN stage ON stage.id = job_stage.stage
                                                  WHERE job_stage.job = label.job AND stage.status = 'diverged'), 'diverged', job_state.state),
      CASE WHEN job_state.state <> 'blocked' THEN coalesce(attempt.message, '') WHEN last.status = 'blocked' THEN last.blocked
        ELSE (SELECT 'its ' || stage.name || ' stage is ' || stage.status FROM job_stage JOIN stage ON stage.id = job_stage.stage
              WHERE job_stage.job = label.job AND stage.status NOT IN ('planned', 'running', 'done') ORDER BY job_stage.position LIMIT 1) END,
      label.metric, label.unit, label.higher_is_better,
      test.step, test.value, validation.step, validation.value, final.step, final.value,
      attempt.chance, attempt.majority, attempt.train_size, attempt.validation_size, attempt.test_size, attempt.partial_data, attempt.not_converged,
      attempt.parameters, attempt.parameters_body, attempt.device_kind, attempt.device_model, attempt.libtorch, attempt.cpu_capability, attempt.build_id,
      attempt.threads
    FROM matrix JOIN label ON label.matrix = matrix.id JOIN job ON job.stage = label.job JOIN job_state ON job_state.job = label.job
      JOIN stage AS last ON last.id = label.job LEFT JOIN attempt ON attempt.id = coalesce(last.result, last.latest)
      LEFT JOIN metric AS test ON test.stage = label.job AND test.step = attempt.selected_step
        AND test.series = (SELECT id FROM series WHERE split = 'test' AND name = label.metric)
      LEFT JOIN metric AS validation ON validation.stage = label.job AND validation.step = attempt.selected_step
        AND validation.series = (SELECT id FROM series WHERE split = 'validation' AND name = label.metric)
      LEFT JOIN metric AS final ON final.stage = label.job AND final.step = attempt.steps
        AND final.series = (SELECT id FROM series WHERE split = 'validation' AND name = label.metric)
    WHERE matrix.key = ? AND label.purpose = 'reported' ORDER BY label.position)sql";

std::optional<double> read_metric(Query& query, int column) {
  if (query.null(column)) return std::nullopt;
  return query.real(column + 1);
}

ResultRow read_result(Query& query) {
  ResultRow row;
  row.job_key = query.text(1);
  row.name = query.text(2);
  row.task = query.text(3);
  row.architecture = query.text(4);
  row.protocol = query.text(5);
  row.arm = query.text(6);
  row.arm_kind = query.text(7);
  row.pairs_with = query.text(8);
  row.seed = std::bit_cast<uint64_t>(query.integer(9));
  row.trivial = query.integer(10) != 0;
  row.status = query.text(11);
  if (row.status == "planned") row.status = "missing";
  row.failure_message = query.text(12);
  row.metric = query.text(13);
  row.unit = query.text(14);
  row.higher_is_better = query.integer(15) != 0;
  row.test = read_metric(query, 16);
  row.validation = read_metric(query, 18);
  row.last_validation = read_metric(query, 20);
  if (!query.null(22)) row.chance = query.real(22);
  if (!query.null(23)) row.majority = query.real(23);
  row.train_size = query.integer(24);
  row.validation_size = query.integer(25);
  row.test_size = query.integer(26);
  row.partial_data = query.integer(27) != 0;
  row.not_converged = query.integer(28) != 0;
  row.parameters = query.integer(29);
  row.parameters_body = query.integer(30);
  row.device_kind = query.text(31);
  row.device_model = query.text(32);
  row.libtorch = query.text(33);
  row.cpu_capability = query.text(34);
  row.build_id = query.text(35);
  row.threads = query.integer(36);
  return row;
}

// Totals are those of a whole job: a part of one would be read as cheap.
void add_totals(ResultRow& row, const JobTotals& totals) {
  row.pretrain_key = totals.pretrain_key;
  if (row.status != "done") return;
  row.steps = totals.steps;
  row.examples = totals.examples;
  row.tokens = totals.tokens;
  row.flops = totals.flops;
  row.device_s = totals.train_s;
  row.peak_memory = totals.peak_memory;
}

void add_residuals(std::vector<ResultRow>& rows) {
  std::map<std::tuple<std::string, std::string, std::string, uint64_t>, const ResultRow*> pretrained;
  for (const ResultRow& row : rows)
    if (row.arm_kind == "spt" && row.status == "done") pretrained[{row.task, row.architecture, row.arm, row.seed}] = &row;
  for (ResultRow& row : rows) {
    if (row.arm_kind != "matched" || row.status != "done") continue;
    const auto found = pretrained.find({row.task, row.architecture, row.pairs_with, row.seed});
    const double cost = matched_cost(row, row);
    if (found != pretrained.end() && cost > 0) row.match_residual = std::abs(matched_cost(row, *found->second) / cost - 1);
  }
}

/// A stage and the jobs of a matrix that have it in their chain.
struct StageJobs {
  int64_t id = 0;
  std::string key, name;
  std::vector<std::string> jobs;
};

struct Series {
  std::string split, name;
};

std::vector<StageJobs> read_stage_jobs(Database& database, const std::string& matrix_id) {
  std::vector<StageJobs> stages;
  Query query = database.query(R"sql(
      SELECT stage.id, stage.key, stage.name, last.key
      FROM (SELECT DISTINCT job FROM label JOIN matrix ON matrix.id = label.matrix WHERE matrix.key = ? AND purpose = 'reported') AS wanted
        JOIN job_stage ON job_stage.job = wanted.job JOIN stage ON stage.id = job_stage.stage JOIN stage AS last ON last.id = wanted.job
      ORDER BY stage.id, last.id)sql");
  query.bind(matrix_id);
  while (query.step()) {
    const int64_t id = query.integer(0);
    if (stages.empty() || stages.back().id != id) stages.push_back({id, query.text(1), query.text(2), {}});
    stages.back().jobs.push_back(query.text(3));
  }
  return stages;
}

std::map<int64_t, Series> read_curve_series(Database& database) {
  std::map<int64_t, Series> series;
  Query query = database.query("SELECT id, split, name FROM series WHERE split <> 'test'");
  query.bind();
  while (query.step()) series[query.integer(0)] = {query.text(1), query.text(2)};
  return series;
}

bool is_wanted(const std::vector<CurveKind>& wanted, const std::string& stage, const std::string& metric) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), CurveKind{stage, metric}) != wanted.end();
}

/// Adds the wanted curves of one stage, each once for every job that has the stage.
void read_stage_curves(Query& query, const StageJobs& stage, const std::map<int64_t, Series>& series, const std::vector<CurveKind>& wanted,
                       Curves& curves) {
  const size_t first = curves.points.size();
  for (const auto& [id, named] : series) {
    if (!is_wanted(wanted, stage.name, named.name)) continue;
    const size_t begin = curves.points.size();
    query.bind(stage.id, id);
    while (query.step()) curves.points.push_back({curves.curves.size(), query.integer(0), query.real(1)});
    if (curves.points.size() > begin) curves.curves.push_back({stage.jobs.front(), stage.key, stage.name, named.split, named.name});
  }
  const size_t end = curves.points.size();
  if (end == first) return;
  const size_t first_curve = curves.points[first].curve, count = curves.curves.size() - first_curve;
  for (size_t job = 1; job < stage.jobs.size(); ++job) {
    for (size_t i = 0; i < count; ++i) {
      Curve copy = curves.curves[first_curve + i];
      copy.job_key = stage.jobs[job];
      curves.curves.push_back(std::move(copy));
    }
    for (size_t i = first; i < end; ++i) {
      CurvePoint copy = curves.points[i];
      copy.curve += job * count;
      curves.points.push_back(copy);
    }
  }
}

}  // namespace

std::vector<ResultRow> Store::results(const std::string& matrix_id) const {
  return impl_->database.read([&] {
    const std::map<int64_t, JobTotals> totals = read_totals(impl_->database, matrix_id);
    std::vector<ResultRow> rows;
    Query query = impl_->database.query(kResultsSql);
    query.bind(matrix_id);
    while (query.step()) {
      rows.push_back(read_result(query));
      add_totals(rows.back(), totals.at(query.integer(0)));
    }
    add_residuals(rows);
    return rows;
  });
}

Curves Store::curves(const std::string& matrix_id, const std::vector<CurveKind>& wanted) const {
  return impl_->database.read([&] {
    const std::vector<StageJobs> stages = read_stage_jobs(impl_->database, matrix_id);
    const std::map<int64_t, Series> series = read_curve_series(impl_->database);
    Query query = impl_->database.query("SELECT step, value FROM metric WHERE stage = ? AND series = ? ORDER BY step");
    Curves curves;
    for (const StageJobs& stage : stages) read_stage_curves(query, stage, series, wanted, curves);
    return curves;
  });
}

}  // namespace spt::results
