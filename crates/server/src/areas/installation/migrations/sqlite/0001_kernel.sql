-- What the kernel keeps: the installation, organizations, the audit chains, keys of requests, events, jobs.
-- organization_id is the first column of every key of an organization-owned table (D3.5).

CREATE TABLE installation (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE key_checks (
  key_id TEXT NOT NULL PRIMARY KEY,
  check_value BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE organizations (
  organization_id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE chain_heads (
  organization_id TEXT NOT NULL PRIMARY KEY,
  seq INTEGER NOT NULL,
  hash BLOB NOT NULL,
  mac BLOB NOT NULL,
  event_sequence INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE audit_entries (
  organization_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  time INTEGER NOT NULL,
  action TEXT NOT NULL,
  actor_id TEXT,
  target_id TEXT,
  decision TEXT NOT NULL,
  entry TEXT NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (organization_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_nodes (
  organization_id TEXT NOT NULL,
  level INTEGER NOT NULL,
  position INTEGER NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (organization_id, level, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE audit_checkpoints (
  organization_id TEXT NOT NULL,
  size INTEGER NOT NULL,
  note TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, size)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
  organization_id TEXT NOT NULL,
  principal_id TEXT NOT NULL,
  operation_id TEXT NOT NULL,
  key_mac BLOB NOT NULL,
  fingerprint BLOB NOT NULL,
  status INTEGER NOT NULL,
  headers TEXT NOT NULL,
  body TEXT NOT NULL,
  media_type TEXT NOT NULL,
  audit_id TEXT NOT NULL,
  target_id TEXT,
  token_id TEXT,
  secret_at INTEGER,
  cell_day INTEGER,
  cell_salt BLOB,
  cell BLOB,
  cell_expires_at INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, principal_id, operation_id, key_mac)
) STRICT;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_by_token ON idempotency_keys (organization_id, token_id) WHERE token_id IS NOT NULL;
CREATE INDEX idempotency_keys_by_cell ON idempotency_keys (cell_expires_at) WHERE cell IS NOT NULL;

CREATE TABLE outbox (
  organization_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  time INTEGER NOT NULL,
  data TEXT NOT NULL,
  PRIMARY KEY (organization_id, sequence)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_by_age ON outbox (time);

CREATE TABLE jobs (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL,
  run_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lease_until INTEGER,
  lease_epoch INTEGER NOT NULL,
  state TEXT NOT NULL,
  last_error TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id)
) STRICT;
CREATE INDEX jobs_by_time ON jobs (state, run_at);
