-- The automation settings of an organization: one JSON document; an absent row is the factory state.

CREATE TABLE automation_settings (
  organization_id TEXT NOT NULL PRIMARY KEY,
  document TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
