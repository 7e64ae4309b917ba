-- Where the numbering of an organization's events began anew, because the store went back: a restore, and whatever else gives up
-- events that somebody may have read. Without a row an organization is in its first epoch.
CREATE TABLE event_epochs (
  organization_id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  epoch TEXT NOT NULL,
  -- The last sequence that this epoch shares with those before it.
  begins_after INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, ordinal)
) STRICT;
