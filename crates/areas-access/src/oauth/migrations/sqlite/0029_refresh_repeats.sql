-- A refresh token that was used is answered again with the same successor, whose answer was lost.

-- The successor, which only the token itself opens (see the replay cells of idempotency), and the day whose key it takes.
ALTER TABLE oauth_refresh_tokens ADD COLUMN successor_cell BLOB;
ALTER TABLE oauth_refresh_tokens ADD COLUMN successor_salt BLOB;
ALTER TABLE oauth_refresh_tokens ADD COLUMN successor_day INTEGER;
-- A keyed hash of the network of the use, and how often the token was answered again.
ALTER TABLE oauth_refresh_tokens ADD COLUMN used_from BLOB;
ALTER TABLE oauth_refresh_tokens ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
