CREATE TABLE notes (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  -- The place in lists.
  seq INTEGER NOT NULL,
  text TEXT NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX notes_by_seq ON notes (organization_id, seq);
