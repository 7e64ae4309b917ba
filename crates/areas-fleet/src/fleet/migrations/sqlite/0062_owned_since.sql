-- Since when a device has the owner that it has, and how much it had told by then: absent where nobody owns it, and where the owner was
-- named before this was kept.
ALTER TABLE devices ADD COLUMN owned_since INTEGER;
ALTER TABLE devices ADD COLUMN owned_events INTEGER;
ALTER TABLE devices ADD COLUMN owned_passed INTEGER;
-- When the look at a section began that was taken last, by the machine's clock and not after it was taken.
ALTER TABLE inventory_sections ADD COLUMN looked_at INTEGER;
