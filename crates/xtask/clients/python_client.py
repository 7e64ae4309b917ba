"""The official Python SDK: `python_client.py http|stdio REVISION NAME`.

The same steps as `steps.mjs`, one line of JSON each. It runs with `mcp` 1 (up to 2025-11-25) and 2 (2026-07-28 as well),
each in an environment of its own.
"""

import asyncio
import json
import os
import re
import sys
import traceback
import uuid
from contextlib import asynccontextmanager
from importlib.metadata import version

from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

IS_FIRST = version("mcp").startswith("1.")
WAY, REVISION, NAME = sys.argv[1:4]
READ = "listHeadlessServiceAccounts"
CREATE = "createHeadlessDirectoryGroup"
GET = "getHeadlessDirectoryGroup"
DELETE = "deleteHeadlessDirectoryGroup"
SEEN = {"status": 0, "challenge": None}


def say(step, **more):
    print(json.dumps({"step": step, **more}), flush=True)


def expect(is_so, sentence, seen=None):
    if not is_so:
        raise AssertionError(f"expected that {sentence}, not {json.dumps(seen, default=str)[:600]}")


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def watch(response):
    if response.request.method == "POST":
        SEEN["status"] = response.status_code
        SEEN["challenge"] = response.headers.get("www-authenticate")


def transport():
    if WAY == "stdio":
        names = ["PATH", "HOME", "PROVOST_URL", "PROVOST_TOKEN", "PROVOST_ORGANIZATION"]
        environment = {name: os.environ.get(name, "") for name in names}
        return stdio_client(StdioServerParameters(command=os.environ["PROVOST_BINARY"], args=["mcp", "--toolsets", "all"], env=environment))
    if IS_FIRST:
        import httpx as http
    else:
        import httpx2 as http
    client = http.AsyncClient(
        headers={"Authorization": f"Bearer {os.environ['PROVOST_TOKEN']}"},
        event_hooks={"response": [watch]},
        timeout=30,
    )
    return streamable_http_client(os.environ["PROVOST_MCP_URL"], http_client=client)


@asynccontextmanager
async def connected():
    if IS_FIRST:
        from mcp import ClientSession
        from mcp.types import Implementation

        async with transport() as streams:
            info = Implementation(name=NAME, version="1.0.0")
            async with ClientSession(streams[0], streams[1], client_info=info) as session:
                answer = plain(await session.initialize())
                yield session, answer["protocolVersion"], answer["serverInfo"]
        return
    from mcp import Client
    from mcp_types import Implementation

    mode = "2026-07-28" if REVISION == "2026-07-28" else "legacy"
    # A version that is pinned is taken without asking; `auto` asks the server first.
    mode = "auto" if mode == "2026-07-28" else mode
    info = Implementation(name=NAME, version="1.0.0")
    async with Client(transport(), mode=mode, client_info=info, read_timeout_seconds=30, cache=None) as client:
        yield client, client.protocol_version, plain(client.server_info)


async def pages(ask, member):
    found, cursor = [], None
    while True:
        page = plain(await ask(cursor=cursor))
        found += page[member]
        cursor = page.get("nextCursor")
        if cursor is None:
            return found


def structured(result):
    expect(not result.get("isError"), "the call succeeds", result)
    text = next(part["text"] for part in result["content"] if part["type"] == "text")
    expect(json.loads(text) == result["structuredContent"], "the text is the structured answer", result)
    return result["structuredContent"]


def refusal(result):
    expect(result.get("isError") is True, "the call is refused as a result", result)
    return next(part["text"] for part in result["content"] if part["type"] == "text")


def words():
    return {"reason": "a client of others", "idempotencyKey": str(uuid.uuid4())}


async def use(client, call):
    tools = await pages(client.list_tools, "tools")
    names = {tool["name"] for tool in tools}
    expect(len(names) == len(tools), "names of tools are unique")
    expect({READ, CREATE, GET, DELETE} <= names, "the tools are listed", sorted(names))
    say("tools", count=len(tools))

    accounts = structured(await call(READ, {"limit": 5}))["serviceAccounts"]
    expect(accounts, "there are accounts")
    say("read", count=len(accounts))

    name = f"mcp {uuid.uuid4()}"
    group = structured(await call(CREATE, {"name": name, **words()}))["group"]
    expect(group["name"] == name, "the group has its name", group)
    say("write", id=group["id"])
    text = refusal(await call(DELETE, {"groupId": group["id"], **words()}))
    expect(re.search("confirm", text, re.I), "the refusal names what is to be confirmed", text)
    say("unconfirmed", text=text[:200])
    deleted = await call(DELETE, {"groupId": group["id"], "confirm": True, **words()})
    expect(not deleted.get("isError"), "the group is deleted", deleted)
    gone = refusal(await call(GET, {"groupId": group["id"]}))
    say("deleted", text=gone[:200])

    resources = await pages(client.list_resources, "resources")
    expect(resources, "there are documents")
    uri = resources[0]["uri"]
    if IS_FIRST:
        from pydantic import AnyUrl

        document = plain(await client.read_resource(AnyUrl(uri)))
    else:
        document = plain(await client.read_resource(uri))
    contents = document["contents"]
    expect(len(contents) == 1 and contents[0]["uri"] == uri and contents[0]["text"], "the document is the one", contents)
    say("resource", count=len(resources), uri=uri, length=len(contents[0]["text"]))

    prompts = await pages(client.list_prompts, "prompts")
    expect(prompts, "there are prompts")
    values = {argument["name"]: "example" for argument in prompts[0].get("arguments", [])}
    messages = plain(await client.get_prompt(prompts[0]["name"], values))["messages"]
    expect(messages, "the prompt has messages")
    say("prompt", count=len(prompts), name=prompts[0]["name"])


async def is_refused(call):
    structured(await call(READ, {"limit": 1}))
    say("waiting")
    SEEN.update(status=0, challenge=None)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    try:
        # Some releases lose the answer to a failed request; the status is what counts.
        answered = await asyncio.wait_for(call(READ, {"limit": 1}), 10)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    else:
        raise AssertionError(f"the call of an ended session was answered: {answered}")
    note_refusal(text)


def note_refusal(text):
    if WAY == "http":
        expect(SEEN["status"] == 401, "the answer is 401", SEEN)
        expect("resource_metadata=" in (SEEN["challenge"] or ""), "the challenge names the metadata", SEEN)
    say("refused", status=SEEN["status"] or None, text=text[:300])


async def main():
    async with connected() as (client, revision, server):
        expect(revision == REVISION, f"the revision is {REVISION}", revision)
        expect(server["name"] == "provost", "the server says its name", server)
        say("connected", revision=revision, server=server)

        async def call(tool, values):
            return plain(await client.call_tool(tool, values))

        await use(client, call)
        await is_refused(call)
        # Closing sends a DELETE with the token that is refused; nothing is left to be said.
        sys.stdout.flush()
        os._exit(0)


try:
    asyncio.run(main())
except BaseException:
    text = traceback.format_exc()
    if IS_FIRST and SEEN["status"] == 401 and "HTTPStatusError" in text:
        # The first line of the SDK cancels everything of a connection whose request was answered with 401.
        note_refusal(next(line for line in text.splitlines() if "HTTPStatusError:" in line).strip(" |"))
        os._exit(0)
    say("failed", text=text[-2000:])
    sys.exit(1)
