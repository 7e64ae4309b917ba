-- What ends, and what is forgotten for its age, goes without a look at rows of others. The indexes are of tables of several areas, and
-- come in one step.

-- What one subject said, and of which policies.
CREATE INDEX violation_feedback_by_subject ON violation_feedback (organization_id, subject_kind, subject_id, event_id);
CREATE INDEX violation_feedback_policies_of_event ON violation_feedback_policies (organization_id, event_id);
-- What waits of one user.
CREATE INDEX inventory_use_queue_by_user ON inventory_use_queue (organization_id, user_id);
-- What was allowed for one user.
CREATE INDEX oauth_relinkings_by_user ON oauth_relinkings (organization_id, user_id);
-- Records that ended long ago.
CREATE INDEX directory_ended_by_age ON directory_ended (organization_id, ended_at, kind, id);
-- Machines that were not heard of for long.
CREATE INDEX managed_config_targets_by_report ON managed_config_targets (last_reported_at);
-- How many devices an organization has: those that are retired stay for ever, and are not counted.
CREATE INDEX devices_living ON devices (organization_id, status) WHERE status <> 'retired';

-- Devices that are retired and of which more was there than the unit ended that retired them. Nearly always there is none.
CREATE TABLE inventory_leftovers (
  organization_id TEXT COLLATE "C" NOT NULL,
  device_id TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, device_id),
  FOREIGN KEY (organization_id, device_id) REFERENCES devices (organization_id, id)
);
INSERT INTO inventory_leftovers (organization_id, device_id)
  SELECT DISTINCT o.organization_id, o.device_id
  FROM inventory_observations o JOIN devices d ON d.organization_id = o.organization_id AND d.id = o.device_id
  WHERE o.removed_at IS NULL AND d.status = 'retired';
