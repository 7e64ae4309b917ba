-- How often something passed on devices of an organization without a reason, by days, for as long as its history may go back: backtests say
-- of how much they have no event.

CREATE TABLE device_decision_days (
  organization_id TEXT NOT NULL,
  -- Days since 1970.
  day INTEGER NOT NULL,
  passed INTEGER NOT NULL,
  PRIMARY KEY (organization_id, day),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX device_decision_days_by_day ON device_decision_days (day);
INSERT INTO device_decision_days (organization_id, day, passed)
  SELECT organization_id, hour / 86400000, CAST(SUM(passed) AS INTEGER) FROM device_decision_counts GROUP BY organization_id, hour / 86400000;
-- Who is deleted is forgotten in it.
CREATE INDEX device_decision_counts_by_user ON device_decision_counts (organization_id, user_word);
