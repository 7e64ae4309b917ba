-- How far the clients of each device are guarded, by the device's own word, and by which bundle it judges.

CREATE TABLE device_coverage (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  said_at INTEGER NOT NULL,
  -- JSON: what it said of each client.
  clients TEXT NOT NULL,
  -- JSON: the bundle that it holds.
  bundle TEXT,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;

CREATE TABLE device_coverage_levels (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  client TEXT NOT NULL,
  level TEXT NOT NULL,
  -- The level that was known when somebody was last told of a drop, or a later one that is higher.
  told_level TEXT NOT NULL,
  told_at INTEGER,
  PRIMARY KEY (organization_id, device_id, client),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;
