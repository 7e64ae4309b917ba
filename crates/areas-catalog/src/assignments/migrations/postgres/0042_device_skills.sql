-- Which skills devices get, by the word of people.

CREATE TABLE device_skills (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  item_id TEXT COLLATE "C" NOT NULL,
  -- Its place in the list of its skill.
  seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by_type TEXT COLLATE "C" NOT NULL,
  created_by_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, device_id, item_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id)
);
CREATE UNIQUE INDEX device_skills_by_item ON device_skills (organization_id, item_id, seq);
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON device_skills REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id', 'item_id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON device_skills REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id', 'item_id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON device_skills REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'device_id', 'item_id');
