-- What the kernel keeps: the installation, organizations, the audit chains, keys of requests, events, jobs.
-- organization_id is the first column of every key of an organization-owned table (D3.5).

CREATE TABLE installation (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE key_checks (
  key_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  check_value BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE organizations (
  organization_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE chain_heads (
  organization_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  seq BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  mac BYTEA NOT NULL,
  event_sequence BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE audit_entries (
  organization_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  time BIGINT NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  actor_id TEXT COLLATE "C",
  target_id TEXT COLLATE "C",
  decision TEXT COLLATE "C" NOT NULL,
  entry TEXT COLLATE "C" NOT NULL,
  hash BYTEA NOT NULL,
  PRIMARY KEY (organization_id, seq)
);

CREATE TABLE audit_nodes (
  organization_id TEXT COLLATE "C" NOT NULL,
  level BIGINT NOT NULL,
  position BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  PRIMARY KEY (organization_id, level, position)
);

CREATE TABLE audit_checkpoints (
  organization_id TEXT COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  note TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, size)
);

CREATE TABLE idempotency_keys (
  organization_id TEXT COLLATE "C" NOT NULL,
  principal_id TEXT COLLATE "C" NOT NULL,
  operation_id TEXT COLLATE "C" NOT NULL,
  key_mac BYTEA NOT NULL,
  fingerprint BYTEA NOT NULL,
  status BIGINT NOT NULL,
  headers TEXT COLLATE "C" NOT NULL,
  body TEXT COLLATE "C" NOT NULL,
  media_type TEXT COLLATE "C" NOT NULL,
  audit_id TEXT COLLATE "C" NOT NULL,
  target_id TEXT COLLATE "C",
  token_id TEXT COLLATE "C",
  secret_at BIGINT,
  cell_day BIGINT,
  cell_salt BYTEA,
  cell BYTEA,
  cell_expires_at BIGINT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, principal_id, operation_id, key_mac)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_by_token ON idempotency_keys (organization_id, token_id) WHERE token_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_cell ON idempotency_keys (cell_expires_at) WHERE cell IS NOT NULL;

CREATE TABLE outbox (
  organization_id TEXT COLLATE "C" NOT NULL,
  sequence BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  time BIGINT NOT NULL,
  data TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, sequence)
);
CREATE INDEX outbox_by_age ON outbox (time);

CREATE TABLE jobs (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL,
  run_at BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  lease_until BIGINT,
  lease_epoch BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  last_error TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id)
);
CREATE INDEX jobs_by_time ON jobs (state, run_at);
