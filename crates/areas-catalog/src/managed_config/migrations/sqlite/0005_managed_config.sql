-- Managed configuration: profiles, their immutable releases, and the machines that report what they applied.

CREATE TABLE managed_config_profiles (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  target TEXT NOT NULL,
  auto_publish TEXT NOT NULL,
  on_unavailable TEXT NOT NULL,
  poll_interval_secs INTEGER NOT NULL,
  status TEXT NOT NULL,
  current_release_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX managed_config_profiles_by_name ON managed_config_profiles (organization_id, name_key);
CREATE UNIQUE INDEX managed_config_profiles_by_seq ON managed_config_profiles (organization_id, seq);

-- Canonical JSON, once for all releases that say the same.
CREATE TABLE managed_config_contents (
  organization_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

CREATE TABLE managed_config_releases (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  store_epoch INTEGER NOT NULL,
  kind TEXT NOT NULL,
  source_release_id TEXT,
  content_digest TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  reason TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id TEXT NOT NULL,
  envelope TEXT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, profile_id) REFERENCES managed_config_profiles (organization_id, id),
  FOREIGN KEY (organization_id, content_digest) REFERENCES managed_config_contents (organization_id, digest)
) STRICT;
CREATE UNIQUE INDEX managed_config_releases_by_version ON managed_config_releases (organization_id, profile_id, version);

CREATE TABLE managed_config_targets (
  organization_id TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  target_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  name TEXT,
  release_id TEXT NOT NULL,
  content_digest TEXT NOT NULL,
  digest_since INTEGER NOT NULL,
  state TEXT NOT NULL,
  message TEXT,
  first_reported_at INTEGER NOT NULL,
  last_reported_at INTEGER NOT NULL,
  reported_by_type TEXT NOT NULL,
  reported_by_id TEXT NOT NULL,
  drift_told INTEGER NOT NULL,
  PRIMARY KEY (organization_id, profile_id, target_id),
  FOREIGN KEY (organization_id, profile_id) REFERENCES managed_config_profiles (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX managed_config_targets_by_seq ON managed_config_targets (organization_id, profile_id, seq);
