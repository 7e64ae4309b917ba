-- What devices are told to do, and what came of it; of which token a token of a device is the successor; and by which token or session
-- an enrolment token was made, with which it ends. Those of before say nothing of it.

ALTER TABLE device_tokens ADD COLUMN parent_id TEXT COLLATE "C";
CREATE INDEX device_tokens_by_parent ON device_tokens (organization_id, parent_id, created_at, id);
-- A device may have any number of tokens that ended; whoever ends those that did not looks at no others.
CREATE INDEX device_tokens_living ON device_tokens (organization_id, device_id, created_at, id) WHERE revoked_at IS NULL;
ALTER TABLE enrolment_tokens ADD COLUMN came_by TEXT COLLATE "C";
-- Whose machine it enrols, where somebody made it for a machine of their own, and what they could do by what they made it with.
ALTER TABLE enrolment_tokens ADD COLUMN owner_user_id TEXT COLLATE "C";
ALTER TABLE enrolment_tokens ADD COLUMN owner_reach_role TEXT COLLATE "C";
ALTER TABLE enrolment_tokens ADD COLUMN owner_reach_scopes TEXT COLLATE "C";
-- Which Terraform manager assigned an account to a device; nobody where the service did.
ALTER TABLE device_gateway_identities ADD COLUMN manager_id TEXT COLLATE "C";
ALTER TABLE device_gateway_identities ADD COLUMN manager_instance TEXT COLLATE "C";
ALTER TABLE device_gateway_identities ADD COLUMN owner_id TEXT COLLATE "C";
CREATE INDEX enrolment_tokens_by_origin ON enrolment_tokens (organization_id, came_by, seq);

CREATE TABLE device_commands (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  -- Its place among those of the device.
  seq BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  -- 'queued', 'delivered', 'succeeded' or 'failed'; one that waits has expired when its time has come.
  state TEXT COLLATE "C" NOT NULL,
  created_by TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  delivered_at BIGINT,
  finished_at BIGINT,
  -- A word of the device's own list: why it failed.
  code TEXT COLLATE "C",
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);
CREATE UNIQUE INDEX device_commands_by_device ON device_commands (organization_id, device_id, seq);
CREATE INDEX device_commands_by_end ON device_commands (expires_at, organization_id, id);
