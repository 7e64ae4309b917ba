-- By whose hands somebody can be who they are, where no entry of the log has the user as its target: a change of many at once.

CREATE TABLE directory_hands (
  organization_id TEXT NOT NULL,
  -- The user; '' is everybody.
  user_id TEXT NOT NULL,
  -- Who did it, or the import whose entries say who did.
  hand TEXT NOT NULL,
  -- When it was done last.
  done_at INTEGER NOT NULL,
  PRIMARY KEY (organization_id, user_id, hand),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
CREATE INDEX directory_hands_by_time ON directory_hands (done_at);
-- Who has a role: few, whatever a directory holds.
CREATE INDEX directory_users_with_role ON directory_users (organization_id, id) WHERE permission_role IS NOT NULL;
