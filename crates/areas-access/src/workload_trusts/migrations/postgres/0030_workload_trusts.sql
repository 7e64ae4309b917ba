-- Which workloads act as which service account: by the claims of tokens that an issuer signs. No secret is stored.

CREATE TABLE workload_trusts (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  -- 'github', 'gitlab' or 'kubernetes'.
  kind TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  -- NULL is this server's own URL.
  audience TEXT COLLATE "C",
  service_account_id TEXT COLLATE "C" NOT NULL,
  -- A JSON list of rules.
  claims TEXT COLLATE "C" NOT NULL,
  -- The most that a session can do; what the account is given later is not among it.
  scopes TEXT COLLATE "C" NOT NULL,
  lifetime_secs BIGINT NOT NULL,
  max_token_age_secs BIGINT NOT NULL,
  -- NULL: the keys are fetched from the issuer.
  jwks TEXT COLLATE "C",
  suspended_at BIGINT,
  -- 'restored' where nobody suspended it.
  suspended_reason TEXT COLLATE "C",
  -- Tokens that were issued until then are exchanged for nothing.
  tokens_from BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX workload_trusts_by_id ON workload_trusts (id);
CREATE UNIQUE INDEX workload_trusts_by_name ON workload_trusts (organization_id, name_key);
CREATE INDEX workload_trusts_by_creation ON workload_trusts (organization_id, created_at, id);
CREATE INDEX workload_trusts_by_account ON workload_trusts (organization_id, service_account_id, created_at, id);
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON workload_trusts REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON workload_trusts REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON workload_trusts REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
