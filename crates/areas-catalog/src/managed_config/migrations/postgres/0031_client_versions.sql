-- The version of the program that a profile is for. NULL: the newest that was asked.

ALTER TABLE managed_config_profiles ADD COLUMN client_version TEXT COLLATE "C";
