-- What says that there are two machines with one key: heartbeats that count backwards, and runs of a system that come back.

ALTER TABLE devices ADD COLUMN tamper_reason TEXT COLLATE "C";
ALTER TABLE devices ADD COLUMN tamper_at BIGINT;
-- The highest that was said.
ALTER TABLE device_heartbeats ADD COLUMN counter BIGINT NOT NULL DEFAULT 0;
ALTER TABLE device_heartbeats ADD COLUMN boot_id TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE device_heartbeats ADD COLUMN earlier_boot_id TEXT COLLATE "C";

-- What people say of a machine: a list of words in JSON.
ALTER TABLE devices ADD COLUMN labels TEXT COLLATE "C" NOT NULL DEFAULT '[]';
