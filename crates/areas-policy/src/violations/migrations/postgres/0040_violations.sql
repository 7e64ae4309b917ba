-- How many decisions of each day did not simply allow, by policy, subject and tool, so that nobody reads the history to count them; and what
-- people said of such a decision.

CREATE TABLE violation_days (
  organization_id TEXT COLLATE "C" NOT NULL,
  -- 'all', 'policy', 'subject' or 'tool'; with '_rest' behind it what a day has no room to name.
  dimension TEXT COLLATE "C" NOT NULL,
  -- Days since the Unix epoch, UTC.
  day BIGINT NOT NULL,
  -- An id or a tool as the event had it; empty where it had none, and of 'all' and of what is not named.
  name TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  mode TEXT COLLATE "C" NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  event_count BIGINT NOT NULL,
  PRIMARY KEY (organization_id, dimension, day, name, action, mode, source),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX violation_days_by_day ON violation_days (organization_id, day);

-- The number of the last chunk that was counted, the day of the first count, and how many chunks could not be counted since.
CREATE TABLE violation_heads (
  organization_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  sequence BIGINT NOT NULL,
  since_day BIGINT NOT NULL,
  uncounted_chunks BIGINT NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);

CREATE TABLE violation_feedback (
  organization_id TEXT COLLATE "C" NOT NULL,
  event_id TEXT COLLATE "C" NOT NULL,
  -- Whose event it was, and who says it: 'user' or 'service_account'.
  subject_kind TEXT COLLATE "C" NOT NULL,
  subject_id TEXT COLLATE "C" NOT NULL,
  text TEXT COLLATE "C" NOT NULL,
  event_at BIGINT NOT NULL,
  given_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, event_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX violation_feedback_by_event ON violation_feedback (organization_id, event_at);

CREATE TABLE violation_feedback_policies (
  organization_id TEXT COLLATE "C" NOT NULL,
  policy_id TEXT COLLATE "C" NOT NULL,
  event_id TEXT COLLATE "C" NOT NULL,
  event_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, policy_id, event_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX violation_feedback_policies_by_event ON violation_feedback_policies (organization_id, event_at);
