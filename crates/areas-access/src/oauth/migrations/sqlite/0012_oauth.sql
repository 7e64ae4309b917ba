-- OAuth: clients, who users are at their issuers, and what tokens are asked for with. Of secrets there are digests alone.

-- Clients that an admin registered. A client that is known by the URL of its document has no row.
CREATE TABLE oauth_clients (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  -- JSON lists of texts.
  redirect_uris TEXT NOT NULL,
  grant_types TEXT NOT NULL,
  -- 'none' or 'private_key_jwt'; then one of the two behind it.
  auth_method TEXT NOT NULL,
  jwks TEXT,
  jwks_uri TEXT,
  scopes TEXT NOT NULL,
  service_account_id TEXT,
  blocked_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX oauth_clients_by_id ON oauth_clients (id);
CREATE UNIQUE INDEX oauth_clients_by_name ON oauth_clients (organization_id, name_key);
CREATE INDEX oauth_clients_by_creation ON oauth_clients (organization_id, created_at, id);

-- Which user a subject of an issuer is.
CREATE TABLE oauth_identities (
  organization_id TEXT NOT NULL,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, issuer, subject),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX oauth_identities_by_user ON oauth_identities (organization_id, user_id);

CREATE TABLE oauth_codes (
  organization_id TEXT NOT NULL,
  -- SHA-256 of the code.
  digest BLOB NOT NULL,
  client_id TEXT NOT NULL,
  client_name TEXT,
  redirect_uri TEXT NOT NULL,
  challenge TEXT NOT NULL,
  scopes TEXT NOT NULL,
  audiences TEXT NOT NULL,
  user_id TEXT NOT NULL,
  user_display TEXT NOT NULL,
  jkt TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- Once it was used: when, and for which session. A used code is kept as long as the session may live.
  used_at INTEGER,
  session_id TEXT,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX oauth_codes_by_digest ON oauth_codes (digest);
CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);

CREATE TABLE oauth_refresh_tokens (
  organization_id TEXT NOT NULL,
  lookup_id TEXT NOT NULL,
  mac BLOB NOT NULL,
  pepper_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  -- How the session is found by access tokens.
  grant_key TEXT NOT NULL,
  -- Counts the rotations of the session.
  generation INTEGER NOT NULL,
  client_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  scopes TEXT NOT NULL,
  audiences TEXT NOT NULL,
  jkt TEXT,
  created_at INTEGER NOT NULL,
  idle_at INTEGER NOT NULL,
  ends_at INTEGER NOT NULL,
  superseded_at INTEGER,
  PRIMARY KEY (organization_id, lookup_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX oauth_refresh_tokens_by_lookup ON oauth_refresh_tokens (lookup_id);
CREATE INDEX oauth_refresh_tokens_by_session ON oauth_refresh_tokens (organization_id, session_id, generation);
CREATE INDEX oauth_refresh_tokens_by_end ON oauth_refresh_tokens (ends_at);

-- Assertions that served once: the digest of purpose, issuer and jti, until they have run out.
CREATE TABLE oauth_assertions (
  organization_id TEXT NOT NULL,
  digest BLOB NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX oauth_assertions_by_digest ON oauth_assertions (digest);
CREATE INDEX oauth_assertions_by_expiry ON oauth_assertions (expires_at);
