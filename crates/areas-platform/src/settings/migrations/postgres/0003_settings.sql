-- The automation settings of an organization: one JSON document; an absent row is the factory state.

CREATE TABLE automation_settings (
  organization_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  document TEXT COLLATE "C" NOT NULL,
  updated_at BIGINT NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
