// The official TypeScript SDK: `typescript.mjs 1|2 http|stdio REVISION NAME`.
//
// 1 is `@modelcontextprotocol/sdk` (up to 2025-11-25), 2 is `@modelcontextprotocol/client` (2026-07-28 as well).

import { expect, isRefused, run, say, spoken, unauthorized, use, watched } from "./steps.mjs";

const [sdk, way, revision, name] = process.argv.slice(2);
const info = { name, version: "1.0.0" };

async function parts() {
  if (sdk === "1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    return { client: new Client(info), StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const mode = revision === "2026-07-28" ? { pin: revision } : "legacy";
  return { client: new Client(info, { versionNegotiation: { mode } }), StreamableHTTPClientTransport, StdioClientTransport };
}

await run(async () => {
  const { client, StreamableHTTPClientTransport, StdioClientTransport } = await parts();
  const { seen, fetch } = watched();
  const transport =
    way === "http"
      ? new StreamableHTTPClientTransport(new URL(process.env.PROVOST_MCP_URL), {
          fetch,
          requestInit: { headers: { Authorization: `Bearer ${process.env.PROVOST_TOKEN}` } },
        })
      : new StdioClientTransport({
          command: process.env.PROVOST_BINARY,
          args: ["mcp", "--toolsets", "all"],
          env: Object.fromEntries(
            ["PATH", "HOME", "PROVOST_URL", "PROVOST_TOKEN", "PROVOST_ORGANIZATION"].map((name) => [name, process.env[name] ?? ""]),
          ),
        });
  await client.connect(transport);
  const negotiated = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? revision;
  expect(negotiated === revision, `the revision is ${revision}`, negotiated);
  const server = client.getServerVersion();
  expect(server?.name === "provost", "the server says its name", server);
  say("connected", { revision: negotiated, server });

  const call = (tool, values) => client.callTool({ name: tool, arguments: values });
  await use(client, call);
  await isRefused(call, way === "http" ? unauthorized(seen) : spoken);
  await client.close().catch(() => {});
});
