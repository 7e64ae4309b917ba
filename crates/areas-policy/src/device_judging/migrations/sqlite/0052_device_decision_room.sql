-- How much a device told on the day on which it told last, of what it may tell on one.

ALTER TABLE device_decision_chains ADD COLUMN told_day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE device_decision_chains ADD COLUMN told_units INTEGER NOT NULL DEFAULT 0;
