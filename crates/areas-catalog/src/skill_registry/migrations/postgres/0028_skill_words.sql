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
