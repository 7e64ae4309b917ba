// The MCP Inspector's command line: `inspector.mjs legacy|modern`. Every step is a process and a connection of its own.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

import { expect, isRefused, run, say, spoken, use } from "./steps.mjs";

const [era] = process.argv.slice(2);
const launcher = fileURLToPath(new URL("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url));

function inspect(method, words = [], token = process.env.PROVOST_TOKEN) {
  const all = [
    launcher,
    "--cli",
    process.env.PROVOST_MCP_URL,
    ...["--transport", "http", "--protocol-era", era, "--stored-auth-only", "--format", "json", "--quiet"],
    ...["--header", `Authorization: Bearer ${token}`],
    ...["--method", method],
    ...words,
  ];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, all, { timeout: 60_000, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      try {
        const answer = JSON.parse(stdout);
        resolve({ code: error?.code ?? 0, answer: answer.result ?? answer, stderr });
      } catch {
        reject(new Error(`${method}: ${stderr || error?.message || stdout}`));
      }
    });
  });
}

const answer = async (method, words) => (await inspect(method, words)).answer;
const client = {
  listTools: () => answer("tools/list"),
  listResources: () => answer("resources/list"),
  readResource: ({ uri }) => answer("resources/read", ["--uri", uri]),
  listPrompts: () => answer("prompts/list"),
  getPrompt: ({ name, arguments: values }) =>
    answer("prompts/get", [
      ...["--prompt-name", name],
      ...Object.entries(values).flatMap(([key, value]) => ["--prompt-args", `${key}=${value}`]),
    ]),
};
const call = (tool, values) => answer("tools/call", ["--tool-name", tool, "--tool-args-json", JSON.stringify(values)]);

await run(async () => {
  // Of every tool there is, so with the token of somebody who may all.
  const strict = await inspect("tools/list", ["--strict"], process.env.PROVOST_ADMIN_TOKEN);
  const errors = [...strict.stderr.matchAll(/^Error: (.*)\n\s*(Path: .*)\n\s*(Issue: .*)/gm)].map(([, ...lines]) => lines.join(" "));
  expect(errors.length === 0, "schemas are portable", errors);
  const remarks = strict.stderr.match(/^0 errors, .*$/m)?.[0];
  expect(remarks && strict.answer.tools.length > 100, "all tools were judged", { remarks, tools: strict.answer.tools?.length });
  say("connected", { era, tools: strict.answer.tools.length, remarks });
  await use(client, call);
  await isRefused(call, spoken);
});
