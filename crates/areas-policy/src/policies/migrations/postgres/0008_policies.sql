-- Policies, their revisions, and the versions of the set of enabled policies.
--
-- A revision belongs to the versions with set_from <= sequence < set_to, and to none where they are NULL.
-- 9007199254740991 is "for good". A version is one row of its own and at most two changed ones; all of them can be
-- read back for ever.

CREATE TABLE policies (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  -- The place in lists.
  seq BIGINT NOT NULL,
  family TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C",
  search_key TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  enabled BOOLEAN NOT NULL,
  current_revision BIGINT NOT NULL,
  definition_sha256 TEXT COLLATE "C" NOT NULL,
  manager_id TEXT COLLATE "C",
  manager_instance TEXT COLLATE "C",
  owner_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  deleted_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX policies_by_seq ON policies (organization_id, seq);

CREATE TABLE policy_revisions (
  organization_id TEXT COLLATE "C" NOT NULL,
  policy_id TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  family TEXT COLLATE "C" NOT NULL,
  -- As authored.
  definition TEXT COLLATE "C" NOT NULL,
  definition_sha256 TEXT COLLATE "C" NOT NULL,
  -- With ids in place of names; NULL where nothing was replaced.
  bound TEXT COLLATE "C",
  bound_sha256 TEXT COLLATE "C" NOT NULL,
  source_ref TEXT COLLATE "C",
  action TEXT COLLATE "C" NOT NULL,
  enabled BOOLEAN NOT NULL,
  set_from BIGINT,
  set_to BIGINT,
  created_at BIGINT NOT NULL,
  created_by_type TEXT COLLATE "C" NOT NULL,
  created_by_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, policy_id, revision),
  FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
);
-- Holds all that the digest of a version is made of.
CREATE INDEX policy_revisions_by_set ON policy_revisions (organization_id, set_to, set_from, policy_id, family, bound_sha256);

CREATE TABLE policy_set_versions (
  organization_id TEXT COLLATE "C" NOT NULL,
  sequence BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  digest TEXT COLLATE "C" NOT NULL,
  policy_count BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by_type TEXT COLLATE "C" NOT NULL,
  created_by_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, sequence),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX policy_set_versions_by_id ON policy_set_versions (organization_id, id);
