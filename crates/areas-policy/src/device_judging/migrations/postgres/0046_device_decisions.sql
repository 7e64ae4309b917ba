-- How far each device has told what it judged. What it told stands in the history.

CREATE TABLE device_decision_chains (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  -- The number of the entry that comes next, and the hash of the one before it: 64 hexadecimal digits.
  next_entry BIGINT NOT NULL,
  head TEXT COLLATE "C" NOT NULL,
  -- The taking that wrote this.
  taking TEXT COLLATE "C" NOT NULL,
  taken_at BIGINT NOT NULL,
  -- Since the first entry.
  events BIGINT NOT NULL,
  passed BIGINT NOT NULL,
  dropped BIGINT NOT NULL,
  refused BIGINT NOT NULL,
  foreign_events BIGINT NOT NULL,
  mismatches BIGINT NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
