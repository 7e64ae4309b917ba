-- What the folder of an observation's project is called, where the settings have machines say it (fleet.privacy.projectNames).
ALTER TABLE inventory_observations ADD COLUMN project_name TEXT;
-- What is forgotten where the settings hide it again.
CREATE INDEX inventory_observations_named ON inventory_observations (organization_id, project_name, id) WHERE project_name IS NOT NULL;
