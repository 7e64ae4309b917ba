-- What devices say that their AI clients have configured: names, kinds and fingerprints, and no value of a file.

CREATE TABLE inventory_scans (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  -- The digest of the name that the device gave it.
  scan_id TEXT COLLATE "C" NOT NULL,
  -- The highest count of its scans that the device named.
  counter BIGINT,
  -- The device's clock, kept beside and deciding nothing.
  started_at BIGINT NOT NULL,
  finished_at BIGINT NOT NULL,
  -- Observations of sections for which there was no room.
  not_kept BIGINT NOT NULL,
  received_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);

CREATE TABLE inventory_sections (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  client TEXT COLLATE "C" NOT NULL,
  account TEXT COLLATE "C" NOT NULL,
  -- Of the section as it was sent; empty where not all of it is kept.
  digest TEXT COLLATE "C" NOT NULL,
  is_complete BOOLEAN NOT NULL,
  -- Observations for which there was no room.
  not_kept BIGINT NOT NULL,
  faults TEXT COLLATE "C" NOT NULL,
  received_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, device_id, client, account),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);

CREATE TABLE inventory_servers (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  -- Name and key, in lower case.
  search TEXT COLLATE "C" NOT NULL,
  -- 'approved', 'denied', 'shadow' or 'builtin'; no report changes it.
  standing TEXT COLLATE "C" NOT NULL,
  standing_at BIGINT NOT NULL,
  -- The end of an approval; every approval has one.
  standing_until BIGINT,
  standing_by TEXT COLLATE "C",
  -- The device that reported it first.
  found_on TEXT COLLATE "C" NOT NULL,
  first_seen_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX inventory_servers_by_key ON inventory_servers (organization_id, key);
CREATE UNIQUE INDEX inventory_servers_by_seq ON inventory_servers (organization_id, seq);

CREATE TABLE inventory_assets (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  -- 'skill' or 'extension'.
  kind TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  -- The device that reported it first.
  found_on TEXT COLLATE "C" NOT NULL,
  first_seen_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX inventory_assets_by_key ON inventory_assets (organization_id, kind, key);
CREATE UNIQUE INDEX inventory_assets_by_seq ON inventory_assets (organization_id, seq);

CREATE TABLE inventory_observations (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  client TEXT COLLATE "C" NOT NULL,
  account TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  -- What makes it the same one in the next scan of the section.
  ident TEXT COLLATE "C" NOT NULL,
  server_id TEXT COLLATE "C",
  asset_id TEXT COLLATE "C",
  transport TEXT COLLATE "C",
  version_pin TEXT COLLATE "C",
  is_weak BOOLEAN NOT NULL,
  -- As the wire has it.
  facts TEXT COLLATE "C" NOT NULL,
  first_seen_at BIGINT NOT NULL,
  removed_at BIGINT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id),
  FOREIGN KEY (organization_id, server_id) REFERENCES inventory_servers (organization_id, id),
  FOREIGN KEY (organization_id, asset_id) REFERENCES inventory_assets (organization_id, id)
);
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
