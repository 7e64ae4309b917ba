// The whole way through the authorization server with the TypeScript SDK: `oauth.mjs CLIENT_ID REDIRECT_URI`.
//
// Nothing is known but the endpoint, the client's id (or the URL of its metadata document) and its redirect URI: the
// rest is found from the first 401.

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

import { walk } from "./browser.mjs";
import { expect, line, run, say, watched } from "./steps.mjs";

const [clientId, redirectUri] = process.argv.slice(2);
const endpoint = new URL(process.env.PROVOST_MCP_URL);
const READ = "getHeadlessCapabilities";
const isDocument = clientId.startsWith("https:");

/** What the SDK wants to be kept; only in memory. */
class Keeper {
  asked;
  kept;
  verifier;
  redirectUrl = redirectUri;
  clientMetadata = { client_name: "oauth", redirect_uris: [redirectUri], token_endpoint_auth_method: "none" };
  #state;

  state() {
    return (this.#state = crypto.randomUUID());
  }
  clientMetadataUrl = isDocument ? clientId : undefined;
  #client = isDocument ? undefined : { client_id: clientId };

  clientInformation() {
    return this.#client;
  }
  saveClientInformation(client) {
    this.#client = client;
  }
  tokens() {
    return this.kept;
  }
  saveTokens(tokens) {
    this.kept = tokens;
  }
  redirectToAuthorization(url) {
    this.asked = url;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
  saveDiscoveryState(state) {
    this.discovered = state;
  }
  discoveryState() {
    return this.discovered;
  }
  invalidateCredentials(what) {
    if (what === "all" || what === "tokens") this.kept = undefined;
  }
  isOurs(state) {
    return state === this.#state;
  }
}

async function open(keeper, seen) {
  const { fetch } = seen;
  const client = new Client({ name: "oauth", version: "1.0.0" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  const transport = new StreamableHTTPClientTransport(endpoint, { authProvider: keeper, fetch });
  return { client, transport, connect: () => client.connect(transport) };
}

async function mustAuthorize(doing) {
  const error = await doing.then(
    () => undefined,
    (thrown) => thrown,
  );
  const all = [error, error?.cause, error?.data?.cause];
  expect(all.some((one) => one instanceof UnauthorizedError || one?.name === "UnauthorizedError" || /unauthori[sz]ed/i.test(one?.message ?? "")), "the client is told to ask for an authorization", String(error?.stack ?? error));
}

await run(async () => {
  const keeper = new Keeper();
  const seen = watched();
  const first = await open(keeper, seen);
  await mustAuthorize(first.connect());
  const asked = keeper.asked;
  expect(asked?.pathname === "/oauth/authorize", "the way leads to the authorization server", asked?.href);
  for (const [name, value] of [["response_type", "code"], ["code_challenge_method", "S256"], ["client_id", clientId], ["redirect_uri", redirectUri], ["resource", endpoint.href]]) {
    expect(asked.searchParams.get(name) === value, `${name} is ${value}`, asked.href);
  }
  say("discovered", { scope: asked.searchParams.get("scope"), parameters: [...asked.searchParams.keys()] });

  const refused = await walk(asked, redirectUri, "deny");
  expect(refused.url.searchParams.get("error") === "access_denied", "a denial is told", refused.url.href);
  expect(!refused.url.searchParams.has("code"), "a denial has no code");
  say("denied", { parameters: [...refused.url.searchParams.keys()] });

  const { url, seen: steps } = await walk(asked, redirectUri);
  const answer = url.searchParams;
  expect(!answer.has("error"), "the authorization is given", url.href);
  expect(keeper.isOurs(answer.get("state")), "the state comes back", url.href);
  expect(answer.get("iss") === endpoint.origin, "the answer says who it is from", url.href);
  say("authorized", { steps });
  await first.transport.finishAuth(answer);
  const { access_token: access, refresh_token: refresh, ...rest } = keeper.kept;
  expect(access && refresh && /^bearer$/i.test(rest.token_type), "there are tokens", Object.keys(keeper.kept));
  say("token", rest);

  const second = await open(keeper, seen);
  await second.connect();
  const { tools } = await second.client.listTools();
  expect(tools.some((tool) => tool.name === READ), "what was asked for is listed", tools.map((tool) => tool.name));
  const call = () => second.client.callTool({ name: READ, arguments: {} });
  expect(!(await call()).isError, "a call is answered");
  say("called", { tools: tools.length, tool: READ });

  // A token that is lost is made anew from the other one, without a person.
  keeper.kept = { ...keeper.kept, access_token: "lost" };
  keeper.asked = undefined;
  expect(!(await call()).isError, "a call is answered after a refresh");
  expect(keeper.asked === undefined && keeper.kept.refresh_token !== refresh, "the refresh token is another one");
  say("refreshed");

  say("waiting");
  await line();
  keeper.asked = undefined;
  await mustAuthorize(call());
  expect(keeper.asked?.pathname === "/oauth/authorize", "a person is asked again", keeper.asked?.href);
  expect(keeper.kept === undefined, "no token is left", Object.keys(keeper.kept ?? {}));
  say("refused", { status: 401 });
});
