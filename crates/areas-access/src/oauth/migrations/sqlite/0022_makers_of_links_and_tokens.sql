-- What identity links, allowances and gateway tokens came by.

-- The roles that whoever made the link, or allowed it, could give, separated by blanks. NULL: every role; so it is for those of
-- before.
ALTER TABLE oauth_identities ADD COLUMN maker_roles TEXT;
ALTER TABLE oauth_relinkings ADD COLUMN maker_roles TEXT;

-- The session, or the token of a service account, by which the skill was installed. NULL: it was before this was noted.
ALTER TABLE gateway_tokens ADD COLUMN came_by TEXT;
CREATE INDEX gateway_tokens_by_origin ON gateway_tokens (organization_id, came_by) WHERE revoked_at IS NULL;
