// Raw requests for random traffic: a line of JSON in, a line of JSON out, in order.
//
// `{token, client, revision}`: that client comes with that token and lists its tools. `{status}` is what it was answered.
// `{signIn, redirect, login, scopes}`: that person signs in for that client. `{status, token, scope}` is what came of it.
// The token is for the MCP address, or for the resource that is named by `resource`.

import { createHash, randomBytes } from "node:crypto";
import { createInterface } from "node:readline";

import { walk } from "./browser.mjs";
import { ALONE, reason } from "./steps.mjs";

const url = process.env.PROVOST_MCP_URL;
const NEW = "2026-07-28";

async function post(token, revision, message, more = {}) {
  const headers = {
    ...ALONE,
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    Authorization: `Bearer ${token}`,
    "MCP-Protocol-Version": revision,
    ...more,
  };
  return fetch(url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
}

const ended = async (answer) => {
  const text = await answer.text();
  return { status: answer.status, isAnswered: /"result"/.test(text), text: answer.ok ? "" : text.slice(0, 200) };
};

async function come({ token, client, revision }) {
  const info = { name: client, version: "1" };
  if (revision === NEW) {
    const prefix = "io.modelcontextprotocol/";
    const meta = { [`${prefix}protocolVersion`]: revision, [`${prefix}clientInfo`]: info, [`${prefix}clientCapabilities`]: {} };
    const message = { id: 1, method: "tools/list", params: { _meta: meta } };
    return ended(await post(token, revision, message, { "Mcp-Method": "tools/list" }));
  }
  const params = { protocolVersion: revision, capabilities: {}, clientInfo: info };
  const hello = await post(token, revision, { id: 1, method: "initialize", params });
  const said = await ended(hello);
  if (said.status !== 200) return said;
  const session = hello.headers.get("mcp-session-id");
  const more = session ? { "Mcp-Session-Id": session } : {};
  await ended(await post(token, revision, { method: "notifications/initialized" }, more));
  return ended(await post(token, revision, { id: 2, method: "tools/list", params: {} }, more));
}

async function signIn({ signIn: client, redirect, login, scopes, resource = url }) {
  const origin = new URL(url).origin;
  const verifier = randomBytes(32).toString("base64url");
  const state = randomBytes(16).toString("base64url");
  const asked = new URL("/oauth/authorize", origin);
  asked.search = new URLSearchParams({
    response_type: "code",
    client_id: client,
    redirect_uri: redirect,
    scope: scopes.join(" "),
    resource,
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    login_hint: login,
  });
  const { url: end } = await walk(asked, redirect);
  if (end.searchParams.get("state") !== state) throw new Error(`another state: ${end}`);
  const body = new URLSearchParams({
    grant_type: "authorization_code",
    code: end.searchParams.get("code") ?? "",
    redirect_uri: redirect,
    client_id: client,
    code_verifier: verifier,
    resource,
  });
  const answer = await fetch(new URL("/oauth/token", origin), { method: "POST", body, headers: ALONE });
  const said = await answer.json();
  return { status: answer.status, token: said.access_token, scope: said.scope, text: said.error };
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const doing = asked.signIn ? signIn(asked) : come(asked);
  console.log(JSON.stringify(await doing.catch((error) => ({ status: 0, text: reason(error) }))));
}
