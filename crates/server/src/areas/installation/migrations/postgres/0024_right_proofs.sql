-- Each row that decides what somebody may do carries a proof, and each chain's head the sum of all (ADR 0070).

CREATE TABLE right_proofs (
  organization_id TEXT COLLATE "C" NOT NULL,
  -- The row: its table, and its primary key as a JSON array.
  table_name TEXT COLLATE "C" NOT NULL,
  row_key TEXT COLLATE "C" NOT NULL,
  -- The key of the MAC, and its hexadecimal digits.
  key_id TEXT COLLATE "C" NOT NULL,
  mac TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, table_name, row_key)
);

-- NULL: no unit of the chain has touched such a row yet.
ALTER TABLE chain_heads ADD COLUMN rights_changes BIGINT;
ALTER TABLE chain_heads ADD COLUMN rights_rows BIGINT;
ALTER TABLE chain_heads ADD COLUMN rights_sum BYTEA;
ALTER TABLE chain_heads ADD COLUMN rights_key TEXT COLLATE "C";

-- Notes what a server changes, in a table of its session. SQLite's triggers are its connections' (kernel::db::touched).
CREATE FUNCTION note_touched_rights() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Whoever keeps no proofs has no such table: a copy, which brings them along, and everybody who is no server.
  IF to_regclass('pg_temp.touched_rights') IS NULL THEN
    RETURN NULL;
  END IF;
  IF TG_OP <> 'INSERT' THEN
    INSERT INTO pg_temp.touched_rights (organization_id, table_name, row_key, is_new, content)
    SELECT r.j ->> 'organization_id', TG_TABLE_NAME, '[' || (SELECT string_agg(CAST(r.j -> k.name AS TEXT), ', ' ORDER BY k.place) FROM unnest(TG_ARGV) WITH ORDINALITY AS k (name, place)) || ']', FALSE, CAST(r.j AS TEXT)
    FROM (SELECT to_jsonb(f) AS j FROM former f) r;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO pg_temp.touched_rights (organization_id, table_name, row_key, is_new, content)
    SELECT r.j ->> 'organization_id', TG_TABLE_NAME, '[' || (SELECT string_agg(CAST(r.j -> k.name AS TEXT), ', ' ORDER BY k.place) FROM unnest(TG_ARGV) WITH ORDINALITY AS k (name, place)) || ']', TRUE, CAST(r.j AS TEXT)
    FROM (SELECT to_jsonb(f) AS j FROM fresh f) r;
  END IF;
  RETURN NULL;
END
$$;

-- The arguments of each trigger are the columns of the table's primary key, in its order.
DO $$
DECLARE
  deciding TEXT;
  key TEXT;
BEGIN
  FOREACH deciding IN ARRAY ARRAY[
    'automation_settings',
    'directory_ended',
    'directory_groups',
    'directory_held_changes',
    'directory_memberships',
    'directory_state',
    'directory_users',
    'ended_words',
    'gateway_tokens',
    'identity_mappings',
    'managed_config_profiles',
    'managed_config_releases',
    'managed_config_targets',
    'mcp_session_cuts',
    'mcp_session_kinds',
    'mcp_session_tombstones',
    'mcp_sessions',
    'oauth_assertions',
    'oauth_clients',
    'oauth_codes',
    'oauth_exchanges',
    'oauth_former_identities',
    'oauth_identities',
    'oauth_refresh_tokens',
    'oauth_relinkings',
    'oauth_renamed_users',
    'organization_keys',
    'organizations',
    'policies',
    'policy_revisions',
    'policy_set_versions',
    'resource_credential_assignments',
    'resource_credential_secrets',
    'resource_credentials',
    'resource_gateways',
    'resources',
    'service_account_tokens',
    'service_accounts',
    'skill_installs',
    'skill_items',
    'skill_versions'
  ] LOOP
    SELECT string_agg(quote_literal(a.attname), ', ' ORDER BY k.place) INTO key
    FROM pg_index i CROSS JOIN LATERAL unnest(CAST(i.indkey AS SMALLINT[])) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
    WHERE i.indrelid = CAST(quote_ident(deciding) AS REGCLASS) AND i.indisprimary;
    EXECUTE format('CREATE TRIGGER note_rights_of_insert AFTER INSERT ON %I REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights(%s)', deciding, key);
    EXECUTE format('CREATE TRIGGER note_rights_of_update AFTER UPDATE ON %I REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights(%s)', deciding, key);
    EXECUTE format('CREATE TRIGGER note_rights_of_delete AFTER DELETE ON %I REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights(%s)', deciding, key);
  END LOOP;
END
$$;
