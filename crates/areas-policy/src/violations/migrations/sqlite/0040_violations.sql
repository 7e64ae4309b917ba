-- How many decisions of each day did not simply allow, by policy, subject and tool, so that nobody reads the history to count them; and what
-- people said of such a decision.

CREATE TABLE violation_days (
  organization_id TEXT NOT NULL,
  -- 'all', 'policy', 'subject' or 'tool'; with '_rest' behind it what a day has no room to name.
  dimension TEXT NOT NULL,
  -- Days since the Unix epoch, UTC.
  day INTEGER NOT NULL,
  -- An id or a tool as the event had it; empty where it had none, and of 'all' and of what is not named.
  name TEXT NOT NULL,
  action TEXT NOT NULL,
  mode TEXT NOT NULL,
  source TEXT NOT NULL,
  event_count INTEGER NOT NULL,
  PRIMARY KEY (organization_id, dimension, day, name, action, mode, source),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX violation_days_by_day ON violation_days (organization_id, day);

-- The number of the last chunk that was counted, the day of the first count, and how many chunks could not be counted since.
CREATE TABLE violation_heads (
  organization_id TEXT NOT NULL PRIMARY KEY,
  sequence INTEGER NOT NULL,
  since_day INTEGER NOT NULL,
  uncounted_chunks INTEGER NOT NULL,
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;

CREATE TABLE violation_feedback (
  organization_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  -- Whose event it was, and who says it: 'user' or 'service_account'.
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  text TEXT NOT NULL,
  event_at INTEGER NOT NULL,
  given_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, event_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX violation_feedback_by_event ON violation_feedback (organization_id, event_at);

CREATE TABLE violation_feedback_policies (
  organization_id TEXT NOT NULL,
  policy_id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  event_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, policy_id, event_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX violation_feedback_policies_by_event ON violation_feedback_policies (organization_id, event_at);
