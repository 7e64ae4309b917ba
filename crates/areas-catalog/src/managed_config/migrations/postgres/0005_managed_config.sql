-- Managed configuration: profiles, their immutable releases, and the machines that report what they applied.

CREATE TABLE managed_config_profiles (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  target TEXT COLLATE "C" NOT NULL,
  auto_publish TEXT COLLATE "C" NOT NULL,
  on_unavailable TEXT COLLATE "C" NOT NULL,
  poll_interval_secs BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  current_release_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX managed_config_profiles_by_name ON managed_config_profiles (organization_id, name_key);
CREATE UNIQUE INDEX managed_config_profiles_by_seq ON managed_config_profiles (organization_id, seq);

-- Canonical JSON, once for all releases that say the same.
CREATE TABLE managed_config_contents (
  organization_id TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  content TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);

CREATE TABLE managed_config_releases (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  profile_id TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  store_epoch BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  source_release_id TEXT COLLATE "C",
  content_digest TEXT COLLATE "C" NOT NULL,
  schema_version BIGINT NOT NULL,
  reason TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  created_by_type TEXT COLLATE "C" NOT NULL,
  created_by_id TEXT COLLATE "C" NOT NULL,
  envelope TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, profile_id) REFERENCES managed_config_profiles (organization_id, id),
  FOREIGN KEY (organization_id, content_digest) REFERENCES managed_config_contents (organization_id, digest)
);
CREATE UNIQUE INDEX managed_config_releases_by_version ON managed_config_releases (organization_id, profile_id, version);

CREATE TABLE managed_config_targets (
  organization_id TEXT COLLATE "C" NOT NULL,
  profile_id TEXT COLLATE "C" NOT NULL,
  target_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  name TEXT COLLATE "C",
  release_id TEXT COLLATE "C" NOT NULL,
  content_digest TEXT COLLATE "C" NOT NULL,
  digest_since BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  message TEXT COLLATE "C",
  first_reported_at BIGINT NOT NULL,
  last_reported_at BIGINT NOT NULL,
  reported_by_type TEXT COLLATE "C" NOT NULL,
  reported_by_id TEXT COLLATE "C" NOT NULL,
  drift_told BOOLEAN NOT NULL,
  PRIMARY KEY (organization_id, profile_id, target_id),
  FOREIGN KEY (organization_id, profile_id) REFERENCES managed_config_profiles (organization_id, id)
);
CREATE UNIQUE INDEX managed_config_targets_by_seq ON managed_config_targets (organization_id, profile_id, seq);
