-- Which versions have the digest of a folder that was found on a device.
CREATE INDEX skill_versions_by_digest ON skill_versions (organization_id, digest);
