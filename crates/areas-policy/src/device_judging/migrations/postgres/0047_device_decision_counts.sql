-- How often something passed on a device without a reason, by hours: of that devices tell no events.

CREATE TABLE device_decision_counts (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  -- When the hour begins.
  hour BIGINT NOT NULL,
  -- The id of the device's own user, or the word that was told; empty where none was, and where there was no room for names.
  user_word TEXT COLLATE "C" NOT NULL,
  client TEXT COLLATE "C" NOT NULL,
  tool TEXT COLLATE "C" NOT NULL,
  passed BIGINT NOT NULL,
  PRIMARY KEY (organization_id, device_id, hour, user_word, client, tool),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX device_decision_counts_by_seq ON device_decision_counts (organization_id, device_id, seq);
CREATE INDEX device_decision_counts_by_hour ON device_decision_counts (hour);
