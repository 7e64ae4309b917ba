-- Which machines gateways take for an account: whoever has one of them calls as the account.

CREATE INDEX device_gateway_identities_by_account ON device_gateway_identities (organization_id, service_account_id, device_id) WHERE service_account_id IS NOT NULL;
