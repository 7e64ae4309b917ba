-- Which names events had on each of the last days: what tells an author that nothing was ever called that way.

-- Of some attributes that name things and are no content. A value is found by its match key; of its spellings the one that was
-- seen first stands beside it.
CREATE TABLE history_values (
  organization_id TEXT NOT NULL,
  day INTEGER NOT NULL,
  field TEXT NOT NULL,
  value_key TEXT NOT NULL,
  value TEXT NOT NULL,
  event_count INTEGER NOT NULL,
  PRIMARY KEY (organization_id, day, field, value_key),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

-- The number of the last chunk that was counted, and the day of the first count: of what was before nothing is known.
CREATE TABLE history_value_heads (
  organization_id TEXT NOT NULL PRIMARY KEY,
  sequence INTEGER NOT NULL,
  since_day INTEGER NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
