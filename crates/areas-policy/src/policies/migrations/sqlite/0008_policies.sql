-- Policies, their revisions, and the versions of the set of enabled policies.
--
-- A revision belongs to the versions with set_from <= sequence < set_to, and to none where they are NULL.
-- 9007199254740991 is "for good". A version is one row of its own and at most two changed ones; all of them can be
-- read back for ever.

CREATE TABLE policies (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  -- The place in lists.
  seq INTEGER NOT NULL,
  family TEXT NOT NULL,
  name TEXT,
  search_key TEXT NOT NULL,
  action TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  current_revision INTEGER NOT NULL,
  definition_sha256 TEXT NOT NULL,
  manager_id TEXT,
  manager_instance TEXT,
  owner_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  deleted_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX policies_by_seq ON policies (organization_id, seq);

CREATE TABLE policy_revisions (
  organization_id TEXT NOT NULL,
  policy_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  family TEXT NOT NULL,
  -- As authored.
  definition TEXT NOT NULL,
  definition_sha256 TEXT NOT NULL,
  -- With ids in place of names; NULL where nothing was replaced.
  bound TEXT,
  bound_sha256 TEXT NOT NULL,
  source_ref TEXT,
  action TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  set_from INTEGER,
  set_to INTEGER,
  created_at INTEGER NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id TEXT NOT NULL,
  PRIMARY KEY (organization_id, policy_id, revision),
  FOREIGN KEY (organization_id, policy_id) REFERENCES policies (organization_id, id)
) STRICT;
-- Holds all that the digest of a version is made of.
CREATE INDEX policy_revisions_by_set ON policy_revisions (organization_id, set_to, set_from, policy_id, family, bound_sha256);

CREATE TABLE policy_set_versions (
  organization_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  id TEXT NOT NULL,
  digest TEXT NOT NULL,
  policy_count INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id TEXT NOT NULL,
  PRIMARY KEY (organization_id, sequence),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX policy_set_versions_by_id ON policy_set_versions (organization_id, id);
