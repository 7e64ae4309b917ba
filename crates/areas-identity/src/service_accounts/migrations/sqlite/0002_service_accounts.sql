-- Service accounts and their tokens. A scope list is space-separated; NULL stands for "all of the role".

CREATE TABLE service_accounts (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  description TEXT,
  permission_role TEXT NOT NULL,
  scopes TEXT,
  status TEXT NOT NULL,
  owner_console_user_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  disabled_at INTEGER,
  deleted_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX service_accounts_by_name ON service_accounts (organization_id, name_key) WHERE deleted_at IS NULL;
-- Holds what counting a list needs, so that counting reads no rows.
CREATE INDEX service_accounts_by_creation ON service_accounts (organization_id, created_at, id, status) WHERE deleted_at IS NULL;

CREATE TABLE service_account_tokens (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  service_account_id TEXT NOT NULL,
  lookup_id TEXT NOT NULL,
  name TEXT NOT NULL,
  token_prefix TEXT NOT NULL,
  mac BLOB NOT NULL,
  pepper_id TEXT NOT NULL,
  scopes TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  last_used_at INTEGER,
  last_used_ip TEXT,
  revoked_at INTEGER,
  revoke_reason TEXT,
  superseded_by_id TEXT,
  self_rotated INTEGER NOT NULL,
  replay_pending INTEGER NOT NULL,
  expiry_warned_days INTEGER,
  hidden_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, service_account_id) REFERENCES service_accounts (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX service_account_tokens_by_lookup ON service_account_tokens (lookup_id);
CREATE INDEX service_account_tokens_by_account ON service_account_tokens (organization_id, service_account_id, created_at) WHERE hidden_at IS NULL;
CREATE INDEX service_account_tokens_by_expiry ON service_account_tokens (expires_at) WHERE revoked_at IS NULL;
