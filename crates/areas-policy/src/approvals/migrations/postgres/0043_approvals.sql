-- Approvals: a request for one call, what people said of it, and what it gives. No argument of a call stands here in the
-- clear: the call is a keyed hash, and what people are shown of it is sealed.

CREATE TABLE approvals (
  organization_id TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  grant_id TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  -- 'pending', 'approved', 'used', 'denied', 'expired', 'canceled', 'revoked' or 'void'.
  state TEXT COLLATE "C" NOT NULL,
  asker_kind TEXT COLLATE "C" NOT NULL,
  asker_id TEXT COLLATE "C" NOT NULL,
  subject_kind TEXT COLLATE "C" NOT NULL,
  subject_id TEXT COLLATE "C" NOT NULL,
  subject_rights TEXT COLLATE "C" NOT NULL,
  call_mac TEXT COLLATE "C" NOT NULL,
  binding_mac TEXT COLLATE "C" NOT NULL,
  tool TEXT COLLATE "C" NOT NULL,
  -- JSON lists.
  policies TEXT COLLATE "C" NOT NULL,
  policies_sha256 TEXT COLLATE "C" NOT NULL,
  votes TEXT COLLATE "C" NOT NULL,
  uses TEXT COLLATE "C" NOT NULL,
  quorum BIGINT NOT NULL,
  max_uses BIGINT NOT NULL,
  use_count BIGINT NOT NULL CHECK (use_count <= max_uses),
  deadline_at BIGINT NOT NULL,
  grant_until BIGINT,
  sealing_key_id TEXT COLLATE "C",
  sealed BYTEA,
  created_at BIGINT NOT NULL,
  decided_at BIGINT,
  ended_at BIGINT,
  end_reason TEXT COLLATE "C",
  revision BIGINT NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
);
-- Whatever happens at once: one that is open for each call and each set of policies.
CREATE UNIQUE INDEX approvals_open ON approvals (organization_id, call_mac, policies_sha256) WHERE state IN ('pending', 'approved');
-- The open ones are few, whatever has ended: rounds, lists and the ends of people read them by it.
CREATE INDEX approvals_open_by_id ON approvals (organization_id, id) WHERE state IN ('pending', 'approved');
CREATE INDEX approvals_waiting ON approvals (organization_id, deadline_at) WHERE state = 'pending';
CREATE INDEX approvals_by_asker ON approvals (organization_id, asker_kind, asker_id, created_at);
CREATE INDEX approvals_of_asker ON approvals (organization_id, asker_kind, asker_id, id);
CREATE INDEX approvals_of_subject ON approvals (organization_id, subject_kind, subject_id, id);
CREATE INDEX approvals_by_end ON approvals (ended_at);
-- What is erased once is not looked at again.
CREATE INDEX approvals_shown ON approvals (ended_at) WHERE sealed IS NOT NULL;
CREATE TRIGGER note_rights_of_insert AFTER INSERT ON approvals REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_update AFTER UPDATE ON approvals REFERENCING OLD TABLE AS former NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
CREATE TRIGGER note_rights_of_delete AFTER DELETE ON approvals REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION note_touched_rights('organization_id', 'id');
