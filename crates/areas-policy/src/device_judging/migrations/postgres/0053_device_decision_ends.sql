-- When a device that told was retired: for as long as somebody's past could hold what it told, it is known that this is none.

ALTER TABLE device_decision_chains ADD COLUMN ended_at BIGINT;
CREATE INDEX device_decision_chains_ended ON device_decision_chains (organization_id, device_id) WHERE ended_at IS NOT NULL;
CREATE INDEX device_decision_chains_by_end ON device_decision_chains (ended_at, organization_id, device_id) WHERE ended_at IS NOT NULL;
