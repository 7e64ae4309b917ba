"""What a random caller of the API cannot know.

Corrections, made just before a request is sent:
 - the account that the tests call with is never the object of a request, or it would rotate, revoke or
   disable the tests' own token;
 - most valid requests name records that exist, which no random string does;
 - every valid request is a new intent: it has an idempotency key of its own, and no member of the body is
   contradicted by the header that says the same;
 - where a member of the body can say it, no header does: a body without what a header says is called invalid,
   and is not;
 - a valid cursor is one that a list returned, which no schema can say;
 - a valid chunk of an import holds a line;
 - the organization keeps the settings under which a valid request is accepted, and what must be confirmed is;
 - the id of a policy is said by the path or by the query, which no schema can say;
 - most valid reads of events begin where there are some;
 - most valid definitions of policies keep the rules that no schema can say, under an id of their own.
"""

import datetime
import itertools
import json
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
# Path parameters, and how the ids begin that they stand for.
PREFIXES = {
    "userId": "usr_",
    "groupId": "grp_",
    "importId": "imp_",
    "profileId": "prof_",
    "releaseId": "mcr_",
    "itemRef": "ski_",
    "installId": "inst_",
    "resourceId": "res_",
    "resourceGatewayId": "rgw_",
    "credentialId": "cred_",
    "checkId": "chk_",
    "versionId": "psv_",
    "eventId": "hev_",
    "runId": "btr_",
}
# Records that exist: their ids with the path parameters that they were made under.
records: dict[str, dict[str, dict[str, str]]] = {name: {} for name in PREFIXES}
# Policies that exist: the ids by the collection's name, with the last revision.
policies: dict[str, dict[str, int]] = {}
# The last cursor that each list returned.
cursors: dict[str, str] = {}


@schemathesis.hook
def before_call(context, case, kwargs):
    positive = case.meta is not None and case.meta.generation.mode.is_positive
    say_it_in_the_body(case)
    if positive:
        state_once(case)
        continue_list(case)
        begin_with_events(case)
        if case.meta.phase.name.value != "stateful" and next(turns) % 4:
            name_existing_account(case)
            name_existing_records(case)
        keep_settings(case)
        look_back(case)
        hold_a_line(case, kwargs)
        if next(turns) % 4:
            keep_the_rules(case)
        leave_the_id_to_one(case)
    parameters = case.path_parameters or {}
    if parameters.get("serviceAccountId") == OWN_ACCOUNT:
        parameters["serviceAccountId"] = next(iter(existing), "sa_00000000000000000000000000")


@schemathesis.hook
def after_call(context, case, response):
    if case.path.endswith("/audit/events"):
        remember_cursor(case, response)
    is_json = response.headers.get("content-type", [""])[0].startswith("application/json")
    if response.status_code in (200, 201) and is_json and not case.path.endswith("/export"):
        remember_records(case, response.json())
        remember_policy(case, response.json())
    if response.status_code == 204:
        policies.get(collection(case), {}).pop((case.path_parameters or {}).get("policyId"), None)
        for name, value in (case.path_parameters or {}).items():
            records.get(name, {}).pop(value, None)
    if response.status_code == 201:
        body = response.json()
        account, token = body.get("serviceAccount") or {}, body.get("token") or {}
        if "id" in account and "id" in token and len(existing) < 40:
            existing[account["id"]] = token["id"]
    elif ended(case, response):
        existing.pop((case.path_parameters or {}).get("serviceAccountId"), None)


def leave_the_id_to_one(case):
    """The id of a policy stands in the query only where the path has a dash in its place."""
    if (case.path_parameters or {}).get("policyId", "-") != "-":
        (case.query or {}).pop("policyId", None)


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


def begin_with_events(case):
    if case.path.endswith("/organizations/{organizationId}/events") and next(turns) % 4:
        for name in ("after", "epoch"):
            (case.query or {}).pop(name, None)


def ended(case, response):
    """Whether an account is gone, or disabled so that only refusals could follow while others are there."""
    if response.status_code == 204:
        return case.method.upper() == "DELETE"
    return response.status_code == 200 and case.path.endswith("/disable") and len(existing) > 5


def say_it_in_the_body(case):
    body = (case.operation.definition.raw.get("requestBody") or {}).get("content", {}).get("application/json", {})
    if "idempotencyKey" not in body.get("schema", {}).get("properties", {}) or not case.headers:
        return
    parts = case.meta.components if case.meta is not None else {}
    if any(getattr(part, "value", part) == "header" and about.mode.is_negative for part, about in parts.items()):
        return
    for names in TRIO.values():
        for name in names:
            if name in case.headers:
                del case.headers[name]


def state_once(case):
    body = case.body if isinstance(case.body, dict) else {}
    headers = case.headers if case.headers is not None else {}
    # A valid precondition names the state of a record, which no schema can say.
    for name in ("if-match", "if-none-match"):
        if name in headers:
            del headers[name]
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


def remember_records(case, value):
    """Notes every id in an answer with the parents that the path names."""
    if isinstance(value, list):
        for item in value[:5]:
            remember_records(case, item)
    elif isinstance(value, dict):
        for member, found in value.items():
            if isinstance(found, str):
                for name, prefix in PREFIXES.items():
                    if found.startswith(prefix) and len(records[name]) < 40 and member in ("id", name, "installId"):
                        records[name][found] = dict(case.path_parameters or {})
            else:
                remember_records(case, found)


