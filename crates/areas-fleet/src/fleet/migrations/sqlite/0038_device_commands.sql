-- What devices are told to do, and what came of it; of which token a token of a device is the successor; and by which token or session
-- an enrolment token was made, with which it ends. Those of before say nothing of it.

ALTER TABLE device_tokens ADD COLUMN parent_id TEXT;
CREATE INDEX device_tokens_by_parent ON device_tokens (organization_id, parent_id, created_at, id);
-- A device may have any number of tokens that ended; whoever ends those that did not looks at no others.
CREATE INDEX device_tokens_living ON device_tokens (organization_id, device_id, created_at, id) WHERE revoked_at IS NULL;
ALTER TABLE enrolment_tokens ADD COLUMN came_by TEXT;
-- Whose machine it enrols, where somebody made it for a machine of their own, and what they could do by what they made it with.
ALTER TABLE enrolment_tokens ADD COLUMN owner_user_id TEXT;
ALTER TABLE enrolment_tokens ADD COLUMN owner_reach_role TEXT;
ALTER TABLE enrolment_tokens ADD COLUMN owner_reach_scopes TEXT;
-- Which Terraform manager assigned an account to a device; nobody where the service did.
ALTER TABLE device_gateway_identities ADD COLUMN manager_id TEXT;
ALTER TABLE device_gateway_identities ADD COLUMN manager_instance TEXT;
ALTER TABLE device_gateway_identities ADD COLUMN owner_id TEXT;
CREATE INDEX enrolment_tokens_by_origin ON enrolment_tokens (organization_id, came_by, seq);

CREATE TABLE device_commands (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  -- Its place among those of the device.
  seq INTEGER NOT NULL,
  kind TEXT NOT NULL,
  -- 'queued', 'delivered', 'succeeded' or 'failed'; one that waits has expired when its time has come.
  state TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  delivered_at INTEGER,
  finished_at INTEGER,
  -- A word of the device's own list: why it failed.
  code TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX device_commands_by_device ON device_commands (organization_id, device_id, seq);
CREATE INDEX device_commands_by_end ON device_commands (expires_at, organization_id, id);
