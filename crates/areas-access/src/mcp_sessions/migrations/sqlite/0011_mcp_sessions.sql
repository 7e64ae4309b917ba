-- MCP sessions: delegated grants, from their first acceptance to 90 days behind their end.

-- The pairs of actor type and scopes that an organization's sessions have: few, so that a filter names its kinds.
CREATE TABLE mcp_session_kinds (
  organization_id TEXT NOT NULL,
  kind INTEGER NOT NULL,
  actor_type TEXT NOT NULL,
  scopes TEXT NOT NULL,
  PRIMARY KEY (organization_id, kind),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX mcp_session_kinds_by_content ON mcp_session_kinds (organization_id, actor_type, scopes);

-- Whom sessions act for, each under one name, and what a substring search looks at: folded, a line for each of display,
-- account and user; '' is none. The number is unique everywhere: that of the first session (ADR 0026).
CREATE TABLE mcp_session_actors (
  organization_id TEXT NOT NULL,
  actor INTEGER NOT NULL,
  display TEXT NOT NULL,
  service_account_id TEXT NOT NULL,
  console_user_id TEXT NOT NULL,
  search TEXT NOT NULL,
  PRIMARY KEY (organization_id, actor),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX mcp_session_actors_by_number ON mcp_session_actors (actor);
CREATE UNIQUE INDEX mcp_session_actors_by_content ON mcp_session_actors (organization_id, service_account_id, console_user_id, display);

-- The clients that sessions name, and their ids folded.
CREATE TABLE mcp_session_clients (
  organization_id TEXT NOT NULL,
  mcp_client_id TEXT NOT NULL,
  search TEXT NOT NULL,
  PRIMARY KEY (organization_id, mcp_client_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

CREATE TABLE mcp_sessions (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  -- The beginning of the id as a number: the order of issue, unique everywhere.
  seq INTEGER NOT NULL,
  grant_key TEXT NOT NULL,
  kind INTEGER NOT NULL,
  actor INTEGER NOT NULL,
  actor_display TEXT,
  mcp_client_id TEXT,
  client_display TEXT,
  service_account_id TEXT,
  console_user_id TEXT,
  -- The token of a service account that came to the MCP endpoint by itself.
  token_id TEXT,
  issued_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  last_used_ip TEXT,
  expires_at INTEGER NOT NULL,
  -- 0 active, 1 revoked, 2 expired; how it ended is not to be read from the reason.
  state INTEGER NOT NULL,
  ended_at INTEGER,
  revoke_reason TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, kind) REFERENCES mcp_session_kinds (organization_id, kind),
  FOREIGN KEY (organization_id, actor) REFERENCES mcp_session_actors (organization_id, actor),
  FOREIGN KEY (organization_id, mcp_client_id) REFERENCES mcp_session_clients (organization_id, mcp_client_id)
) STRICT;
CREATE UNIQUE INDEX mcp_sessions_by_grant ON mcp_sessions (grant_key);
CREATE UNIQUE INDEX mcp_sessions_by_seq ON mcp_sessions (seq);
-- Each holds all that a filter and a count need, in the order of a list: no row is read to be passed over.
CREATE UNIQUE INDEX mcp_sessions_by_issue ON mcp_sessions (organization_id, seq);
CREATE INDEX mcp_sessions_by_state ON mcp_sessions (organization_id, state, seq, expires_at, kind);
CREATE INDEX mcp_sessions_by_kind ON mcp_sessions (organization_id, kind, state, seq, expires_at);
CREATE INDEX mcp_sessions_by_client ON mcp_sessions (organization_id, mcp_client_id, state, seq, expires_at, kind);
CREATE INDEX mcp_sessions_by_actor ON mcp_sessions (organization_id, actor, state, seq, expires_at, kind, mcp_client_id);
CREATE INDEX mcp_sessions_by_client_kind ON mcp_sessions (organization_id, mcp_client_id, kind, state, seq, expires_at);
CREATE INDEX mcp_sessions_by_account ON mcp_sessions (organization_id, service_account_id, state, seq, expires_at, kind) WHERE service_account_id IS NOT NULL;
CREATE INDEX mcp_sessions_by_account_kind ON mcp_sessions (organization_id, service_account_id, kind, state, seq, expires_at) WHERE service_account_id IS NOT NULL;
CREATE INDEX mcp_sessions_by_account_client ON mcp_sessions (organization_id, service_account_id, mcp_client_id, state, seq, expires_at, kind) WHERE service_account_id IS NOT NULL;
CREATE INDEX mcp_sessions_by_user ON mcp_sessions (organization_id, console_user_id, state, seq, expires_at) WHERE console_user_id IS NOT NULL;
CREATE INDEX mcp_sessions_by_token ON mcp_sessions (organization_id, token_id, state, seq) WHERE token_id IS NOT NULL;
CREATE INDEX mcp_sessions_by_expiry ON mcp_sessions (organization_id, expires_at, seq, kind, mcp_client_id, service_account_id) WHERE state = 0;
CREATE INDEX mcp_sessions_by_end ON mcp_sessions (organization_id, ended_at) WHERE ended_at IS NOT NULL;

-- How many sessions there are of each client, kind and state, so that a list says its total without counting. Under no
-- name stand those of all clients and of none. Triggers keep it: a count that somebody forgets is worse than none.
CREATE TABLE mcp_session_counts (
  organization_id TEXT NOT NULL,
  mcp_client_id TEXT NOT NULL,
  kind INTEGER NOT NULL,
  state INTEGER NOT NULL,
  sessions INTEGER NOT NULL,
  PRIMARY KEY (organization_id, mcp_client_id, kind, state),
  FOREIGN KEY (organization_id, kind) REFERENCES mcp_session_kinds (organization_id, kind)
) STRICT;
CREATE TRIGGER mcp_sessions_count_insert AFTER INSERT ON mcp_sessions BEGIN
  INSERT INTO mcp_session_counts (organization_id, mcp_client_id, kind, state, sessions)
  SELECT NEW.organization_id, c.client, NEW.kind, s.state, s.n
  FROM (SELECT '' AS client UNION ALL SELECT NEW.mcp_client_id) c, (SELECT NEW.state AS state, 1 AS n) s WHERE c.client IS NOT NULL
  ON CONFLICT (organization_id, mcp_client_id, kind, state) DO UPDATE SET sessions = sessions + excluded.sessions;
END;
CREATE TRIGGER mcp_sessions_count_update AFTER UPDATE OF state ON mcp_sessions WHEN OLD.state <> NEW.state BEGIN
  INSERT INTO mcp_session_counts (organization_id, mcp_client_id, kind, state, sessions)
  SELECT NEW.organization_id, c.client, NEW.kind, s.state, s.n
  FROM (SELECT '' AS client UNION ALL SELECT NEW.mcp_client_id) c, (SELECT OLD.state AS state, -1 AS n UNION ALL SELECT NEW.state, 1) s WHERE c.client IS NOT NULL
  ON CONFLICT (organization_id, mcp_client_id, kind, state) DO UPDATE SET sessions = sessions + excluded.sessions;
END;
CREATE TRIGGER mcp_sessions_count_delete AFTER DELETE ON mcp_sessions BEGIN
  INSERT INTO mcp_session_counts (organization_id, mcp_client_id, kind, state, sessions)
  SELECT OLD.organization_id, c.client, OLD.kind, s.state, s.n
  FROM (SELECT '' AS client UNION ALL SELECT OLD.mcp_client_id) c, (SELECT OLD.state AS state, -1 AS n) s WHERE c.client IS NOT NULL
  ON CONFLICT (organization_id, mcp_client_id, kind, state) DO UPDATE SET sessions = sessions + excluded.sessions;
END;

-- Ends of many sessions at once that a job has yet to write down: all of a subject up to a seq have ended.
CREATE TABLE mcp_session_cuts (
  organization_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  cut_seq INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  revoke_reason TEXT NOT NULL,
  PRIMARY KEY (organization_id, subject, cut_seq),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

-- Grants whose sessions ended and were forgotten, where an issuer could name them again: their keys are digests.
CREATE TABLE mcp_session_tombstones (
  organization_id TEXT NOT NULL,
  grant_key TEXT NOT NULL,
  PRIMARY KEY (organization_id, grant_key),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX mcp_session_tombstones_by_grant ON mcp_session_tombstones (grant_key);

-- The substring indexes over actors and ids, by their numbers. SQLite alone has them as tables; triggers keep them.
CREATE VIRTUAL TABLE mcp_session_actor_parts USING fts5(search, content='', contentless_delete=1, tokenize='trigram case_sensitive 1');
CREATE TRIGGER mcp_session_actor_parts_insert AFTER INSERT ON mcp_session_actors BEGIN
  INSERT INTO mcp_session_actor_parts (rowid, search) VALUES (NEW.actor, NEW.search);
END;
CREATE TRIGGER mcp_session_actor_parts_delete AFTER DELETE ON mcp_session_actors BEGIN
  DELETE FROM mcp_session_actor_parts WHERE rowid = OLD.actor;
END;
CREATE VIRTUAL TABLE mcp_session_parts USING fts5(id, content='', contentless_delete=1, tokenize='trigram case_sensitive 1');
CREATE TRIGGER mcp_session_parts_insert AFTER INSERT ON mcp_sessions BEGIN
  INSERT INTO mcp_session_parts (rowid, id) VALUES (NEW.seq, NEW.id);
END;
CREATE TRIGGER mcp_session_parts_delete AFTER DELETE ON mcp_sessions BEGIN
  DELETE FROM mcp_session_parts WHERE rowid = OLD.seq;
END;
