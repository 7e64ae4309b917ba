-- A refresh token that was used is answered again with the same successor, whose answer was lost.

-- The successor, which only the token itself opens (see the replay cells of idempotency), and the day whose key it takes.
ALTER TABLE oauth_refresh_tokens ADD COLUMN successor_cell BYTEA;
ALTER TABLE oauth_refresh_tokens ADD COLUMN successor_salt BYTEA;
ALTER TABLE oauth_refresh_tokens ADD COLUMN successor_day BIGINT;
-- A keyed hash of the network of the use, and how often the token was answered again.
ALTER TABLE oauth_refresh_tokens ADD COLUMN used_from BYTEA;
ALTER TABLE oauth_refresh_tokens ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0;
