-- Which keys each running server has read (ADR 0074).

CREATE TABLE key_readers (
  server_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  -- The ids, as a JSON array.
  keys TEXT COLLATE "C" NOT NULL,
  -- Since when these are the keys that it has read, and when it was last seen.
  since BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
);
