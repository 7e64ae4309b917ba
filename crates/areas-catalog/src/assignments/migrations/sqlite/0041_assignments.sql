-- Which profiles of managed configuration devices get, by the word of people.

CREATE TABLE device_profiles (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  -- Its place in the list of its profile.
  seq INTEGER NOT NULL,
  -- Whether somebody who may fetch values in the clear said so: without that word no release with hidden values is delivered.
  in_clear INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id TEXT NOT NULL,
  PRIMARY KEY (organization_id, device_id, profile_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id),
  FOREIGN KEY (organization_id, profile_id) REFERENCES managed_config_profiles (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX device_profiles_by_profile ON device_profiles (organization_id, profile_id, seq);
