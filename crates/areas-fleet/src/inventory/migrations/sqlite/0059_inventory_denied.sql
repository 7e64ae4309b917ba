-- Each device asks with each round which servers are denied.
CREATE INDEX inventory_servers_denied ON inventory_servers (organization_id, key) WHERE standing = 'denied';
