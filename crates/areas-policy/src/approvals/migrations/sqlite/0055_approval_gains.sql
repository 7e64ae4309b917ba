-- Who would get something by what is asked for, beside who asks and for whom: ids of users and accounts, as JSON.
ALTER TABLE approvals ADD COLUMN gains TEXT NOT NULL DEFAULT '[]';
