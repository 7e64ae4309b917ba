-- Addresses that a file gives to users while others of the directory have them.

-- Of a staged version: 1 if another live version has one of its words, to be judged when the file is applied; 2 if its address
-- is to be taken from it then. It is gone when the import is.
ALTER TABLE directory_users ADD COLUMN word_clash BIGINT;
CREATE INDEX directory_users_clashing ON directory_users (organization_id, id) WHERE word_clash IS NOT NULL;

CREATE TABLE directory_import_warnings (
  organization_id TEXT COLLATE "C" NOT NULL,
  import_id TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  -- NULL: the API has renamed the user since the line arrived.
  line BIGINT,
  user_id TEXT COLLATE "C" NOT NULL,
  path TEXT COLLATE "C" NOT NULL,
  message TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, import_id, position),
  FOREIGN KEY (organization_id, import_id) REFERENCES directory_imports (organization_id, id)
);
