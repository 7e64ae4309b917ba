-- Sessions that tokens of one subject and client share, what clients can be granted at most, and links as records.

-- The key of the session of the token that was exchanged for this one: where that was revoked, this one has ended.
ALTER TABLE mcp_sessions ADD COLUMN parent_grant TEXT;
CREATE INDEX mcp_sessions_by_parent ON mcp_sessions (organization_id, parent_grant) WHERE parent_grant IS NOT NULL;

-- A session lists more scopes when a token of its has more: the counts follow its kind as well.
DROP TRIGGER mcp_sessions_count_update;
CREATE TRIGGER mcp_sessions_count_update AFTER UPDATE OF state, kind ON mcp_sessions WHEN OLD.state <> NEW.state OR OLD.kind <> NEW.kind BEGIN
  INSERT INTO mcp_session_counts (organization_id, mcp_client_id, kind, state, sessions)
  SELECT NEW.organization_id, c.client, s.kind, s.state, s.n
  FROM (SELECT '' AS client UNION ALL SELECT NEW.mcp_client_id) c, (SELECT OLD.kind AS kind, OLD.state AS state, -1 AS n UNION ALL SELECT NEW.kind, NEW.state, 1) s WHERE c.client IS NOT NULL
  ON CONFLICT (organization_id, mcp_client_id, kind, state) DO UPDATE SET sessions = sessions + excluded.sessions;
END;

-- Names of actors follow those whom they name, so that two of them can come to be the same.
DROP INDEX mcp_session_actors_by_content;
CREATE INDEX mcp_session_actors_by_content ON mcp_session_actors (organization_id, service_account_id, console_user_id, display);
CREATE TRIGGER mcp_session_actor_parts_update AFTER UPDATE OF search ON mcp_session_actors BEGIN
  DELETE FROM mcp_session_actor_parts WHERE rowid = OLD.actor;
  INSERT INTO mcp_session_actor_parts (rowid, search) VALUES (NEW.actor, NEW.search);
END;

-- What a client can be granted at most, whatever its account may do later: written when it is made, and when somebody who
-- holds that much says so. NULL until the first start of a program that knows it.
ALTER TABLE oauth_clients ADD COLUMN ceiling TEXT;

-- How often a subject token was exchanged: the digest of what makes it the one, until it has run out.
CREATE TABLE oauth_exchanges (
  organization_id TEXT NOT NULL,
  digest BLOB NOT NULL,
  times INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX oauth_exchanges_by_expiry ON oauth_exchanges (expires_at);

CREATE INDEX oauth_identities_by_issuer ON oauth_identities (organization_id, issuer, user_id);
CREATE INDEX oauth_codes_by_user ON oauth_codes (organization_id, user_id) WHERE used_at IS NULL;

-- The last link of a user and issuer that was taken away or replaced, for 90 days.
CREATE TABLE oauth_former_identities (
  organization_id TEXT NOT NULL,
  issuer TEXT NOT NULL,
  user_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  ended_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, issuer, user_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX oauth_former_identities_by_end ON oauth_former_identities (ended_at);

-- Users whose login name was changed, for 90 days: who comes under the new one may be somebody new.
CREATE TABLE oauth_renamed_users (
  organization_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  renamed_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX oauth_renamed_users_by_time ON oauth_renamed_users (renamed_at);

-- Who may be linked anew, and until when; '' is every user of the issuer.
CREATE TABLE oauth_relinkings (
  organization_id TEXT NOT NULL,
  issuer TEXT NOT NULL,
  user_id TEXT NOT NULL,
  allowed_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, issuer, user_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX oauth_relinkings_by_expiry ON oauth_relinkings (expires_at);
