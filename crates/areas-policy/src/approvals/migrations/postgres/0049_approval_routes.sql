-- Who owns the asker: requests count as theirs. '' where nobody wrote it down, as before this.
ALTER TABLE approvals ADD COLUMN owner_id TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX approvals_by_owner ON approvals (organization_id, owner_id, created_at);
-- The waiting ones are few, whatever has ended.
CREATE INDEX approvals_waiting_of_owner ON approvals (organization_id, owner_id, deadline_at) WHERE state = 'pending';
