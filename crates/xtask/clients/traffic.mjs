// Raw requests for random traffic: a line of JSON in, a line of JSON out, in order.
//
// `{token, client, revision}`: that client comes with that token and lists its tools. `{status}` is what it was answered.

import { createInterface } from "node:readline";

const url = process.env.PROVOST_MCP_URL;
const NEW = "2026-07-28";

async function post(token, revision, message, more = {}) {
  const headers = {
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

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await come(JSON.parse(line)).catch((error) => ({ status: 0, text: String(error) }))));
}
