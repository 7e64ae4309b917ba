-- Who a restore holds back until an administrator lets them act again: why an account is disabled, why a client is
-- blocked, and since when an identity link is held. A user's row says it itself: suspended by 'restore'.

ALTER TABLE service_accounts ADD COLUMN disabled_reason TEXT;
ALTER TABLE oauth_clients ADD COLUMN blocked_reason TEXT;
ALTER TABLE oauth_identities ADD COLUMN held_at INTEGER;
