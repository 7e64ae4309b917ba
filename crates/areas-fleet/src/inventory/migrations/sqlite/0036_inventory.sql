-- What devices say that their AI clients have configured: names, kinds and fingerprints, and no value of a file.

CREATE TABLE inventory_scans (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  -- The digest of the name that the device gave it.
  scan_id TEXT NOT NULL,
  -- The highest count of its scans that the device named.
  counter INTEGER,
  -- The device's clock, kept beside and deciding nothing.
  started_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  -- Observations of sections for which there was no room.
  not_kept INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;

CREATE TABLE inventory_sections (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  client TEXT NOT NULL,
  account TEXT NOT NULL,
  -- Of the section as it was sent; empty where not all of it is kept.
  digest TEXT NOT NULL,
  is_complete INTEGER NOT NULL,
  -- Observations for which there was no room.
  not_kept INTEGER NOT NULL,
  faults TEXT NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, device_id, client, account),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;

CREATE TABLE inventory_servers (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  key TEXT NOT NULL,
  name TEXT NOT NULL,
  -- Name and key, in lower case.
  search TEXT NOT NULL,
  -- 'approved', 'denied', 'shadow' or 'builtin'; no report changes it.
  standing TEXT NOT NULL,
  standing_at INTEGER NOT NULL,
  -- The end of an approval; every approval has one.
  standing_until INTEGER,
  standing_by TEXT,
  -- The device that reported it first.
  found_on TEXT NOT NULL,
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX inventory_servers_by_key ON inventory_servers (organization_id, key);
CREATE UNIQUE INDEX inventory_servers_by_seq ON inventory_servers (organization_id, seq);

CREATE TABLE inventory_assets (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  -- 'skill' or 'extension'.
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  name TEXT NOT NULL,
  -- The device that reported it first.
  found_on TEXT NOT NULL,
  first_seen_at INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE UNIQUE INDEX inventory_assets_by_key ON inventory_assets (organization_id, kind, key);
CREATE UNIQUE INDEX inventory_assets_by_seq ON inventory_assets (organization_id, seq);

CREATE TABLE inventory_observations (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  device_id TEXT NOT NULL,
  client TEXT NOT NULL,
  account TEXT NOT NULL,
  kind TEXT NOT NULL,
  -- What makes it the same one in the next scan of the section.
  ident TEXT NOT NULL,
  server_id TEXT,
  asset_id TEXT,
  transport TEXT,
  version_pin TEXT,
  is_weak INTEGER NOT NULL,
  -- As the wire has it.
  facts TEXT NOT NULL,
  first_seen_at INTEGER NOT NULL,
  removed_at INTEGER,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id),
  FOREIGN KEY (organization_id, server_id) REFERENCES inventory_servers (organization_id, id),
  FOREIGN KEY (organization_id, asset_id) REFERENCES inventory_assets (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX inventory_observations_by_seq ON inventory_observations (organization_id, seq);
CREATE UNIQUE INDEX inventory_observations_by_section ON inventory_observations (organization_id, device_id, client, account, ident);
CREATE INDEX inventory_observations_by_server ON inventory_observations (organization_id, server_id, seq);
CREATE INDEX inventory_observations_by_asset ON inventory_observations (organization_id, asset_id, seq);
CREATE INDEX inventory_observations_by_removal ON inventory_observations (removed_at);
-- Where something is now, as lists and numbers ask for it.
CREATE INDEX inventory_observations_there_by_server ON inventory_observations (organization_id, server_id, client, device_id, account, is_weak, transport, version_pin) WHERE removed_at IS NULL;
CREATE INDEX inventory_observations_there_by_asset ON inventory_observations (organization_id, asset_id, device_id) WHERE removed_at IS NULL;
CREATE INDEX inventory_observations_gone ON inventory_observations (organization_id, device_id, removed_at, id) WHERE removed_at IS NOT NULL;
CREATE INDEX inventory_servers_by_sight ON inventory_servers (last_seen_at);
CREATE INDEX inventory_assets_by_sight ON inventory_assets (last_seen_at);
