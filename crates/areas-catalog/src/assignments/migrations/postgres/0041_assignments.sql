-- Which profiles of managed configuration devices get, by the word of people.

CREATE TABLE device_profiles (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  profile_id TEXT COLLATE "C" NOT NULL,
  -- Its place in the list of its profile.
  seq BIGINT NOT NULL,
  -- Whether somebody who may fetch values in the clear said so: without that word no release with hidden values is delivered.
  in_clear BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  created_by_type TEXT COLLATE "C" NOT NULL,
  created_by_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, device_id, profile_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id),
  FOREIGN KEY (organization_id, profile_id) REFERENCES managed_config_profiles (organization_id, id)
);
CREATE UNIQUE INDEX device_profiles_by_profile ON device_profiles (organization_id, profile_id, seq);
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON device_profiles REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id', 'profile_id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON device_profiles REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id', 'profile_id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON device_profiles REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id', 'profile_id');
