-- Recorded events: chunks wait in rows until they are sealed into segments, which are files. What stands here says
-- which of them belong to a history.

-- The number of the newest chunk of an organization.
CREATE TABLE history_heads (
  organization_id TEXT NOT NULL PRIMARY KEY,
  sequence INTEGER NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

-- A segment is `writing` while its file is made, `sealed` once it stands for its chunks, `removing` until its file is
-- gone. A file is named by a row from before it is there until it is gone.
CREATE TABLE history_segments (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  event_count INTEGER NOT NULL,
  min_at INTEGER NOT NULL,
  max_at INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  digest TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX history_segments_by_time ON history_segments (organization_id, state, max_at, min_at);
CREATE INDEX history_segments_by_state ON history_segments (state, updated_at);

-- Some events, in the order in which they were committed. The content stands last: whoever reads the rest does not
-- read it.
CREATE TABLE history_chunks (
  organization_id TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  id TEXT NOT NULL,
  segment_id TEXT,
  sealed_at INTEGER,
  schema_version INTEGER NOT NULL,
  event_count INTEGER NOT NULL,
  min_at INTEGER NOT NULL,
  max_at INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (organization_id, sequence),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX history_chunks_by_id ON history_chunks (organization_id, id);
CREATE INDEX history_chunks_unsealed ON history_chunks (organization_id, sequence) WHERE segment_id IS NULL;
CREATE INDEX history_chunks_sealed ON history_chunks (sealed_at) WHERE segment_id IS NOT NULL;

-- Bodies that were imported; the same one is not imported twice.
CREATE TABLE history_imports (
  organization_id TEXT NOT NULL,
  source TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  outcome TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, source, sha256),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX history_imports_by_creation ON history_imports (organization_id, created_at);

-- Events name people by their e-mail addresses too.
CREATE INDEX directory_users_by_email ON directory_users (organization_id, email) WHERE email IS NOT NULL;
