-- The directory: users, groups and memberships in versions, and the imports that stage new ones.
--
-- A version is visible iff valid_from <= generation < valid_to, generation being that of directory_state (0 without
-- a row). 9007199254740991 is "for good". An import writes the versions of a later generation; one update of
-- directory_state makes them visible.

CREATE TABLE directory_state (
  organization_id TEXT NOT NULL PRIMARY KEY,
  generation INTEGER NOT NULL,
  last_generation INTEGER NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

CREATE TABLE directory_users (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  valid_from INTEGER NOT NULL,
  valid_to INTEGER NOT NULL,
  -- The place in lists; the same in every version of a user.
  seq INTEGER NOT NULL,
  directory_id TEXT NOT NULL,
  login_name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  display_name TEXT,
  email TEXT,
  external_id TEXT,
  permission_role TEXT,
  status TEXT NOT NULL,
  suspended_at INTEGER,
  -- 'api' or 'import'; an import does not lift a suspension of the API.
  suspended_by TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id, valid_from),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX directory_users_by_name ON directory_users (organization_id, name_key, directory_id, valid_from);
CREATE INDEX directory_users_by_seq ON directory_users (organization_id, seq);
CREATE INDEX directory_users_by_start ON directory_users (organization_id, valid_from, id);
CREATE INDEX directory_users_by_end ON directory_users (organization_id, valid_to) WHERE valid_to < 9007199254740991;

CREATE TABLE directory_groups (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  valid_from INTEGER NOT NULL,
  valid_to INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  directory_id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  description TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id, valid_from),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX directory_groups_by_name ON directory_groups (organization_id, name_key, directory_id, valid_from);
CREATE INDEX directory_groups_by_seq ON directory_groups (organization_id, seq);
CREATE INDEX directory_groups_by_start ON directory_groups (organization_id, valid_from, id);
CREATE INDEX directory_groups_by_end ON directory_groups (organization_id, valid_to) WHERE valid_to < 9007199254740991;

CREATE TABLE directory_memberships (
  organization_id TEXT NOT NULL,
  group_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  valid_from INTEGER NOT NULL,
  valid_to INTEGER NOT NULL,
  -- The user's place in lists, so that a page of a large group is read in order.
  user_seq INTEGER NOT NULL,
  PRIMARY KEY (organization_id, group_id, user_id, valid_from),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX directory_memberships_by_seq ON directory_memberships (organization_id, group_id, user_seq);
CREATE INDEX directory_memberships_by_user ON directory_memberships (organization_id, user_id);
CREATE INDEX directory_memberships_by_start ON directory_memberships (organization_id, valid_from, group_id, user_id);
CREATE INDEX directory_memberships_by_end ON directory_memberships (organization_id, valid_to) WHERE valid_to < 9007199254740991;

CREATE TABLE directory_imports (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  directory_id TEXT NOT NULL,
  format TEXT NOT NULL,
  mode TEXT NOT NULL,
  partial INTEGER NOT NULL,
  state TEXT NOT NULL,
  abort_reason TEXT,
  generation INTEGER NOT NULL,
  next_sequence INTEGER NOT NULL,
  -- Lines of the file that have arrived, headers and blank ones included.
  file_lines INTEGER NOT NULL,
  -- The counts that the API shows, as JSON.
  counts TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  finished_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX directory_imports_unfinished ON directory_imports (organization_id) WHERE state IN ('open', 'applying', 'aborting');
CREATE INDEX directory_imports_by_state ON directory_imports (organization_id, state, updated_at);

CREATE TABLE directory_import_names (
  organization_id TEXT NOT NULL,
  import_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  name_key TEXT NOT NULL,
  -- NULL: no line, but a deletion through the API while the import is open.
  line INTEGER,
  PRIMARY KEY (organization_id, import_id, kind, name_key),
  FOREIGN KEY (organization_id, import_id) REFERENCES directory_imports (organization_id, id)
) STRICT;

CREATE TABLE directory_import_refusals (
  organization_id TEXT NOT NULL,
  import_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  line INTEGER NOT NULL,
  path TEXT,
  message TEXT NOT NULL,
  PRIMARY KEY (organization_id, import_id, position),
  FOREIGN KEY (organization_id, import_id) REFERENCES directory_imports (organization_id, id)
) STRICT;

-- Whose accounts a suspended user leaves behind (D5.10).
CREATE INDEX service_accounts_by_owner ON service_accounts (organization_id, owner_console_user_id) WHERE deleted_at IS NULL AND owner_console_user_id IS NOT NULL;
