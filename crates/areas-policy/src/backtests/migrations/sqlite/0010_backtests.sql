-- Backtests: what was asked, how far the work is, what came of it, and from where it can go on.

CREATE TABLE backtests (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT,
  reason TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  canceled_by_type TEXT,
  canceled_by_id TEXT,
  cancel_reason TEXT,
  failure_code TEXT,
  failure_message TEXT,
  events_processed INTEGER NOT NULL,
  events_total INTEGER NOT NULL,
  events_evaluated INTEGER NOT NULL,
  truncated_by TEXT,
  engine_version TEXT NOT NULL,
  dataset_digest TEXT,
  result_digest TEXT,
  attempt INTEGER NOT NULL,
  worked_ms INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  lease_until INTEGER,
  expires_at INTEGER,
  revision INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX backtests_by_seq ON backtests (organization_id, seq);
CREATE INDEX backtests_by_status ON backtests (organization_id, status, seq);
CREATE INDEX backtests_to_do ON backtests (status, organization_id) WHERE status IN ('queued', 'running');
CREATE INDEX backtests_by_expiry ON backtests (expires_at) WHERE expires_at IS NOT NULL;

-- The question as it was pinned at creation; the changes are bound definitions.
CREATE TABLE backtest_questions (
  organization_id TEXT NOT NULL,
  backtest_id TEXT NOT NULL,
  question TEXT NOT NULL,
  changes TEXT NOT NULL,
  PRIMARY KEY (organization_id, backtest_id),
  FOREIGN KEY (organization_id, backtest_id) REFERENCES backtests (organization_id, id)
) STRICT;

-- Lists are read without the samples.
CREATE TABLE backtest_results (
  organization_id TEXT NOT NULL,
  backtest_id TEXT NOT NULL,
  results TEXT NOT NULL,
  samples TEXT NOT NULL,
  PRIMARY KEY (organization_id, backtest_id),
  FOREIGN KEY (organization_id, backtest_id) REFERENCES backtests (organization_id, id)
) STRICT;

-- From where a running backtest goes on, and where its events lay when it began; one at most, none once it has ended.
CREATE TABLE backtest_checkpoints (
  organization_id TEXT NOT NULL,
  backtest_id TEXT NOT NULL,
  sources TEXT NOT NULL,
  checkpoint BLOB NOT NULL,
  PRIMARY KEY (organization_id, backtest_id),
  FOREIGN KEY (organization_id, backtest_id) REFERENCES backtests (organization_id, id)
) STRICT;
