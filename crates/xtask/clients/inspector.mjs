// The MCP Inspector's command line: `inspector.mjs legacy|modern`. Every step is a process and a connection of its own.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";

import { expect, isRefused, run, say, spoken, use } from "./steps.mjs";

const [era] = process.argv.slice(2);
const launcher = fileURLToPath(new URL("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url));

function inspect(method, words = []) {
  const all = [
    launcher,
    "--cli",
    process.env.PROVOST_MCP_URL,
    ...["--transport", "http", "--protocol-era", era, "--stored-auth-only", "--format", "json", "--quiet"],
    ...["--header", `Authorization: Bearer ${process.env.PROVOST_TOKEN}`],
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
  // What it calls an error is worth one, but for `true` as a schema: any JSON is what is meant there (`before`, `after`).
  const strict = await inspect("tools/list", ["--strict"]);
  const errors = [...strict.stderr.matchAll(/^Error: (.*)\n\s*(Path: .*)\n\s*(Issue: .*)/gm)].map(([, ...lines]) => lines.join(" "));
  const unexplained = errors.filter((error) => !error.includes("Bare `true`"));
  expect(unexplained.length === 0, "schemas are portable", unexplained);
  say("connected", { era, remarks: strict.stderr.match(/^\d+ errors?, .*$/m)?.[0] });
  await use(client, call);
  await isRefused(call, spoken);
});
