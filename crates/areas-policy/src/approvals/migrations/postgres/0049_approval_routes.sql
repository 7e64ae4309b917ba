-- Who owns the asker: requests count as theirs. '' where nobody wrote it down, as before this.
ALTER TABLE approvals ADD COLUMN owner_id TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX approvals_by_owner ON approvals (organization_id, owner_id, created_at);
-- The waiting ones are few, whatever has ended.
CREATE INDEX approvals_waiting_of_owner ON approvals (organization_id, owner_id, deadline_at) WHERE state = 'pending';
-- The route by which a request is decided, as JSON, as it was when it was asked for.
ALTER TABLE approvals ADD COLUMN route TEXT COLLATE "C";

-- Who decides about what is asked for: one document of an organization.
CREATE TABLE approval_routes (
  organization_id TEXT COLLATE "C" NOT NULL,
  document TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (organization_id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON approval_routes REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON approval_routes REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON approval_routes REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id');
