-- Hours in which the audit log knows who fetched configuration with its values in the clear.
CREATE TABLE managed_config_pulls (
  organization_id TEXT NOT NULL,
  profile_id TEXT NOT NULL,
  principal_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  PRIMARY KEY (organization_id, profile_id, principal_id, hour),
  FOREIGN KEY (organization_id, profile_id) REFERENCES managed_config_profiles (organization_id, id)
) STRICT;
CREATE INDEX managed_config_pulls_by_hour ON managed_config_pulls (hour);

-- The first start gives managed_config:pull, once, to the accounts that reported and could fetch until now: what a role holds is
-- known to the program alone, and so is what to say about it. It takes this fact away with that. A new store has none.
INSERT INTO installation (name, value)
SELECT 'managed_config_pull', 'due' WHERE EXISTS (SELECT 1 FROM managed_config_targets);
