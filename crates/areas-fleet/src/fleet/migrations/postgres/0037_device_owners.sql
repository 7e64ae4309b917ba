-- Whose machines devices are, and whom gateways take them for. Both were said by somebody: beside each stands what that somebody
-- could give, a role and scopes (without scopes all of the role), and a device is taken for nobody who can do more.

ALTER TABLE devices ADD COLUMN owner_user_id TEXT COLLATE "C";
ALTER TABLE devices ADD COLUMN owner_reach_role TEXT COLLATE "C";
ALTER TABLE devices ADD COLUMN owner_reach_scopes TEXT COLLATE "C";
CREATE INDEX devices_by_owner ON devices (organization_id, owner_user_id, seq);

CREATE TABLE device_gateway_identities (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  -- The service account; empty after it was taken away: then the device is taken for its owner. It stays when the account ends.
  service_account_id TEXT COLLATE "C",
  reach_role TEXT COLLATE "C" NOT NULL,
  reach_scopes TEXT COLLATE "C",
  -- How often an account was assigned or taken away.
  revision BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON device_gateway_identities REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON device_gateway_identities REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON device_gateway_identities REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id');

-- Tokens that ended long ago are removed.
CREATE INDEX device_tokens_by_end ON device_tokens (expires_at, organization_id, id);
CREATE INDEX enrolment_tokens_by_end ON enrolment_tokens (expires_at, organization_id, id) WHERE uses = 0;
