// What every client does, whichever SDK it is made of. One line of JSON per step on stdout.
//
// The order of the steps is the contract with the driver (`crates/xtask/src/clients`): after `waiting` it revokes
// the session and sends a line; what is called then must be refused.

import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";

const READ = "listHeadlessServiceAccounts";
const CREATE = "createHeadlessDirectoryGroup";
const GET = "getHeadlessDirectoryGroup";
const DELETE = "deleteHeadlessDirectoryGroup";

/**
 * Headers of a request with a connection of its own. One that is used again may have been closed by the other side in the
 * very moment (a provider waits 5 s for the next request), and `fetch` then fails without asking once more.
 */
export const ALONE = { Connection: "close" };

/** What went wrong, and what that came from: `fetch failed` alone says nothing. */
export function reason(error) {
  const cause = error?.cause ? `, from ${reason(error.cause)}` : "";
  return `${String(error?.stack ?? error).slice(0, 1500)}${cause}`;
}

export function say(step, more = {}) {
  process.stdout.write(`${JSON.stringify({ step, ...more })}\n`);
}

export function expect(is, sentence, seen) {
  if (!is) throw new Error(`expected that ${sentence}${seen === undefined ? "" : `, not ${JSON.stringify(seen).slice(0, 600)}`}`);
}

/** The next line of the driver. */
export async function line() {
  const lines = createInterface({ input: process.stdin });
  for await (const text of lines) {
    lines.close();
    return text;
  }
  throw new Error("the driver is gone");
}

/** A `fetch` that remembers the last answer of the endpoint that is called. */
export function watched() {
  const seen = { status: 0, challenge: null, sessions: new Set() };
  const fetch = async (url, init) => {
    const answer = await globalThis.fetch(url, init);
    if ((init?.method ?? "GET") === "POST") {
      seen.status = answer.status;
      seen.challenge = answer.headers.get("www-authenticate");
      const session = answer.headers.get("mcp-session-id");
      if (session) seen.sessions.add(session);
    }
    return answer;
  };
  return { seen, fetch };
}

async function pages(list, member) {
  const all = [];
  let cursor;
  do {
    const page = await list(cursor ? { cursor } : undefined);
    expect(Array.isArray(page[member]), `there are ${member}`, page);
    all.push(...page[member]);
    expect(page.nextCursor !== cursor || cursor === undefined, "a cursor moves on", page.nextCursor);
    cursor = page.nextCursor;
  } while (cursor);
  return all;
}

function structured(result) {
  expect(!result.isError, "the call succeeds", result.content);
  expect(result.structuredContent !== undefined, "the answer is structured", result);
  const text = result.content.find((part) => part.type === "text")?.text;
  expect(
    JSON.stringify(JSON.parse(text)) === JSON.stringify(result.structuredContent),
    "the text is the structured answer",
    text,
  );
  return result.structuredContent;
}

function envelope(result) {
  expect(result.isError === true, "the call is refused as a result", result);
  const text = result.content.find((part) => part.type === "text")?.text;
  expect(typeof text === "string" && text.length > 0, "the refusal says why", result);
  return text;
}

/** Lists, reads, writes and deletes with a client that is connected. */
export async function use(client, call) {
  const tools = await pages((page) => client.listTools(page), "tools");
  const names = new Set(tools.map((tool) => tool.name));
  expect(names.size === tools.length, "names of tools are unique");
  for (const name of [READ, CREATE, GET, DELETE]) expect(names.has(name), `${name} is listed`);
  const hints = Object.fromEntries(tools.map((tool) => [tool.name, tool.annotations]));
  expect(hints[READ].readOnlyHint === true && hints[DELETE].destructiveHint === true, "hints are right", hints[DELETE]);
  say("tools", { count: tools.length });

  const accounts = structured(await call(READ, { limit: 5 })).serviceAccounts;
  expect(Array.isArray(accounts) && accounts.length > 0, "there are accounts", accounts);
  say("read", { count: accounts.length });

  const words = () => ({ reason: "a client of others", idempotencyKey: randomUUID() });
  const name = `mcp ${randomUUID()}`;
  const group = structured(await call(CREATE, { name, ...words() })).group;
  expect(group.name === name, "the group has its name", group);
  say("write", { id: group.id });

  let text;
  try {
    text = envelope(await call(DELETE, { groupId: group.id, ...words() }));
  } catch (error) {
    // A client that checks arguments itself never asks.
    if (!/confirm/i.test(String(error))) throw error;
    text = String(error);
  }
  expect(/confirm/i.test(text), "the refusal names what is to be confirmed", text);
  say("unconfirmed", { text: text.slice(0, 200) });

  const deleted = await call(DELETE, { groupId: group.id, confirm: true, ...words() });
  expect(!deleted.isError, "the group is deleted", deleted);
  const gone = envelope(await call(GET, { groupId: group.id }));
  say("deleted", { text: gone.slice(0, 200) });

  const resources = await pages((page) => client.listResources(page), "resources");
  expect(resources.length > 0, "there are documents");
  const { contents } = await client.readResource({ uri: resources[0].uri });
  expect(contents.length === 1 && contents[0].uri === resources[0].uri, "the document is the one", contents);
  expect(contents[0].text.length > 0, "the document has text");
  say("resource", { count: resources.length, uri: resources[0].uri, length: contents[0].text.length });

  const prompts = await pages((page) => client.listPrompts(page), "prompts");
  expect(prompts.length > 0, "there are prompts");
  const prompt = prompts[0];
  const values = Object.fromEntries((prompt.arguments ?? []).map((argument) => [argument.name, "example"]));
  const { messages } = await client.getPrompt({ name: prompt.name, arguments: values });
  expect(messages.length > 0, "the prompt has messages", messages);
  say("prompt", { count: prompts.length, name: prompt.name });
}

/**
 * Waits until the driver has revoked the session, then calls again. `judge` looks at how the call failed, throws if
 * that is not a refusal, and returns what is worth saying.
 */
export async function isRefused(call, judge, [tool, values] = [READ, { limit: 1 }]) {
  structured(await call(tool, values));
  say("waiting");
  await line();
  const outcome = await call(tool, values).then(
    (result) => ({ result }),
    (error) => ({ error }),
  );
  expect(outcome.error !== undefined, "the call of an ended session is refused", outcome.result);
  const text = outcome.error.message ?? String(outcome.error);
  say("refused", { ...judge(text), text: text.slice(0, 300) });
}

/** The judge of clients over HTTP: the status and its challenge. */
export function unauthorized(seen) {
  return () => {
    expect(seen.status === 401, "the answer is 401", seen.status);
    expect(/resource_metadata=/.test(seen.challenge ?? ""), "the challenge names the metadata", seen.challenge);
    return { status: seen.status };
  };
}

/** The judge of clients that see no HTTP: the sentence says what is wrong. */
export function spoken(text) {
  expect(/401|unauthori[sz]ed|auth_required|authentication|token|revoked|credential/i.test(text), "the refusal says why", text);
  return {};
}

/** Runs a client's steps; whatever goes wrong is the last line. */
export async function run(steps) {
  try {
    await steps();
    process.exit(0);
  } catch (error) {
    say("failed", { text: reason(error).slice(0, 3000) });
    process.exit(1);
  }
}
