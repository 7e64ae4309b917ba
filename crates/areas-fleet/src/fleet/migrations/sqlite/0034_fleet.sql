-- Machines, the tokens by which they enrol, and the tokens by which they call. A device is its key; the server keeps the
-- thumbprint of it.

CREATE TABLE enrolment_tokens (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  lookup_id TEXT NOT NULL,
  token_prefix TEXT NOT NULL,
  mac BLOB NOT NULL,
  pepper_id TEXT NOT NULL,
  -- 'system' or 'user'.
  mode TEXT NOT NULL,
  max_uses INTEGER NOT NULL,
  uses INTEGER NOT NULL,
  require_approval INTEGER NOT NULL,
  created_by_kind TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER,
  -- 'restored' where nobody revoked it.
  revoke_reason TEXT,
  replay_pending INTEGER NOT NULL,
  last_used_at INTEGER,
  last_used_ip TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX enrolment_tokens_by_lookup ON enrolment_tokens (lookup_id);
CREATE INDEX enrolment_tokens_by_maker ON enrolment_tokens (organization_id, created_by, expires_at);
CREATE UNIQUE INDEX enrolment_tokens_by_seq ON enrolment_tokens (organization_id, seq);

CREATE TABLE devices (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  -- 'pending', 'active', 'quarantined' or 'retired'.
  status TEXT NOT NULL,
  needs_approval INTEGER NOT NULL,
  mode TEXT NOT NULL,
  platform TEXT NOT NULL,
  arch TEXT NOT NULL,
  -- RFC 7638; for ever this device's, also after its end.
  key_thumbprint TEXT NOT NULL,
  key_protection TEXT NOT NULL,
  enrolment_token_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  quarantined_at INTEGER,
  retired_at INTEGER,
  retire_reason TEXT,
  -- Since when a restore holds it back.
  held_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, enrolment_token_id) REFERENCES enrolment_tokens (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX devices_by_key ON devices (organization_id, key_thumbprint);
CREATE UNIQUE INDEX devices_by_seq ON devices (organization_id, seq);
CREATE INDEX devices_by_enrolment ON devices (organization_id, enrolment_token_id, seq);
CREATE INDEX devices_by_status ON devices (status, updated_at, organization_id, id);

CREATE TABLE device_tokens (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  -- The key beside which it serves.
  key_thumbprint TEXT NOT NULL,
  lookup_id TEXT NOT NULL,
  token_prefix TEXT NOT NULL,
  mac BLOB NOT NULL,
  pepper_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  revoked_at INTEGER,
  revoke_reason TEXT,
  replay_pending INTEGER NOT NULL,
  last_used_at INTEGER,
  last_used_ip TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX device_tokens_by_lookup ON device_tokens (lookup_id);
CREATE INDEX device_tokens_by_key ON device_tokens (organization_id, key_thumbprint, id);
CREATE INDEX device_tokens_by_device ON device_tokens (organization_id, device_id, created_at, id);

CREATE TABLE device_heartbeats (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  agent_version TEXT NOT NULL,
  os_version TEXT NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;
