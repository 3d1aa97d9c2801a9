#include "results/schema.h"

#include <algorithm>
#include <array>

namespace spt::results {
namespace {

constexpr std::string_view kVersion1 = R"sql(
CREATE TABLE matrix (
  id               INTEGER PRIMARY KEY,
  key              TEXT NOT NULL UNIQUE,
  name             TEXT NOT NULL,
  profile          TEXT NOT NULL,
  reference        TEXT NOT NULL,
  mode             TEXT NOT NULL,
  toml             TEXT NOT NULL,
  seeds            TEXT NOT NULL,
  analysis_hash    TEXT NOT NULL,
  analysis_changed INTEGER NOT NULL CHECK (analysis_changed IN (0, 1)),
  margin           REAL NOT NULL,
  first_run_at     TEXT NOT NULL
) STRICT;

CREATE TABLE stage (
  id             INTEGER PRIMARY KEY,
  key            TEXT NOT NULL UNIQUE,
  name           TEXT NOT NULL,
  position       INTEGER NOT NULL,
  parent         INTEGER REFERENCES stage (id),
  status         TEXT NOT NULL DEFAULT 'planned' CHECK (status IN
    ('planned', 'running', 'done', 'diverged', 'oom', 'timeout', 'hung', 'crashed', 'killed', 'data', 'blocked')),
  blocked        TEXT,
  step           INTEGER NOT NULL DEFAULT 0,
  attempts       INTEGER NOT NULL DEFAULT 0,
  oom_attempts   INTEGER NOT NULL DEFAULT 0,
  latest         INTEGER REFERENCES attempt (id),
  result         INTEGER REFERENCES attempt (id),
  journal_offset INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE stage_spec (
  stage INTEGER PRIMARY KEY REFERENCES stage (id),
  spec  TEXT NOT NULL
) STRICT;

CREATE TABLE job (
  stage INTEGER PRIMARY KEY REFERENCES stage (id),
  seed  INTEGER NOT NULL,
  flops REAL
) STRICT;

CREATE TABLE job_stage (
  job      INTEGER NOT NULL REFERENCES job (stage),
  position INTEGER NOT NULL,
  stage    INTEGER NOT NULL REFERENCES stage (id),
  PRIMARY KEY (job, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE label (
  matrix           INTEGER NOT NULL REFERENCES matrix (id),
  position         INTEGER NOT NULL,
  job              INTEGER NOT NULL REFERENCES job (stage),
  name             TEXT NOT NULL,
  task             TEXT NOT NULL,
  architecture     TEXT NOT NULL,
  protocol         TEXT NOT NULL,
  arm              TEXT NOT NULL,
  arm_kind         TEXT NOT NULL,
  pairs_with       TEXT NOT NULL,
  purpose          TEXT NOT NULL,
  trivial          INTEGER NOT NULL CHECK (trivial IN (0, 1)),
  match_cost       REAL,
  metric           TEXT NOT NULL,
  unit             TEXT NOT NULL,
  higher_is_better INTEGER NOT NULL CHECK (higher_is_better IN (0, 1)),
  PRIMARY KEY (matrix, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempt (
  id                INTEGER PRIMARY KEY,
  stage             INTEGER NOT NULL REFERENCES stage (id),
  number            INTEGER NOT NULL CHECK (number >= 1),
  status            TEXT NOT NULL DEFAULT 'running' CHECK (status IN
    ('running', 'done', 'diverged', 'oom', 'timeout', 'hung', 'crashed', 'killed', 'data', 'blocked')),
  ended_by          TEXT CHECK (ended_by IN ('journal', 'supervisor')),
  message           TEXT NOT NULL DEFAULT '',
  tensor            TEXT NOT NULL DEFAULT '',
  log_tail          TEXT NOT NULL DEFAULT '',
  step              INTEGER NOT NULL DEFAULT 0,
  begun_at          REAL,
  ended_at          REAL,
  build_id          TEXT,
  libtorch          TEXT,
  compiler          TEXT,
  device_kind       TEXT,
  device_model      TEXT,
  cpu_capability    TEXT,
  threads           INTEGER,
  deterministic     INTEGER,
  host              TEXT,
  pid               INTEGER,
  resumed_from      INTEGER,
  resume_note       TEXT,
  parameters        INTEGER,
  parameters_body   INTEGER,
  data_hash         TEXT,
  partial_data      INTEGER,
  train_size        INTEGER,
  validation_size   INTEGER,
  test_size         INTEGER,
  chance            REAL,
  majority          REAL,
  notes             TEXT,
  startup_s         REAL,
  open_s            REAL,
  progress_sequence INTEGER,
  progress_at       REAL,
  progress_loss     REAL,
  progress_lr       REAL,
  progress_step_s   REAL,
  progress_steps    INTEGER,
  progress_metric   TEXT,
  progress_value    REAL,
  evaluations       INTEGER NOT NULL DEFAULT 0,
  checkpoint        TEXT,
  checkpoint_step   INTEGER,
  transfer          TEXT,
  selected_step     INTEGER,
  not_converged     INTEGER,
  steps             INTEGER,
  examples          INTEGER,
  tokens            INTEGER,
  flops             REAL,
  train_s           REAL,
  evaluate_s        REAL,
  save_s            REAL,
  reload_s          REAL,
  test_s            REAL,
  data_wait_s       REAL,
  wall_s            REAL,
  peak_memory       INTEGER,
  reload_equal      INTEGER,
  UNIQUE (stage, number)
) STRICT;

CREATE TABLE series (
  id    INTEGER PRIMARY KEY,
  split TEXT NOT NULL,
  name  TEXT NOT NULL,
  UNIQUE (split, name)
) STRICT;

CREATE TABLE metric (
  stage    INTEGER NOT NULL REFERENCES stage (id),
  series   INTEGER NOT NULL REFERENCES series (id),
  step     INTEGER NOT NULL,
  value    REAL,
  n        INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (stage, series, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE score (
  stage       INTEGER NOT NULL REFERENCES stage (id),
  split       TEXT NOT NULL,
  metric      TEXT NOT NULL,
  attempt     INTEGER NOT NULL,
  sequence    INTEGER NOT NULL,
  n           INTEGER NOT NULL,
  n_predicted INTEGER NOT NULL,
  scores      BLOB NOT NULL,
  predicted   BLOB NOT NULL,
  PRIMARY KEY (stage, split, metric)
) STRICT;

CREATE INDEX job_stage_by_stage ON job_stage (stage);

CREATE VIEW stage_state (key, status, message, log_tail, attempts, oom_attempts, step) AS
  SELECT stage.key, stage.status, iif(stage.status = 'blocked', stage.blocked, coalesce(attempt.message, '')), coalesce(attempt.log_tail, ''),
         stage.attempts, stage.oom_attempts, stage.step
  FROM stage LEFT JOIN attempt ON attempt.id = stage.latest;

CREATE VIEW job_state (job, state) AS
  SELECT job.stage, CASE
    WHEN last.status <> 'planned' THEN last.status
    WHEN EXISTS (SELECT 1 FROM job_stage JOIN stage ON stage.id = job_stage.stage
                 WHERE job_stage.job = job.stage AND stage.status = 'running') THEN 'running'
    WHEN EXISTS (SELECT 1 FROM job_stage JOIN stage ON stage.id = job_stage.stage
                 WHERE job_stage.job = job.stage AND stage.status NOT IN ('planned', 'running', 'done')) THEN 'blocked'
    ELSE 'planned' END
  FROM job JOIN stage AS last ON last.id = job.stage;

CREATE VIEW metric_text (stage_key, stage, split, name, step, value, status, n, attempt) AS
  SELECT stage.key, stage.name, series.split, series.name, metric.step, metric.value,
         CASE WHEN metric.value IS NULL THEN 'nan' WHEN abs(metric.value) > 1.7976931348623157e308 THEN 'infinite' ELSE 'finite' END,
         metric.n, metric.attempt
  FROM metric JOIN stage ON stage.id = metric.stage JOIN series ON series.id = metric.series;
)sql";

constexpr std::array<int64_t, 16> kNetworkTypes = {
    0x6969,      // NFS
    0x517B,      // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x0BD00BD0,  // Lustre
    0x00C36400,  // Ceph
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x5346414F,  // AFS
    0x6B414653,  // kAFS
    0x564C,      // NCP
    0x73757245,  // Coda
    0x01021997,  // 9P
    0x65735546,  // FUSE: sshfs, GlusterFS and others, so the safe answer
    0x013111A8,  // IBRIX
    0x7461636F,  // OCFS2
};

// How the parameters of a stage began.
constexpr std::string_view kVersion2 = R"sql(
ALTER TABLE attempt ADD COLUMN init TEXT;
)sql";

// Which of the scored examples depend on each other.
constexpr std::string_view kVersion3 = R"sql(
ALTER TABLE score ADD COLUMN n_clusters INTEGER NOT NULL DEFAULT 0;
ALTER TABLE score ADD COLUMN clusters BLOB;
)sql";

}  // namespace

const std::vector<std::string_view>& migrations() {
  static const std::vector<std::string_view> kSteps = {kVersion1, kVersion2, kVersion3};
  return kSteps;
}

bool is_network_file_system(int64_t statfs_type) {
  const int64_t type = statfs_type & 0xFFFFFFFF;  // the field is signed and 32 bits wide on some systems
  return std::find(kNetworkTypes.begin(), kNetworkTypes.end(), type) != kNetworkTypes.end();
}

}  // namespace spt::results