def name_existing_records(case):
    parameters = case.path_parameters or {}
    wanted = [name for name in parameters if name in PREFIXES]
    # The innermost record decides, because it lies below one parent only.
    for name in reversed(wanted):
        if not records[name]:
            continue
        if case.method.upper() == "DELETE" and len(records[name]) < 5:
            return
        chosen = list(records[name])[next(turns) % len(records[name])]
        parents = records[name][chosen]
        if any(parent != name and parent not in parents for parent in wanted):
            continue
        for parent in wanted:
            if parent in parents:
                parameters[parent] = parents[parent]
        parameters[name] = chosen
        return
    for name in wanted:
        if records[name]:
            parameters[name] = list(records[name])[next(turns) % len(records[name])]


# Settings that turn requests down which are valid by their schema: a lifetime below what a rotation asks for, a
# rollback without its preview (400, D8.7), and a window of a backtest that is longer than they allow.
DEMANDING = {"tokens": "maxLifetimeSeconds", "managedConfig": "requirePreview", "policies": "maxBacktestDays"}
# Operations that ask for consent only where something would be lost.
CONSENT = ("/automation/settings", "/directory/identities")


def keep_settings(case):
    if case.path.endswith(CONSENT) and isinstance(case.body, dict):
        case.body["confirm"] = True
    for part, setting in DEMANDING.items():
        settings = case.body.get(part) if isinstance(case.body, dict) else None
        if isinstance(settings, dict):
            settings.pop(setting, None)


LINES = {
    "text/csv": b"type,loginName\nuser,somebody@example.com\n",
    "application/x-ndjson": b'{"type":"user","loginName":"somebody@example.com"}\n',
}


def hold_a_line(case, kwargs):
    if case.path.endswith("/history/import"):
        at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1, milliseconds=next(turns))
        line = {"at": at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z", "occasion": "pre_tool", "attributes": {"tool.id": "a"}}
        case.body = json.dumps(line).encode() + b"\n"
    elif case.media_type in LINES:
        case.body = LINES[case.media_type]


FAMILIES = {
    "content-policies": "content",
    "access-policies": "access",
    "resource-policies": "resource",
    "skill-acls": "skill_acl",
}


def definition(family, policy):
    """A definition that keeps every rule of its family."""
    if family == "skill_acl":
        return {"id": policy, "skillId": next(iter(records["itemRef"]), "no-such-skill"), "effect": "block", "subjects": {"everyone": True}}
    common = {"id": policy, "name": f"Policy {policy}", "appliesTo": {}}
    if family == "content":
        rest = {"action": "flag_for_review", "evaluateOn": ["pre_tool"], "conditions": {"field": "tool.id", "op": "eq", "value": "a"}}
    elif family == "access":
        rest = {"action": "flag_for_review", "enforcementSurfaces": ["provider"], "conditions": {"field": "product.id", "op": "eq", "value": "a"}}
    else:
        rest = {"action": "flag_for_review", "conditions": {"field": "resource.protocol", "op": "eq", "value": "http"}}
    return common | rest


def look_back(case):
    """A window of a backtest begins before it ends, and ends in the past."""
    if case.path.endswith("/policies/backtests") and isinstance(case.body, dict) and "window" in case.body:
        now = datetime.datetime.now(datetime.timezone.utc)
        text = lambda hours: (now - datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
        case.body["window"] = {"from": text(48), "to": text(1)}
    if case.path.endswith("/policies/history") and "from" in (case.query or {}):
        case.query.pop("to", None)


def collection(case):
    return next((part for part in case.path.split("/") if part in FAMILIES), "")


def keep_the_rules(case):
    body = case.body if isinstance(case.body, dict) else {}
    parameters = case.path_parameters or {}
    known = policies.get(collection(case), {})
    if "policyId" in parameters:
        every = known or {name: at for some in policies.values() for name, at in some.items()}
        if every:
            parameters["policyId"] = list(every)[next(turns) % len(every)]
            if "expectedRevision" in (case.query or {}):
                case.query["expectedRevision"] = every[parameters["policyId"]]
    if "definition" in body:
        family = body.get("family") or FAMILIES.get(collection(case))
        policy = parameters.get("policyId", f"pol-{next(turns)}")
        body["definition"] = definition(family, policy)
        body.pop("validationToken", None)
        if "expectedRevision" in body:
            # Nothing stored is revision 0; a change has to name one that can be stored, and finds none.
            body["expectedRevision"] = known.get(policy, 1 if case.method.upper() == "PUT" else 0)


def remember_policy(case, answer):
    item = answer.get("item") if isinstance(answer, dict) else None
    if isinstance(item, dict) and collection(case) and "currentRevision" in item:
        policies.setdefault(collection(case), {})[item["id"]] = item["currentRevision"]


@schemathesis.serializer("application/gzip", "application/zip", "application/x-ndjson", "text/csv")
def content(ctx, value):
    return value if isinstance(value, bytes) else str(value).encode(errors="ignore")
