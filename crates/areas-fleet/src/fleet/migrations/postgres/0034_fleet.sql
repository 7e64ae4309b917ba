-- Machines, the tokens by which they enrol, and the tokens by which they call. A device is its key; the server keeps the
-- thumbprint of it.

CREATE TABLE enrolment_tokens (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  lookup_id TEXT COLLATE "C" NOT NULL,
  token_prefix TEXT COLLATE "C" NOT NULL,
  mac BYTEA NOT NULL,
  pepper_id TEXT COLLATE "C" NOT NULL,
  -- 'system' or 'user'.
  mode TEXT COLLATE "C" NOT NULL,
  max_uses BIGINT NOT NULL,
  uses BIGINT NOT NULL,
  require_approval BOOLEAN NOT NULL,
  created_by_kind TEXT COLLATE "C" NOT NULL,
  created_by TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT,
  -- 'restored' where nobody revoked it.
  revoke_reason TEXT COLLATE "C",
  replay_pending BOOLEAN NOT NULL,
  last_used_at BIGINT,
  last_used_ip TEXT COLLATE "C",
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX enrolment_tokens_by_lookup ON enrolment_tokens (lookup_id);
CREATE INDEX enrolment_tokens_by_maker ON enrolment_tokens (organization_id, created_by, expires_at);
CREATE UNIQUE INDEX enrolment_tokens_by_seq ON enrolment_tokens (organization_id, seq);

CREATE TABLE devices (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  -- 'pending', 'active', 'quarantined' or 'retired'.
  status TEXT COLLATE "C" NOT NULL,
  needs_approval BOOLEAN NOT NULL,
  mode TEXT COLLATE "C" NOT NULL,
  platform TEXT COLLATE "C" NOT NULL,
  arch TEXT COLLATE "C" NOT NULL,
  -- RFC 7638; for ever this device's, also after its end.
  key_thumbprint TEXT COLLATE "C" NOT NULL,
  key_protection TEXT COLLATE "C" NOT NULL,
  enrolment_token_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  quarantined_at BIGINT,
  retired_at BIGINT,
  retire_reason TEXT COLLATE "C",
  -- Since when a restore holds it back.
  held_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, enrolment_token_id) REFERENCES enrolment_tokens (organization_id, id)
);
CREATE UNIQUE INDEX devices_by_key ON devices (organization_id, key_thumbprint);
CREATE UNIQUE INDEX devices_by_seq ON devices (organization_id, seq);
CREATE INDEX devices_by_enrolment ON devices (organization_id, enrolment_token_id, seq);
CREATE INDEX devices_by_status ON devices (status, updated_at, organization_id, id);

CREATE TABLE device_tokens (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  -- The key beside which it serves.
  key_thumbprint TEXT COLLATE "C" NOT NULL,
  lookup_id TEXT COLLATE "C" NOT NULL,
  token_prefix TEXT COLLATE "C" NOT NULL,
  mac BYTEA NOT NULL,
  pepper_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT,
  revoke_reason TEXT COLLATE "C",
  replay_pending BOOLEAN NOT NULL,
  last_used_at BIGINT,
  last_used_ip TEXT COLLATE "C",
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);
CREATE UNIQUE INDEX device_tokens_by_lookup ON device_tokens (lookup_id);
CREATE INDEX device_tokens_by_key ON device_tokens (organization_id, key_thumbprint, id);
CREATE INDEX device_tokens_by_device ON device_tokens (organization_id, device_id, created_at, id);

CREATE TABLE device_heartbeats (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  agent_version TEXT COLLATE "C" NOT NULL,
  os_version TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON enrolment_tokens REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON enrolment_tokens REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON enrolment_tokens REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON devices REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON devices REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON devices REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON device_tokens REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON device_tokens REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON device_tokens REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
