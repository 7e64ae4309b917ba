-- Each row that decides what somebody may do carries a proof, and each chain's head the sum of all (ADR 0070).

CREATE TABLE right_proofs (
  organization_id TEXT NOT NULL,
  -- The row: its table, and its primary key as a JSON array.
  table_name TEXT NOT NULL,
  row_key TEXT NOT NULL,
  -- The key of the MAC, and its hexadecimal digits.
  key_id TEXT NOT NULL,
  mac TEXT NOT NULL,
  PRIMARY KEY (organization_id, table_name, row_key)
) STRICT, WITHOUT ROWID;

-- NULL: no unit of the chain has touched such a row yet.
ALTER TABLE chain_heads ADD COLUMN rights_changes INTEGER;
ALTER TABLE chain_heads ADD COLUMN rights_rows INTEGER;
ALTER TABLE chain_heads ADD COLUMN rights_sum BLOB;
ALTER TABLE chain_heads ADD COLUMN rights_key TEXT;
