-- Approvals: a request for one call, what people said of it, and what it gives. No argument of a call stands here in the
-- clear: the call is a keyed hash, and what people are shown of it is sealed.

CREATE TABLE approvals (
  organization_id TEXT NOT NULL,
  id TEXT NOT NULL,
  grant_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  -- 'pending', 'approved', 'used', 'denied', 'expired', 'canceled', 'revoked' or 'void'.
  state TEXT NOT NULL,
  asker_kind TEXT NOT NULL,
  asker_id TEXT NOT NULL,
  subject_kind TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  subject_rights TEXT NOT NULL,
  call_mac TEXT NOT NULL,
  binding_mac TEXT NOT NULL,
  tool TEXT NOT NULL,
  -- JSON lists.
  policies TEXT NOT NULL,
  policies_sha256 TEXT NOT NULL,
  votes TEXT NOT NULL,
  uses TEXT NOT NULL,
  quorum INTEGER NOT NULL,
  max_uses INTEGER NOT NULL,
  use_count INTEGER NOT NULL CHECK (use_count <= max_uses),
  deadline_at INTEGER NOT NULL,
  grant_until INTEGER,
  sealing_key_id TEXT,
  sealed BLOB,
  created_at INTEGER NOT NULL,
  decided_at INTEGER,
  ended_at INTEGER,
  end_reason TEXT,
  revision INTEGER NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id) REFERENCES organizations (organization_id)
) STRICT;
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
