-- Where the numbering of an organization's events began anew, because the store went back: a restore, and whatever else gives up
-- events that somebody may have read. Without a row an organization is in its first epoch.
CREATE TABLE event_epochs (
  organization_id TEXT COLLATE "C" NOT NULL,
  ordinal BIGINT NOT NULL,
  epoch TEXT COLLATE "C" NOT NULL,
  -- The last sequence that this epoch shares with those before it.
  begins_after BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, ordinal)
);
