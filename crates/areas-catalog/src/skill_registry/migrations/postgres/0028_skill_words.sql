-- What a skill is called beside its name: by its SKILL.md and its folder. Events name skills so; rows only come.

CREATE TABLE skill_words (
  organization_id TEXT COLLATE "C" NOT NULL,
  item_id TEXT COLLATE "C" NOT NULL,
  match_key TEXT COLLATE "C" NOT NULL,
  word TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, item_id, match_key),
  FOREIGN KEY (organization_id, item_id) REFERENCES skill_items (organization_id, id)
);
CREATE INDEX skill_words_by_key ON skill_words (organization_id, match_key);
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON skill_words REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'item_id', 'match_key');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON skill_words REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'item_id', 'match_key');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON skill_words REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'item_id', 'match_key');
