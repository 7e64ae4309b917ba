-- By which evidence a server is known beside configurations: what events named, by the name that a person's client has for it.

-- Under which name a configuration has a server, and since when it is there without a break. Of what was reported before, both are
-- known once its section is reported again, which is asked for.
ALTER TABLE inventory_observations ADD COLUMN configured_name TEXT;
ALTER TABLE inventory_observations ADD COLUMN bound_at INTEGER;
-- What of an observation is compared with the next scan, and which taking of a report writes.
ALTER TABLE inventory_observations ADD COLUMN facts_digest TEXT;
ALTER TABLE inventory_scans ADD COLUMN taking TEXT;
UPDATE inventory_sections SET digest = '';
-- A page of a device, how much it has, and how much it made known: none of it by the organization's rows.
CREATE INDEX inventory_observations_there_by_device ON inventory_observations (organization_id, device_id, seq) WHERE removed_at IS NULL;
CREATE INDEX inventory_servers_by_finder ON inventory_servers (organization_id, found_on);
CREATE INDEX inventory_assets_by_finder ON inventory_assets (organization_id, found_on);

CREATE TABLE inventory_uses (
  organization_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  -- The id of the user; empty where events name nobody whom the directory knows.
  user_id TEXT NOT NULL,
  -- 'hook', 'gateway' or 'telemetry'.
  evidence TEXT NOT NULL,
  name TEXT NOT NULL,
  -- What the user's devices had under this name when the events were counted; empty where they had nothing.
  server_id TEXT NOT NULL,
  -- 'sole', 'candidate' or 'unresolved'.
  certainty TEXT NOT NULL,
  events INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, user_id, evidence, name, server_id, certainty),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX inventory_uses_by_seq ON inventory_uses (organization_id, seq);
CREATE INDEX inventory_uses_by_server ON inventory_uses (organization_id, server_id, last_at);
CREATE INDEX inventory_uses_by_last ON inventory_uses (last_at);

-- What events named and nobody has joined with machines yet.
CREATE TABLE inventory_use_queue (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  evidence TEXT NOT NULL,
  name TEXT NOT NULL,
  events INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

-- How much of what events named there was no room for.
CREATE TABLE inventory_use_bounds (
  organization_id TEXT NOT NULL PRIMARY KEY,
  not_kept INTEGER NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

-- What other scanners found, as somebody brought it.
CREATE TABLE inventory_imported (
  organization_id TEXT NOT NULL,
  server_id TEXT NOT NULL,
  source TEXT NOT NULL,
  name TEXT NOT NULL,
  imported_by TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, server_id, source),
  FOREIGN KEY (organization_id, server_id) REFERENCES inventory_servers (organization_id, id)
) STRICT;
CREATE INDEX inventory_imported_by_last ON inventory_imported (last_at);
