"""Three calls by the client that openapi-python-client generates: a list, a write, and a write that cannot be undone.

Arguments: the address of the server, and the organization. The token comes from PROVOST_TOKEN.
"""

import os
import sys

from provost_headless_api_client import AuthenticatedClient
from provost_headless_api_client.api.service_accounts import (
    create_headless_service_account,
    delete_headless_service_account,
    list_headless_service_accounts,
)
from provost_headless_api_client.models.create_headless_service_account_body import CreateHeadlessServiceAccountBody
from provost_headless_api_client.models.delete_headless_service_account_x_confirm import (
    DeleteHeadlessServiceAccountXConfirm,
)

ORGANIZATION = sys.argv[2]
client = AuthenticatedClient(base_url=sys.argv[1], token=os.environ["PROVOST_TOKEN"], raise_on_unexpected_status=True)

body = CreateHeadlessServiceAccountBody.from_dict(
    {
        "name": "by a generated client",
        "permissionRole": "viewer",
        "scopes": ["policies:read"],
        "reason": "generated",
        "idempotencyKey": "generated-python-1",
    }
)
made = create_headless_service_account.sync(ORGANIZATION, client=client, body=body)
assert hasattr(made, "service_account"), made
account = made.service_account
assert account.name == "by a generated client", account
found = list_headless_service_accounts.sync(ORGANIZATION, client=client)
assert account.id in [one.id for one in found.service_accounts], found
gone = delete_headless_service_account.sync_detailed(
    ORGANIZATION,
    account.id,
    client=client,
    idempotency_key="generated-python-2",
    x_reason="generated",
    x_confirm=DeleteHeadlessServiceAccountXConfirm.TRUE,
)
assert gone.status_code == 204, gone
print("created, found and deleted an account")
