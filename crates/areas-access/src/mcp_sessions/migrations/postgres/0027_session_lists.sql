-- Lists of sessions count what they find, and look for substrings by one text on both engines.

DROP TRIGGER mcp_sessions_count_insert ON mcp_sessions;
DROP TRIGGER mcp_sessions_count_update ON mcp_sessions;
DROP TRIGGER mcp_sessions_count_delete ON mcp_sessions;
DROP FUNCTION mcp_sessions_count_insert();
DROP FUNCTION mcp_sessions_count_update();
DROP FUNCTION mcp_sessions_count_delete();
DROP TABLE mcp_session_counts;

-- An account has few sessions: its other filters are passed over in this index.
DROP INDEX mcp_sessions_by_account_kind;
DROP INDEX mcp_sessions_by_account_client;
DROP INDEX mcp_sessions_by_account;
CREATE INDEX mcp_sessions_by_account ON mcp_sessions (organization_id, service_account_id, state, seq, expires_at, kind, mcp_client_id) WHERE service_account_id IS NOT NULL;

-- SQLite has indexes of substrings as tables with these names and columns; here the indexes are those of the tables.
CREATE VIEW mcp_session_actor_parts AS SELECT actor AS rowid, search FROM mcp_session_actors;
CREATE VIEW mcp_session_parts AS SELECT seq AS rowid, id FROM mcp_sessions;
