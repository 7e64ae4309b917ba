-- A token without a list of its own has its account's scopes, whatever the account gains. Every token used to be given a
-- copy of that list; where the two are the same, nobody asked for less.
UPDATE service_account_tokens SET scopes = NULL
WHERE scopes = (SELECT a.scopes FROM service_accounts a
  WHERE a.organization_id = service_account_tokens.organization_id AND a.id = service_account_tokens.service_account_id);

-- The longest life that a token may give its successor by itself, in seconds; absent in rows of before, where the life
-- that they had is the most.
ALTER TABLE service_account_tokens ADD COLUMN lifetime_ceiling_secs INTEGER;

-- A person's gateway tokens were never accepted. Those that lie here stay dead: whoever was suspended since must not come
-- back with one.
UPDATE gateway_tokens SET revoked_at = created_at, revoke_reason = 'never_accepted', replay_pending = 0
WHERE principal_id LIKE 'usr\_%' ESCAPE '\' AND revoked_at IS NULL;
