-- Lists of sessions count what they find, and look for substrings by one text on both engines.

DROP TRIGGER mcp_sessions_count_insert;
DROP TRIGGER mcp_sessions_count_update;
DROP TRIGGER mcp_sessions_count_delete;
DROP TABLE mcp_session_counts;

-- An account has few sessions: its other filters are passed over in this index.
DROP INDEX mcp_sessions_by_account_kind;
DROP INDEX mcp_sessions_by_account_client;
DROP INDEX mcp_sessions_by_account;
CREATE INDEX mcp_sessions_by_account ON mcp_sessions (organization_id, service_account_id, state, seq, expires_at, kind, mcp_client_id) WHERE service_account_id IS NOT NULL;

-- The substring indexes answer LIKE, so they read the texts where they stand; PostgreSQL has views with these names.
DROP TRIGGER mcp_session_actor_parts_insert;
DROP TRIGGER mcp_session_actor_parts_delete;
DROP TRIGGER mcp_session_actor_parts_update;
DROP TABLE mcp_session_actor_parts;
CREATE VIRTUAL TABLE mcp_session_actor_parts USING fts5(search, content='mcp_session_actors', content_rowid='actor', detail='none', tokenize='trigram');
INSERT INTO mcp_session_actor_parts (mcp_session_actor_parts) VALUES ('rebuild');
CREATE TRIGGER mcp_session_actor_parts_insert AFTER INSERT ON mcp_session_actors BEGIN
  INSERT INTO mcp_session_actor_parts (rowid, search) VALUES (NEW.actor, NEW.search);
END;
CREATE TRIGGER mcp_session_actor_parts_delete AFTER DELETE ON mcp_session_actors BEGIN
  INSERT INTO mcp_session_actor_parts (mcp_session_actor_parts, rowid, search) VALUES ('delete', OLD.actor, OLD.search);
END;
CREATE TRIGGER mcp_session_actor_parts_update AFTER UPDATE OF search ON mcp_session_actors BEGIN
  INSERT INTO mcp_session_actor_parts (mcp_session_actor_parts, rowid, search) VALUES ('delete', OLD.actor, OLD.search);
  INSERT INTO mcp_session_actor_parts (rowid, search) VALUES (NEW.actor, NEW.search);
END;
DROP TRIGGER mcp_session_parts_insert;
DROP TRIGGER mcp_session_parts_delete;
DROP TABLE mcp_session_parts;
CREATE VIRTUAL TABLE mcp_session_parts USING fts5(id, content='mcp_sessions', content_rowid='seq', detail='none', tokenize='trigram');
INSERT INTO mcp_session_parts (mcp_session_parts) VALUES ('rebuild');
CREATE TRIGGER mcp_session_parts_insert AFTER INSERT ON mcp_sessions BEGIN
  INSERT INTO mcp_session_parts (rowid, id) VALUES (NEW.seq, NEW.id);
END;
CREATE TRIGGER mcp_session_parts_delete AFTER DELETE ON mcp_sessions BEGIN
  INSERT INTO mcp_session_parts (mcp_session_parts, rowid, id) VALUES ('delete', OLD.seq, OLD.id);
END;
