-- Resources, resource gateways, and the credentials of resources. A secret stands in a table of its own, encrypted
-- under a key of its organization; no statement that lists credentials reads it.

CREATE TABLE resource_gateways (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  hostname TEXT COLLATE "C" NOT NULL,
  enabled BOOLEAN NOT NULL,
  manager_id TEXT COLLATE "C",
  manager_instance TEXT COLLATE "C",
  owner_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX resource_gateways_by_name ON resource_gateways (organization_id, name_key);
-- No two are made at the same instant, so that an instant is a place in the list.
CREATE UNIQUE INDEX resource_gateways_by_creation ON resource_gateways (organization_id, created_at);

CREATE TABLE resources (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  access_name TEXT COLLATE "C" NOT NULL,
  protocol TEXT COLLATE "C" NOT NULL,
  upstream_host TEXT COLLATE "C" NOT NULL,
  upstream_port BIGINT NOT NULL,
  upstream_tls BOOLEAN NOT NULL,
  upstream_ca_pem TEXT COLLATE "C",
  enabled BOOLEAN NOT NULL,
  transparent_routing BOOLEAN NOT NULL,
  gateway_id TEXT COLLATE "C",
  manager_id TEXT COLLATE "C",
  manager_instance TEXT COLLATE "C",
  owner_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id),
  FOREIGN KEY (organization_id, gateway_id) REFERENCES resource_gateways (organization_id, id)
);
CREATE UNIQUE INDEX resources_by_name ON resources (organization_id, name_key);
CREATE UNIQUE INDEX resources_by_access_name ON resources (organization_id, access_name);
CREATE UNIQUE INDEX resources_by_creation ON resources (organization_id, created_at);
CREATE INDEX resources_by_gateway ON resources (organization_id, gateway_id);

CREATE TABLE resource_credentials (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  resource_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  is_default BOOLEAN NOT NULL,
  username TEXT COLLATE "C",
  header_name TEXT COLLATE "C",
  authentication TEXT COLLATE "C",
  management_mode TEXT COLLATE "C" NOT NULL,
  manager_id TEXT COLLATE "C",
  manager_instance TEXT COLLATE "C",
  owner_id TEXT COLLATE "C",
  external_path TEXT COLLATE "C",
  external_field TEXT COLLATE "C",
  secret_version BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  last_used_at BIGINT,
  rotated_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, resource_id) REFERENCES resources (organization_id, id)
);
CREATE INDEX resource_credentials_by_resource ON resource_credentials (organization_id, resource_id, created_at, id);
CREATE UNIQUE INDEX resource_credentials_default ON resource_credentials (organization_id, resource_id) WHERE is_default;

CREATE TABLE resource_credential_assignments (
  organization_id TEXT COLLATE "C" NOT NULL,
  credential_id TEXT COLLATE "C" NOT NULL,
  subject_kind TEXT COLLATE "C" NOT NULL,
  subject_id TEXT COLLATE "C" NOT NULL,
  resource_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, credential_id, subject_kind, subject_id),
  FOREIGN KEY (organization_id, credential_id) REFERENCES resource_credentials (organization_id, id)
);
CREATE INDEX resource_credential_assignments_by_subject ON resource_credential_assignments (organization_id, subject_kind, subject_id, resource_id, credential_id);
CREATE INDEX resource_credential_assignments_by_resource ON resource_credential_assignments (organization_id, resource_id, credential_id);

CREATE TABLE resource_credential_secrets (
  organization_id TEXT COLLATE "C" NOT NULL,
  credential_id TEXT COLLATE "C" NOT NULL,
  secret_version BIGINT NOT NULL,
  organization_key_version BIGINT NOT NULL,
  wrapped_key BYTEA NOT NULL,
  ciphertext BYTEA NOT NULL,
  PRIMARY KEY (organization_id, credential_id),
  FOREIGN KEY (organization_id, credential_id) REFERENCES resource_credentials (organization_id, id)
);
CREATE INDEX resource_credential_secrets_by_key ON resource_credential_secrets (organization_id, organization_key_version, credential_id);

-- The keys under which the data keys of an organization are wrapped, each under a sealing key of the keys folder.
-- Without these rows nobody can read the organization's secrets any more.
CREATE TABLE organization_keys (
  organization_id TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  sealing_key_id TEXT COLLATE "C" NOT NULL,
  sealed BYTEA NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, version),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);

CREATE TABLE resource_credential_checks (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  credential_id TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  reason TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  finished_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, credential_id) REFERENCES resource_credentials (organization_id, id)
);
CREATE INDEX resource_credential_checks_by_credential ON resource_credential_checks (organization_id, credential_id);
CREATE INDEX resource_credential_checks_by_creation ON resource_credential_checks (created_at);
