-- A way out of enforcement for one device, for a time. What ended stays for a while: it bounds what comes next.
CREATE TABLE device_bypasses (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  -- A JSON list; an empty one is of every client.
  clients TEXT COLLATE "C" NOT NULL,
  created_by TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL CHECK (expires_at > created_at AND expires_at <= created_at + 86400000),
  ended_at BIGINT,
  end_reason TEXT COLLATE "C",
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);
-- At most one of a device is open.
CREATE UNIQUE INDEX device_bypasses_open ON device_bypasses (organization_id, device_id) WHERE ended_at IS NULL;
CREATE INDEX device_bypasses_of_device ON device_bypasses (organization_id, device_id, id);
CREATE INDEX device_bypasses_of_maker ON device_bypasses (organization_id, created_by, id) WHERE ended_at IS NULL;
CREATE INDEX device_bypasses_by_time ON device_bypasses (organization_id, id) WHERE ended_at IS NULL;
CREATE INDEX device_bypasses_by_end ON device_bypasses (ended_at) WHERE ended_at IS NOT NULL;
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON device_bypasses REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON device_bypasses REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON device_bypasses REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
