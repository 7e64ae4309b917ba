-- What an account could do before somebody took it away who does not hold it: whoever takes hold of the account holds that
-- too, until somebody who does decides anew what the account may do. NULL: nothing more than now.
ALTER TABLE service_accounts ADD COLUMN former_role TEXT;
ALTER TABLE service_accounts ADD COLUMN former_scopes TEXT;
