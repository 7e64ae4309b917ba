-- MCP sessions: delegated grants, from their first acceptance to 90 days behind their end.

-- The pairs of actor type and scopes that an organization's sessions have: few, so that a filter names its kinds.
CREATE TABLE mcp_session_kinds (
  organization_id TEXT COLLATE "C" NOT NULL,
  kind BIGINT NOT NULL,
  actor_type TEXT COLLATE "C" NOT NULL,
  scopes TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, kind),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX mcp_session_kinds_by_content ON mcp_session_kinds (organization_id, actor_type, scopes);

-- Whom sessions act for, each under one name, and what a substring search looks at: folded, a line for each of display,
-- account and user; '' is none. The number is unique everywhere: that of the first session (ADR 0026).
CREATE TABLE mcp_session_actors (
  organization_id TEXT COLLATE "C" NOT NULL,
  actor BIGINT NOT NULL,
  display TEXT COLLATE "C" NOT NULL,
  service_account_id TEXT COLLATE "C" NOT NULL,
  console_user_id TEXT COLLATE "C" NOT NULL,
  search TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, actor),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX mcp_session_actors_by_number ON mcp_session_actors (actor);
CREATE UNIQUE INDEX mcp_session_actors_by_content ON mcp_session_actors (organization_id, service_account_id, console_user_id, display);

-- The clients that sessions name, and their ids folded.
CREATE TABLE mcp_session_clients (
  organization_id TEXT COLLATE "C" NOT NULL,
  mcp_client_id TEXT COLLATE "C" NOT NULL,
  search TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, mcp_client_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);

CREATE TABLE mcp_sessions (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  -- The beginning of the id as a number: the order of issue, unique everywhere.
  seq BIGINT NOT NULL,
  grant_key TEXT COLLATE "C" NOT NULL,
  kind BIGINT NOT NULL,
  actor BIGINT NOT NULL,
  actor_display TEXT COLLATE "C",
  mcp_client_id TEXT COLLATE "C",
  client_display TEXT COLLATE "C",
  service_account_id TEXT COLLATE "C",
  console_user_id TEXT COLLATE "C",
  -- The token of a service account that came to the MCP endpoint by itself.
  token_id TEXT COLLATE "C",
  issued_at BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  last_used_ip TEXT COLLATE "C",
  expires_at BIGINT NOT NULL,
  -- 0 active, 1 revoked, 2 expired; how it ended is not to be read from the reason.
  state BIGINT NOT NULL,
  ended_at BIGINT,
  revoke_reason TEXT COLLATE "C",
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, kind) REFERENCES mcp_session_kinds (organization_id, kind),
  FOREIGN KEY (organization_id, actor) REFERENCES mcp_session_actors (organization_id, actor),
  FOREIGN KEY (organization_id, mcp_client_id) REFERENCES mcp_session_clients (organization_id, mcp_client_id)
);
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
  organization_id TEXT COLLATE "C" NOT NULL,
  mcp_client_id TEXT COLLATE "C" NOT NULL,
  kind BIGINT NOT NULL,
  state BIGINT NOT NULL,
  sessions BIGINT NOT NULL,
  PRIMARY KEY (organization_id, mcp_client_id, kind, state),
  FOREIGN KEY (organization_id, kind) REFERENCES mcp_session_kinds (organization_id, kind)
);
CREATE FUNCTION mcp_sessions_count_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mcp_session_counts AS c (organization_id, mcp_client_id, kind, state, sessions)
  SELECT organization_id, client, kind, state, SUM(n)
  FROM (SELECT organization_id, '' AS client, kind, state, 1 AS n FROM added UNION ALL SELECT organization_id, mcp_client_id, kind, state, 1 FROM added) AS changed
  WHERE client IS NOT NULL GROUP BY 1, 2, 3, 4 HAVING SUM(n) <> 0 ORDER BY 1, 2, 3, 4
  ON CONFLICT (organization_id, mcp_client_id, kind, state) DO UPDATE SET sessions = c.sessions + excluded.sessions;
  RETURN NULL;
END
$$;
CREATE TRIGGER mcp_sessions_count_insert AFTER INSERT ON mcp_sessions REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mcp_sessions_count_insert();
CREATE FUNCTION mcp_sessions_count_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mcp_session_counts AS c (organization_id, mcp_client_id, kind, state, sessions)
  SELECT organization_id, client, kind, state, SUM(n)
  FROM (SELECT organization_id, '' AS client, kind, state, -1 AS n FROM gone UNION ALL SELECT organization_id, mcp_client_id, kind, state, -1 FROM gone UNION ALL SELECT organization_id, '' AS client, kind, state, 1 AS n FROM added UNION ALL SELECT organization_id, mcp_client_id, kind, state, 1 FROM added) AS changed
  WHERE client IS NOT NULL GROUP BY 1, 2, 3, 4 HAVING SUM(n) <> 0 ORDER BY 1, 2, 3, 4
  ON CONFLICT (organization_id, mcp_client_id, kind, state) DO UPDATE SET sessions = c.sessions + excluded.sessions;
  RETURN NULL;
END
$$;
CREATE TRIGGER mcp_sessions_count_update AFTER UPDATE ON mcp_sessions REFERENCING OLD TABLE AS gone NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION mcp_sessions_count_update();
CREATE FUNCTION mcp_sessions_count_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO mcp_session_counts AS c (organization_id, mcp_client_id, kind, state, sessions)
  SELECT organization_id, client, kind, state, SUM(n)
  FROM (SELECT organization_id, '' AS client, kind, state, -1 AS n FROM gone UNION ALL SELECT organization_id, mcp_client_id, kind, state, -1 FROM gone) AS changed
  WHERE client IS NOT NULL GROUP BY 1, 2, 3, 4 HAVING SUM(n) <> 0 ORDER BY 1, 2, 3, 4
  ON CONFLICT (organization_id, mcp_client_id, kind, state) DO UPDATE SET sessions = c.sessions + excluded.sessions;
  RETURN NULL;
END
$$;
CREATE TRIGGER mcp_sessions_count_delete AFTER DELETE ON mcp_sessions REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION mcp_sessions_count_delete();

-- Ends of many sessions at once that a job has yet to write down: all of a subject up to a seq have ended.
CREATE TABLE mcp_session_cuts (
  organization_id TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  cut_seq BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  revoke_reason TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, subject, cut_seq),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);

-- Grants whose sessions ended and were forgotten, where an issuer could name them again: their keys are digests.
CREATE TABLE mcp_session_tombstones (
  organization_id TEXT COLLATE "C" NOT NULL,
  grant_key TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, grant_key),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX mcp_session_tombstones_by_grant ON mcp_session_tombstones (grant_key);

-- The substring indexes over actors and ids. Who may not create the extension, or has none, does without: searches are
-- then correct and slower.
DO $$
DECLARE home text;
BEGIN
  -- Servers that start together do not create it at once.
  PERFORM pg_advisory_xact_lock(8251027306441);
  IF NOT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm') THEN
    CREATE EXTENSION pg_trgm WITH SCHEMA public;
  END IF;
  SELECT n.nspname INTO home FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm';
  EXECUTE format('CREATE INDEX mcp_session_actors_by_text ON mcp_session_actors USING gin (search %I.gin_trgm_ops)', home);
  EXECUTE format('CREATE INDEX mcp_sessions_by_part ON mcp_sessions USING gin (id %I.gin_trgm_ops)', home);
EXCEPTION WHEN OTHERS THEN
  RAISE NOTICE 'no substring index over sessions: %', SQLERRM;
END
$$;
