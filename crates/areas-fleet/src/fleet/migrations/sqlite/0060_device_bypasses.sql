-- A way out of enforcement for one device, for a time. What ended stays for a while: it bounds what comes next.
CREATE TABLE device_bypasses (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  -- A JSON list; an empty one is of every client.
  clients TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL CHECK (expires_at > created_at AND expires_at <= created_at + 86400000),
  ended_at INTEGER,
  end_reason TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
) STRICT;
-- At most one of a device is open.
CREATE UNIQUE INDEX device_bypasses_open ON device_bypasses (organization_id, device_id) WHERE ended_at IS NULL;
CREATE INDEX device_bypasses_of_device ON device_bypasses (organization_id, device_id, id);
CREATE INDEX device_bypasses_of_maker ON device_bypasses (organization_id, created_by, id) WHERE ended_at IS NULL;
CREATE INDEX device_bypasses_by_time ON device_bypasses (organization_id, id) WHERE ended_at IS NULL;
CREATE INDEX device_bypasses_by_end ON device_bypasses (ended_at) WHERE ended_at IS NOT NULL;
