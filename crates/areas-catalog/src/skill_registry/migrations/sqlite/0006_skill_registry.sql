-- Skills, their immutable versions, their content by digest, installs, and the gateway tokens of installs.
-- An empty namespace is none.

CREATE TABLE skill_items (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  number INTEGER NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  search_key TEXT NOT NULL,
  description TEXT NOT NULL,
  latest_version TEXT,
  version_count INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  withdrawn_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX skill_items_by_name ON skill_items (organization_id, name, namespace);
CREATE UNIQUE INDEX skill_items_by_number ON skill_items (organization_id, number);

CREATE TABLE skill_contents (
  organization_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  content BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

-- The content is written behind its version, as the last statement of a unit: see insert_version.
CREATE TABLE skill_versions (
  organization_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  version TEXT NOT NULL,
  number INTEGER NOT NULL,
  digest TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  manifest TEXT NOT NULL,
  envelope TEXT NOT NULL,
  published_at INTEGER NOT NULL,
  published_by TEXT NOT NULL,
  withdrawn_at INTEGER,
  PRIMARY KEY (organization_id, item_id, version),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id),
  FOREIGN KEY (organization_id, digest) REFERENCES skill_contents (organization_id, digest) DEFERRABLE INITIALLY DEFERRED
) STRICT;
CREATE UNIQUE INDEX skill_versions_by_number ON skill_versions (organization_id, item_id, number);

-- The place is a digest of client, device and path: a path may be longer than an index takes.
CREATE TABLE skill_installs (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  number INTEGER NOT NULL,
  item_id TEXT NOT NULL,
  principal_id TEXT NOT NULL,
  place TEXT NOT NULL,
  client TEXT NOT NULL,
  client_version TEXT,
  device TEXT,
  path TEXT,
  version TEXT NOT NULL,
  digest TEXT NOT NULL,
  status TEXT NOT NULL,
  installed_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  uninstalled_at INTEGER,
  removed_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX skill_installs_by_number ON skill_installs (organization_id, number);
CREATE UNIQUE INDEX skill_installs_by_place ON skill_installs (organization_id, principal_id, item_id, place) WHERE status = 'installed';
CREATE INDEX skill_installs_by_principal ON skill_installs (organization_id, principal_id, number);
CREATE INDEX skill_installs_by_item ON skill_installs (organization_id, item_id, number);

CREATE TABLE gateway_tokens (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  lookup_id TEXT NOT NULL,
  token_prefix TEXT NOT NULL,
  mac BLOB NOT NULL,
  pepper_id TEXT NOT NULL,
  principal_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  install_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  last_used_at INTEGER,
  last_used_ip TEXT,
  revoked_at INTEGER,
  revoke_reason TEXT,
  replay_pending INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id),
  FOREIGN KEY (organization_id, install_id) REFERENCES skill_installs (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX gateway_tokens_by_lookup ON gateway_tokens (lookup_id);
-- An install has one token that is not revoked (SK-4).
CREATE UNIQUE INDEX gateway_tokens_by_install ON gateway_tokens (organization_id, principal_id, item_id, install_id) WHERE revoked_at IS NULL;
