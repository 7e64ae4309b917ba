// Codex itself, without a model: its app server connects, lists and calls (`codex.mjs NAME
// [reader]`, the name in its configuration). The steps are a part of those in `steps.mjs`; Codex has no prompts.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { expect, isRefused, run, say, spoken } from "./steps.mjs";

const [server, rights] = process.argv.slice(2);
const main = fileURLToPath(new URL("node_modules/@openai/codex/bin/codex.js", import.meta.url));

await run(async () => {
  const codex = spawn(process.execPath, [main, "app-server"], { stdio: ["pipe", "pipe", "ignore"] });
  process.on("exit", () => codex.kill());
  let last = 0;
  const waiting = new Map();
  createInterface({ input: codex.stdout }).on("line", (text) => {
    const message = JSON.parse(text);
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  const ask = (method, params) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, (message) => (message.error ? reject(new Error(message.error.message)) : resolve(message.result)));
      codex.stdin.write(`${JSON.stringify({ id: last, method, params })}\n`);
    });

  await ask("initialize", { clientInfo: { name: "provost-clients", title: null, version: "1.0.0" } });
  codex.stdin.write(`${JSON.stringify({ method: "initialized" })}\n`);
  const { data } = await ask("mcpServerStatus/list", {});
  const status = data.find((one) => one.name === server);
  expect(status?.serverInfo?.name === "provost", "Codex reaches the server", data.map(({ name, serverInfo }) => ({ name, serverInfo })));
  say("connected", { server: status.serverInfo });
  say("tools", { count: Object.keys(status.tools).length, resources: status.resources?.length });

  const { thread } = await ask("thread/start", { cwd: process.cwd(), ephemeral: true });
  const call = (tool, values) => ask("mcpServer/tool/call", { server, tool, arguments: values, threadId: thread.id });
  const words = () => ({ reason: "a client of others", idempotencyKey: randomUUID() });
  const read = await call("getHeadlessCapabilities", {});
  expect(!read.isError && read.structuredContent, "there is an answer", read);
  say("read");
  if (rights !== "reader") await write(call, words);
  const { uri } = status.resources[0];
  const { contents } = await ask("mcpServer/resource/read", { server, uri, threadId: thread.id });
  expect(contents[0].text.length > 0, "the document has text", contents);
  say("resource", { uri });
  // Codex shows its model a 401 as a result that carries the challenge.
  const strict = async (tool, values) => {
    const result = await call(tool, values);
    const challenge = result._meta?.["mcp/www_authenticate"];
    if (challenge) throw new Error(`${result.content[0].text}: ${challenge.join(", ")}`);
    return result;
  };
  await isRefused(strict, spoken, ["getHeadlessCapabilities", {}]);
});

async function write(call, words) {
  const made = await call("createHeadlessDirectoryGroup", { name: `codex ${randomUUID()}`, ...words() });
  expect(!made.isError, "a group is made", made);
  const groupId = made.structuredContent.group.id;
  const deleted = await call("deleteHeadlessDirectoryGroup", { groupId, confirm: true, ...words() });
  expect(!deleted.isError, "the group is deleted", deleted);
  say("write", { id: groupId });
}
