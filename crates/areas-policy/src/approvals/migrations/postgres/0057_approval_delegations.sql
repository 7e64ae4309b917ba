-- Whose place in a route somebody else takes for a time: a vote in the name of who lent it.
CREATE TABLE approval_delegations (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  from_user_id TEXT COLLATE "C" NOT NULL,
  to_user_id TEXT COLLATE "C" NOT NULL,
  -- A JSON list.
  kinds TEXT COLLATE "C" NOT NULL,
  starts_at BIGINT NOT NULL,
  until_at BIGINT NOT NULL CHECK (until_at > starts_at),
  created_at BIGINT NOT NULL,
  ended_at BIGINT,
  end_reason TEXT COLLATE "C",
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
-- The open ones are few, whatever has ended.
CREATE INDEX approval_delegations_from ON approval_delegations (organization_id, from_user_id, id) WHERE ended_at IS NULL;
CREATE INDEX approval_delegations_to ON approval_delegations (organization_id, to_user_id, id) WHERE ended_at IS NULL;
CREATE INDEX approval_delegations_open ON approval_delegations (organization_id, id) WHERE ended_at IS NULL;
CREATE INDEX approval_delegations_by_end ON approval_delegations (ended_at) WHERE ended_at IS NOT NULL;
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON approval_delegations REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON approval_delegations REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON approval_delegations REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
