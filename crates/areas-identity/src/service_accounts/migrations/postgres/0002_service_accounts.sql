-- Service accounts and their tokens. A scope list is space-separated; NULL stands for "all of the role".

CREATE TABLE service_accounts (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C",
  permission_role TEXT COLLATE "C" NOT NULL,
  scopes TEXT COLLATE "C",
  status TEXT COLLATE "C" NOT NULL,
  owner_console_user_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  disabled_at BIGINT,
  deleted_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX service_accounts_by_name ON service_accounts (organization_id, name_key) WHERE deleted_at IS NULL;
-- Holds what counting a list needs, so that counting reads no rows.
CREATE INDEX service_accounts_by_creation ON service_accounts (organization_id, created_at, id, status) WHERE deleted_at IS NULL;

CREATE TABLE service_account_tokens (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  service_account_id TEXT COLLATE "C" NOT NULL,
  lookup_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  token_prefix TEXT COLLATE "C" NOT NULL,
  mac BYTEA NOT NULL,
  pepper_id TEXT COLLATE "C" NOT NULL,
  scopes TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  last_used_at BIGINT,
  last_used_ip TEXT COLLATE "C",
  revoked_at BIGINT,
  revoke_reason TEXT COLLATE "C",
  superseded_by_id TEXT COLLATE "C",
  self_rotated BOOLEAN NOT NULL,
  replay_pending BOOLEAN NOT NULL,
  expiry_warned_days BIGINT,
  hidden_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, service_account_id) REFERENCES service_accounts (organization_id, id)
);
CREATE UNIQUE INDEX service_account_tokens_by_lookup ON service_account_tokens (lookup_id);
CREATE INDEX service_account_tokens_by_account ON service_account_tokens (organization_id, service_account_id, created_at) WHERE hidden_at IS NULL;
CREATE INDEX service_account_tokens_by_expiry ON service_account_tokens (expires_at) WHERE revoked_at IS NULL;
