"""What a random caller of the API cannot know.

Four corrections, made just before a request is sent:
 - the account that the tests call with is never the object of a request, or it would rotate, revoke or
   disable the tests' own token;
 - most valid requests name an account that exists, which no random string does;
 - every valid request is a new intent: it has an idempotency key of its own, and no member of the body is
   contradicted by the header that says the same;
 - a valid cursor is one that a list returned, which no schema can say.
"""

import itertools
import os
import uuid

import schemathesis

OWN_ACCOUNT = os.environ["PROVOST_ACCOUNT"]

# Member of a body, and the headers that may stand for it.
TRIO = {
    "idempotencyKey": ("idempotency-key",),
    "reason": ("x-reason", "x-forge-reason"),
    "confirm": ("x-confirm", "x-forge-confirm"),
}

# Ids of accounts that exist, each with the id of its first token; filled by the tests' own creations.
existing: dict[str, str] = {}
turns = itertools.count()
# The last cursor that each list returned.
cursors: dict[str, str] = {}


@schemathesis.hook
def before_call(context, case, kwargs):
    positive = case.meta is not None and case.meta.generation.mode.is_positive
    if positive:
        state_once(case)
        continue_list(case)
        if case.meta.phase.name.value != "stateful" and next(turns) % 4:
            name_existing_account(case)
    parameters = case.path_parameters or {}
    if parameters.get("serviceAccountId") == OWN_ACCOUNT:
        parameters["serviceAccountId"] = next(iter(existing), "sa_00000000000000000000000000")


@schemathesis.hook
def after_call(context, case, response):
    if case.path.endswith("/audit/events"):
        remember_cursor(case, response)
    if response.status_code == 201:
        body = response.json()
        account, token = body.get("serviceAccount") or {}, body.get("token") or {}
        if "id" in account and "id" in token and len(existing) < 40:
            existing[account["id"]] = token["id"]
    elif ended(case, response):
        existing.pop((case.path_parameters or {}).get("serviceAccountId"), None)


def remember_cursor(case, response):
    if response.status_code == 200:
        cursors[case.path] = response.json().get("nextCursor") or cursors.get(case.path, "")


def continue_list(case):
    query = case.query if case.query is not None else {}
    if "cursor" not in query:
        return
    if cursors.get(case.path):
        query["cursor"] = cursors[case.path]
    else:
        del query["cursor"]


def ended(case, response):
    """Whether an account is gone, or disabled so that only refusals could follow while others are there."""
    if response.status_code == 204:
        return case.method.upper() == "DELETE"
    return response.status_code == 200 and case.path.endswith("/disable") and len(existing) > 5


def state_once(case):
    body = case.body if isinstance(case.body, dict) else {}
    headers = case.headers if case.headers is not None else {}
    for member, names in TRIO.items():
        said = member in body
        for name in names:
            if name in headers and said:
                del headers[name]
            said = said or name in headers
    if "idempotencyKey" in body:
        body["idempotencyKey"] = f"schemathesis-{uuid.uuid4()}"
    elif "idempotency-key" in headers:
        headers["idempotency-key"] = f"schemathesis-{uuid.uuid4()}"


def name_existing_account(case):
    parameters = case.path_parameters or {}
    if "serviceAccountId" not in parameters or not existing:
        return
    # Deletions would soon leave nothing to name.
    if case.method.upper() == "DELETE" and len(existing) < 5:
        return
    account = list(existing)[next(turns) % len(existing)]
    parameters["serviceAccountId"] = account
    if "tokenId" in parameters:
        parameters["tokenId"] = existing[account]
