-- Which keys each running server has read (ADR 0074).

CREATE TABLE key_readers (
  server_id TEXT NOT NULL PRIMARY KEY,
  -- The ids, as a JSON array.
  keys TEXT NOT NULL,
  -- Since when these are the keys that it has read, and when it was last seen.
  since INTEGER NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT;
