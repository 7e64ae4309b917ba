-- Which skills devices get, by the word of people.

CREATE TABLE device_skills (
  organization_id TEXT NOT NULL,
  device_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  -- Its place in the list of its skill.
  seq INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by_type TEXT NOT NULL,
  created_by_id TEXT NOT NULL,
  PRIMARY KEY (organization_id, device_id, item_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id)
) STRICT;
CREATE UNIQUE INDEX device_skills_by_item ON device_skills (organization_id, item_id, seq);
