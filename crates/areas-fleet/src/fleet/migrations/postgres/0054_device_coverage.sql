-- How far the clients of each device are guarded, by the device's own word, and by which bundle it judges.

CREATE TABLE device_coverage (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  said_at BIGINT NOT NULL,
  -- JSON: what it said of each client.
  clients TEXT COLLATE "C" NOT NULL,
  -- JSON: the bundle that it holds.
  bundle TEXT COLLATE "C",
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);

CREATE TABLE device_coverage_levels (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  client TEXT COLLATE "C" NOT NULL,
  level TEXT COLLATE "C" NOT NULL,
  -- The level that was known when somebody was last told of a drop, or a later one that is higher.
  told_level TEXT COLLATE "C" NOT NULL,
  told_at BIGINT,
  PRIMARY KEY (organization_id, device_id, client),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);
