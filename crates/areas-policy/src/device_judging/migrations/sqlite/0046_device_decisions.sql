-- How far each device has told what it judged. What it told stands in the history.

CREATE TABLE device_decision_chains (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  -- The number of the entry that comes next, and the hash of the one before it: 64 hexadecimal digits.
  next_entry INTEGER NOT NULL,
  head TEXT NOT NULL,
  -- The taking that wrote this.
  taking TEXT NOT NULL,
  taken_at INTEGER NOT NULL,
  -- Since the first entry.
  events INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  foreign_events INTEGER NOT NULL,
  mismatches INTEGER NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
