-- Sessions that tokens of one subject and client share, what clients can be granted at most, and links as records.

-- The key of the session of the token that was exchanged for this one: where that was revoked, this one has ended.
ALTER TABLE mcp_sessions ADD COLUMN parent_grant TEXT COLLATE "C";
CREATE INDEX mcp_sessions_by_parent ON mcp_sessions (organization_id, parent_grant) WHERE parent_grant IS NOT NULL;

-- Names of actors follow those whom they name, so that two of them can come to be the same.
DROP INDEX mcp_session_actors_by_content;
CREATE INDEX mcp_session_actors_by_content ON mcp_session_actors (organization_id, service_account_id, console_user_id, display);

-- What a client can be granted at most, whatever its account may do later: written when it is made, and when somebody who
-- holds that much says so. NULL until the first start of a program that knows it.
ALTER TABLE oauth_clients ADD COLUMN ceiling TEXT COLLATE "C";

-- How often a subject token was exchanged: the digest of what makes it the one, until it has run out.
CREATE TABLE oauth_exchanges (
  organization_id TEXT COLLATE "C" NOT NULL,
  digest BYTEA NOT NULL,
  times BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX oauth_exchanges_by_expiry ON oauth_exchanges (expires_at);

CREATE INDEX oauth_identities_by_issuer ON oauth_identities (organization_id, issuer, user_id);
CREATE INDEX oauth_codes_by_user ON oauth_codes (organization_id, user_id) WHERE used_at IS NULL;

-- The last link of a user and issuer that was taken away or replaced, for 90 days.
CREATE TABLE oauth_former_identities (
  organization_id TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  ended_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, issuer, user_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX oauth_former_identities_by_end ON oauth_former_identities (ended_at);

-- Users whose login name was changed, for 90 days: who comes under the new one may be somebody new.
CREATE TABLE oauth_renamed_users (
  organization_id TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  renamed_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX oauth_renamed_users_by_time ON oauth_renamed_users (renamed_at);

-- Who may be linked anew, and until when; '' is every user of the issuer.
CREATE TABLE oauth_relinkings (
  organization_id TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  allowed_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, issuer, user_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX oauth_relinkings_by_expiry ON oauth_relinkings (expires_at);
