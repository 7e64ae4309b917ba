-- Whose place in a route somebody else takes for a time: a vote in the name of who lent it.
CREATE TABLE approval_delegations (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  from_user_id TEXT NOT NULL,
  to_user_id TEXT NOT NULL,
  -- A JSON list.
  kinds TEXT NOT NULL,
  starts_at INTEGER NOT NULL,
  until_at INTEGER NOT NULL CHECK (until_at > starts_at),
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  end_reason TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
-- The open ones are few, whatever has ended.
CREATE INDEX approval_delegations_from ON approval_delegations (organization_id, from_user_id, id) WHERE ended_at IS NULL;
CREATE INDEX approval_delegations_to ON approval_delegations (organization_id, to_user_id, id) WHERE ended_at IS NULL;
CREATE INDEX approval_delegations_open ON approval_delegations (organization_id, id) WHERE ended_at IS NULL;
CREATE INDEX approval_delegations_by_end ON approval_delegations (ended_at) WHERE ended_at IS NOT NULL;
