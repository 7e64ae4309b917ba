-- The words that name somebody or something, in the form in which an event's words are compared with them: without blanks
-- at the ends and invisible characters, composed, case folded. SQL cannot fold, so the columns are NULL until the
-- program fills them at its start. name_key stays what it is: names are unique, and are resolved, by that.

ALTER TABLE directory_users ADD COLUMN login_match TEXT COLLATE "C";
ALTER TABLE directory_users ADD COLUMN email_match TEXT COLLATE "C";
CREATE INDEX directory_users_by_login_match ON directory_users (organization_id, login_match);
CREATE INDEX directory_users_by_email_match ON directory_users (organization_id, email_match) WHERE email_match IS NOT NULL;
CREATE INDEX directory_users_unfolded ON directory_users (organization_id, id, valid_from) WHERE login_match IS NULL;

ALTER TABLE directory_groups ADD COLUMN name_match TEXT COLLATE "C";
CREATE INDEX directory_groups_by_match ON directory_groups (organization_id, name_match);
CREATE INDEX directory_groups_unfolded ON directory_groups (organization_id, id, valid_from) WHERE name_match IS NULL;

ALTER TABLE service_accounts ADD COLUMN name_match TEXT COLLATE "C";
CREATE INDEX service_accounts_by_match ON service_accounts (organization_id, name_match);
CREATE INDEX service_accounts_unfolded ON service_accounts (organization_id, id) WHERE name_match IS NULL;

ALTER TABLE resources ADD COLUMN name_match TEXT COLLATE "C";
CREATE INDEX resources_by_match ON resources (organization_id, name_match);
CREATE INDEX resources_unfolded ON resources (organization_id, id) WHERE name_match IS NULL;

-- The words of deleted records, for 90 days: a guard that names them holds for as long.
CREATE TABLE ended_words (
  organization_id TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  record_id TEXT COLLATE "C" NOT NULL,
  match_key TEXT COLLATE "C" NOT NULL,
  word TEXT COLLATE "C" NOT NULL,
  ended_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, kind, record_id, match_key),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX ended_words_by_match ON ended_words (organization_id, match_key);
CREATE INDEX ended_words_by_end ON ended_words (ended_at);

-- Words of telemetry that mean a user. user_id may name somebody who is deleted; the words go 90 days after her.
CREATE TABLE identity_mappings (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  -- The place in lists.
  seq BIGINT NOT NULL,
  match_key TEXT COLLATE "C" NOT NULL,
  word TEXT COLLATE "C" NOT NULL,
  user_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE UNIQUE INDEX identity_mappings_by_match ON identity_mappings (organization_id, match_key);
CREATE UNIQUE INDEX identity_mappings_by_seq ON identity_mappings (organization_id, seq);
CREATE INDEX identity_mappings_by_user ON identity_mappings (organization_id, user_id);

-- How many events of an hour had a word of a kind that names nobody ('none') or several. At most ten rows an hour.
CREATE TABLE unresolved_events (
  organization_id TEXT COLLATE "C" NOT NULL,
  -- Hours since the Unix epoch.
  hour BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL,
  events BIGINT NOT NULL,
  PRIMARY KEY (organization_id, hour, kind, outcome),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX unresolved_events_by_hour ON unresolved_events (hour);
