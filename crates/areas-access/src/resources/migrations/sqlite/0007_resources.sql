-- Resources, resource gateways, and the credentials of resources. A secret stands in a table of its own, encrypted
-- under a key of its organization; no statement that lists credentials reads it.

CREATE TABLE resource_gateways (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  hostname TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  manager_id TEXT,
  manager_instance TEXT,
  owner_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX resource_gateways_by_name ON resource_gateways (organization_id, name_key);
-- No two are made at the same instant, so that an instant is a place in the list.
CREATE UNIQUE INDEX resource_gateways_by_creation ON resource_gateways (organization_id, created_at);

CREATE TABLE resources (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  name_key TEXT NOT NULL,
  access_name TEXT NOT NULL,
  protocol TEXT NOT NULL,
  upstream_host TEXT NOT NULL,
  upstream_port INTEGER NOT NULL,
  upstream_tls INTEGER NOT NULL,
  upstream_ca_pem TEXT,
  enabled INTEGER NOT NULL,
  transparent_routing INTEGER NOT NULL,
  gateway_id TEXT,
  manager_id TEXT,
  manager_instance TEXT,
  owner_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id),
  FOREIGN KEY (organization_id, gateway_id) REFERENCES resource_gateways (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX resources_by_name ON resources (organization_id, name_key);
CREATE UNIQUE INDEX resources_by_access_name ON resources (organization_id, access_name);
CREATE UNIQUE INDEX resources_by_creation ON resources (organization_id, created_at);
CREATE INDEX resources_by_gateway ON resources (organization_id, gateway_id);

CREATE TABLE resource_credentials (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  is_default INTEGER NOT NULL,
  username TEXT,
  header_name TEXT,
  authentication TEXT,
  management_mode TEXT NOT NULL,
  manager_id TEXT,
  manager_instance TEXT,
  owner_id TEXT,
  external_path TEXT,
  external_field TEXT,
  secret_version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_used_at INTEGER,
  rotated_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, resource_id) REFERENCES resources (organization_id, id)
) STRICT;
CREATE INDEX resource_credentials_by_resource ON resource_credentials (organization_id, resource_id, created_at, id);
CREATE UNIQUE INDEX resource_credentials_default ON resource_credentials (organization_id, resource_id) WHERE is_default = 1;

CREATE TABLE resource_credential_assignments (
  organization_id TEXT NOT NULL,
  credential_id TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  PRIMARY KEY (organization_id, credential_id, subject_kind, subject_id),
  FOREIGN KEY (organization_id, credential_id) REFERENCES resource_credentials (organization_id, id)
) STRICT;
CREATE INDEX resource_credential_assignments_by_subject ON resource_credential_assignments (organization_id, subject_kind, subject_id, resource_id, credential_id);
CREATE INDEX resource_credential_assignments_by_resource ON resource_credential_assignments (organization_id, resource_id, credential_id);

CREATE TABLE resource_credential_secrets (
  organization_id TEXT NOT NULL,
  credential_id TEXT NOT NULL,
  secret_version INTEGER NOT NULL,
  organization_key_version INTEGER NOT NULL,
  wrapped_key BLOB NOT NULL,
  ciphertext BLOB NOT NULL,
  PRIMARY KEY (organization_id, credential_id),
  FOREIGN KEY (organization_id, credential_id) REFERENCES resource_credentials (organization_id, id)
) STRICT;
CREATE INDEX resource_credential_secrets_by_key ON resource_credential_secrets (organization_id, organization_key_version, credential_id);

-- The keys under which the data keys of an organization are wrapped, each under a sealing key of the keys folder.
-- Without these rows nobody can read the organization's secrets any more.
CREATE TABLE organization_keys (
  organization_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  sealing_key_id TEXT NOT NULL,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, version),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

CREATE TABLE resource_credential_checks (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  credential_id TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  created_at INTEGER NOT NULL,
  finished_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, credential_id) REFERENCES resource_credentials (organization_id, id)
) STRICT;
CREATE INDEX resource_credential_checks_by_credential ON resource_credential_checks (organization_id, credential_id);
CREATE INDEX resource_credential_checks_by_creation ON resource_credential_checks (created_at);
