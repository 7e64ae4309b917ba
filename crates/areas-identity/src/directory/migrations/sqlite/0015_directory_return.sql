-- Records of a directory that come back, groups with the id of the directory that they come from, and lines of files that
-- would have needed more than their caller holds.

ALTER TABLE directory_groups ADD COLUMN external_id TEXT;
CREATE INDEX directory_groups_by_external ON directory_groups (organization_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX directory_users_by_external ON directory_users (organization_id, external_id) WHERE external_id IS NOT NULL;

-- Who a deleted user or group was, for 90 days: it gets its id back when it comes back. A row stays when it does, so that an
-- import which is aborted changes nothing; a living record's row means nothing.
CREATE TABLE directory_ended (
  organization_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  directory_id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  external_id TEXT,
  -- When a user was suspended by the API: no file brings it back as active.
  suspended_at INTEGER,
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, kind, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX directory_ended_by_name ON directory_ended (organization_id, kind, name_key);
CREATE INDEX directory_ended_by_external ON directory_ended (organization_id, kind, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX directory_ended_by_end ON directory_ended (ended_at);

-- What lines of an import would have changed of users, had their caller held what the users hold.
CREATE TABLE directory_held_changes (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  -- The place in lists.
  seq INTEGER NOT NULL,
  import_id TEXT NOT NULL,
  line INTEGER NOT NULL,
  user_id TEXT NOT NULL,
  -- The members of the user as they were, as they would be, and the groups that it would join, as JSON.
  was TEXT NOT NULL,
  wanted TEXT NOT NULL,
  joins TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, import_id) REFERENCES directory_imports (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX directory_held_changes_by_seq ON directory_held_changes (organization_id, seq);
CREATE INDEX directory_held_changes_by_user ON directory_held_changes (organization_id, user_id);
CREATE INDEX directory_held_changes_by_import ON directory_held_changes (organization_id, import_id);
