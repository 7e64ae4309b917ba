-- Skills, their immutable versions, their content by digest, installs, and the gateway tokens of installs.
-- An empty namespace is none.

CREATE TABLE skill_items (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  namespace TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  search_key TEXT COLLATE "C" NOT NULL,
  description TEXT COLLATE "C" NOT NULL,
  latest_version TEXT COLLATE "C",
  version_count BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  withdrawn_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX skill_items_by_name ON skill_items (organization_id, name, namespace);
CREATE UNIQUE INDEX skill_items_by_number ON skill_items (organization_id, number);

CREATE TABLE skill_contents (
  organization_id TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  content BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);

-- The content is written behind its version, as the last statement of a unit: see insert_version.
CREATE TABLE skill_versions (
  organization_id TEXT COLLATE "C" NOT NULL,
  item_id TEXT COLLATE "C" NOT NULL,
  version TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  size_bytes BIGINT NOT NULL,
  manifest TEXT COLLATE "C" NOT NULL,
  envelope TEXT COLLATE "C" NOT NULL,
  published_at BIGINT NOT NULL,
  published_by TEXT COLLATE "C" NOT NULL,
  withdrawn_at BIGINT,
  PRIMARY KEY (organization_id, item_id, version),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id),
  FOREIGN KEY (organization_id, digest) REFERENCES skill_contents (organization_id, digest) DEFERRABLE INITIALLY DEFERRED
);
CREATE UNIQUE INDEX skill_versions_by_number ON skill_versions (organization_id, item_id, number);

-- The place is a digest of client, device and path: a path may be longer than an index takes.
CREATE TABLE skill_installs (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  item_id TEXT COLLATE "C" NOT NULL,
  principal_id TEXT COLLATE "C" NOT NULL,
  place TEXT COLLATE "C" NOT NULL,
  client TEXT COLLATE "C" NOT NULL,
  client_version TEXT COLLATE "C",
  device TEXT COLLATE "C",
  path TEXT COLLATE "C",
  version TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  installed_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  uninstalled_at BIGINT,
  removed_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id)
);
CREATE UNIQUE INDEX skill_installs_by_number ON skill_installs (organization_id, number);
CREATE UNIQUE INDEX skill_installs_by_place ON skill_installs (organization_id, principal_id, item_id, place) WHERE status = 'installed';
CREATE INDEX skill_installs_by_principal ON skill_installs (organization_id, principal_id, number);
CREATE INDEX skill_installs_by_item ON skill_installs (organization_id, item_id, number);

CREATE TABLE gateway_tokens (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  lookup_id TEXT COLLATE "C" NOT NULL,
  token_prefix TEXT COLLATE "C" NOT NULL,
  mac BYTEA NOT NULL,
  pepper_id TEXT COLLATE "C" NOT NULL,
  principal_id TEXT COLLATE "C" NOT NULL,
  item_id TEXT COLLATE "C" NOT NULL,
  install_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  last_used_at BIGINT,
  last_used_ip TEXT COLLATE "C",
  revoked_at BIGINT,
  revoke_reason TEXT COLLATE "C",
  replay_pending BOOLEAN NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id),
  FOREIGN KEY (organization_id, install_id) REFERENCES skill_installs (organization_id, id)
);
CREATE UNIQUE INDEX gateway_tokens_by_lookup ON gateway_tokens (lookup_id);
-- An install has one token that is not revoked (SK-4).
CREATE UNIQUE INDEX gateway_tokens_by_install ON gateway_tokens (organization_id, principal_id, item_id, install_id) WHERE revoked_at IS NULL;
