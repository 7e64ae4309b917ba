-- OAuth: clients, who users are at their issuers, and what tokens are asked for with. Of secrets there are digests alone.

-- Clients that an admin registered. A client that is known by the URL of its document has no row.
CREATE TABLE oauth_clients (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  -- JSON lists of texts.
  redirect_uris TEXT COLLATE "C" NOT NULL,
  grant_types TEXT COLLATE "C" NOT NULL,
  -- 'none' or 'private_key_jwt'; then one of the two behind it.
  auth_method TEXT COLLATE "C" NOT NULL,
  jwks TEXT COLLATE "C",
  jwks_uri TEXT COLLATE "C",
  scopes TEXT COLLATE "C" NOT NULL,
  service_account_id TEXT COLLATE "C",
  blocked_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX oauth_clients_by_id ON oauth_clients (id);
CREATE UNIQUE INDEX oauth_clients_by_name ON oauth_clients (organization_id, name_key);
CREATE INDEX oauth_clients_by_creation ON oauth_clients (organization_id, created_at, id);

-- Which user a subject of an issuer is.
CREATE TABLE oauth_identities (
  organization_id TEXT COLLATE "C" NOT NULL,
  issuer TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, issuer, subject),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX oauth_identities_by_user ON oauth_identities (organization_id, user_id);

CREATE TABLE oauth_codes (
  organization_id TEXT COLLATE "C" NOT NULL,
  -- SHA-256 of the code.
  digest BYTEA NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  client_name TEXT COLLATE "C",
  redirect_uri TEXT COLLATE "C" NOT NULL,
  challenge TEXT COLLATE "C" NOT NULL,
  scopes TEXT COLLATE "C" NOT NULL,
  audiences TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  user_display TEXT COLLATE "C" NOT NULL,
  jkt TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  -- Once it was used: when, and for which session. A used code is kept as long as the session may live.
  used_at BIGINT,
  session_id TEXT COLLATE "C",
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX oauth_codes_by_digest ON oauth_codes (digest);
CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);

CREATE TABLE oauth_refresh_tokens (
  organization_id TEXT COLLATE "C" NOT NULL,
  lookup_id TEXT COLLATE "C" NOT NULL,
  mac BYTEA NOT NULL,
  pepper_id TEXT COLLATE "C" NOT NULL,
  session_id TEXT COLLATE "C" NOT NULL,
  -- How the session is found by access tokens.
  grant_key TEXT COLLATE "C" NOT NULL,
  -- Counts the rotations of the session.
  generation BIGINT NOT NULL,
  client_id TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  scopes TEXT COLLATE "C" NOT NULL,
  audiences TEXT COLLATE "C" NOT NULL,
  jkt TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  idle_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  superseded_at BIGINT,
  PRIMARY KEY (organization_id, lookup_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX oauth_refresh_tokens_by_lookup ON oauth_refresh_tokens (lookup_id);
CREATE INDEX oauth_refresh_tokens_by_session ON oauth_refresh_tokens (organization_id, session_id, generation);
CREATE INDEX oauth_refresh_tokens_by_end ON oauth_refresh_tokens (ends_at);

-- Assertions that served once: the digest of purpose, issuer and jti, until they have run out.
CREATE TABLE oauth_assertions (
  organization_id TEXT COLLATE "C" NOT NULL,
  digest BYTEA NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, digest),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX oauth_assertions_by_digest ON oauth_assertions (digest);
CREATE INDEX oauth_assertions_by_expiry ON oauth_assertions (expires_at);
