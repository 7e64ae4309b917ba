-- Which calls somebody asked a decision about lately, and digests of what was said of them: what telemetry tells of such a call again
-- is no second event. Rows go after a day.
CREATE TABLE history_calls (
  organization_id TEXT COLLATE "C" NOT NULL,
  session_key TEXT COLLATE "C" NOT NULL,
  call_key TEXT COLLATE "C" NOT NULL,
  event_id TEXT COLLATE "C" NOT NULL,
  principal_id TEXT COLLATE "C" NOT NULL,
  said TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id, session_key, call_key, event_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE INDEX history_calls_by_age ON history_calls (organization_id, created_at);
