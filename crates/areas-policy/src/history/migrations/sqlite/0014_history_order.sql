-- Events of one instant keep the order in which they were accepted, and imports are named in the audit log.

-- The greatest number under which an event was accepted: what comes later comes behind it, whatever clocks say.
ALTER TABLE history_heads ADD COLUMN event_number INTEGER NOT NULL DEFAULT 0;

-- Who imported a body, what was in it, and when the audit log was told. Of bodies from before it is not told any more:
-- nobody knows whose they are.
ALTER TABLE history_imports ADD COLUMN principal_id TEXT NOT NULL DEFAULT '';
ALTER TABLE history_imports ADD COLUMN line_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE history_imports ADD COLUMN event_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE history_imports ADD COLUMN refused_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE history_imports ADD COLUMN told_at INTEGER;
UPDATE history_imports SET told_at = created_at;
CREATE INDEX history_imports_untold ON history_imports (created_at) WHERE told_at IS NULL;
