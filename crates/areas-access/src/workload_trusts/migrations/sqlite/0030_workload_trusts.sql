-- Which workloads act as which service account: by the claims of tokens that an issuer signs. No secret is stored.

CREATE TABLE workload_trusts (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  -- 'github', 'gitlab' or 'kubernetes'.
  kind TEXT NOT NULL,
  issuer TEXT NOT NULL,
  -- NULL is this server's own URL.
  audience TEXT,
  service_account_id TEXT NOT NULL,
  -- A JSON list of rules.
  claims TEXT NOT NULL,
  -- The most that a session can do; what the account is given later is not among it.
  scopes TEXT NOT NULL,
  lifetime_secs INTEGER NOT NULL,
  max_token_age_secs INTEGER NOT NULL,
  -- NULL: the keys are fetched from the issuer.
  jwks TEXT,
  suspended_at INTEGER,
  -- 'restored' where nobody suspended it.
  suspended_reason TEXT,
  -- Tokens that were issued until then are exchanged for nothing.
  tokens_from INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX workload_trusts_by_id ON workload_trusts (id);
CREATE UNIQUE INDEX workload_trusts_by_name ON workload_trusts (organization_id, name_key);
CREATE INDEX workload_trusts_by_creation ON workload_trusts (organization_id, created_at, id);
CREATE INDEX workload_trusts_by_account ON workload_trusts (organization_id, service_account_id, created_at, id);
