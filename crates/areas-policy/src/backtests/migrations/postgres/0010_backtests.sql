-- Backtests: what was asked, how far the work is, what came of it, and from where it can go on.

CREATE TABLE backtests (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  name TEXT COLLATE "C",
  reason TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  created_by_type TEXT COLLATE "C" NOT NULL,
  created_by_id TEXT COLLATE "C" NOT NULL,
  updated_at BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT,
  canceled_by_type TEXT COLLATE "C",
  canceled_by_id TEXT COLLATE "C",
  cancel_reason TEXT COLLATE "C",
  failure_code TEXT COLLATE "C",
  failure_message TEXT COLLATE "C",
  events_processed BIGINT NOT NULL,
  events_total BIGINT NOT NULL,
  events_evaluated BIGINT NOT NULL,
  truncated_by TEXT COLLATE "C",
  engine_version TEXT COLLATE "C" NOT NULL,
  dataset_digest TEXT COLLATE "C",
  result_digest TEXT COLLATE "C",
  attempt BIGINT NOT NULL,
  worked_ms BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  lease_until BIGINT,
  expires_at BIGINT,
  revision BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX backtests_by_seq ON backtests (organization_id, seq);
CREATE INDEX backtests_by_status ON backtests (organization_id, status, seq);
CREATE INDEX backtests_to_do ON backtests (status, organization_id) WHERE status IN ('queued', 'running');
CREATE INDEX backtests_by_expiry ON backtests (expires_at) WHERE expires_at IS NOT NULL;

-- The question as it was pinned at creation; the changes are bound definitions.
CREATE TABLE backtest_questions (
  organization_id TEXT COLLATE "C" NOT NULL,
  backtest_id TEXT COLLATE "C" NOT NULL,
  question TEXT COLLATE "C" NOT NULL,
  changes TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, backtest_id),
  FOREIGN KEY (organization_id, backtest_id) REFERENCES backtests (organization_id, id)
);

-- Lists are read without the samples.
CREATE TABLE backtest_results (
  organization_id TEXT COLLATE "C" NOT NULL,
  backtest_id TEXT COLLATE "C" NOT NULL,
  results TEXT COLLATE "C" NOT NULL,
  samples TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, backtest_id),
  FOREIGN KEY (organization_id, backtest_id) REFERENCES backtests (organization_id, id)
);

-- From where a running backtest goes on, and where its events lay when it began; one at most, none once it has ended.
CREATE TABLE backtest_checkpoints (
  organization_id TEXT COLLATE "C" NOT NULL,
  backtest_id TEXT COLLATE "C" NOT NULL,
  sources TEXT COLLATE "C" NOT NULL,
  checkpoint BYTEA NOT NULL,
  PRIMARY KEY (organization_id, backtest_id),
  FOREIGN KEY (organization_id, backtest_id) REFERENCES backtests (organization_id, id)
);
