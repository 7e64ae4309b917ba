-- Whose machines devices are, and whom gateways take them for. Both were said by somebody: beside each stands what that somebody
-- could give, a role and scopes (without scopes all of the role), and a device is taken for nobody who can do more.

ALTER TABLE devices ADD COLUMN owner_user_id TEXT;
ALTER TABLE devices ADD COLUMN owner_reach_role TEXT;
ALTER TABLE devices ADD COLUMN owner_reach_scopes TEXT;
CREATE INDEX devices_by_owner ON devices (organization_id, owner_user_id, seq);

CREATE TABLE device_gateway_identities (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  -- The service account; empty after it was taken away: then the device is taken for its owner. It stays when the account ends.
  service_account_id TEXT,
  reach_role TEXT NOT NULL,
  reach_scopes TEXT,
  -- How often an account was assigned or taken away.
  revision INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;

-- Tokens that ended long ago are removed.
CREATE INDEX device_tokens_by_end ON device_tokens (expires_at, organization_id, id);
CREATE INDEX enrolment_tokens_by_end ON enrolment_tokens (expires_at, organization_id, id) WHERE uses = 0;
