-- Which machines an enrolment token enrols, and what they are called by it; whether somebody made it for a machine of their own, and by
-- which application; and which key a device had when it was told to change it.

-- A list of words in JSON, which each device gets that enrols by it.
ALTER TABLE enrolment_tokens ADD COLUMN labels TEXT COLLATE "C" NOT NULL DEFAULT '[]';
-- In JSON: platforms, networks, and how names begin; nothing where every machine may.
ALTER TABLE enrolment_tokens ADD COLUMN bounds TEXT COLLATE "C";
-- Made at devices/own/enrolment-tokens; of those of before nobody knows.
ALTER TABLE enrolment_tokens ADD COLUMN is_own BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE enrolment_tokens ADD COLUMN made_with TEXT COLLATE "C";
-- Nothing at other commands, and at those of before: what is said of these is believed.
ALTER TABLE device_commands ADD COLUMN key_thumbprint TEXT COLLATE "C";
