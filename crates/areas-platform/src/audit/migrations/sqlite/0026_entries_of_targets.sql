-- Rows that decide rights are compared with the newest entries about them.
CREATE INDEX audit_entries_by_target ON audit_entries (organization_id, target_id, seq) WHERE target_id IS NOT NULL;
