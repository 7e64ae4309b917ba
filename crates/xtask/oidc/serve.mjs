// A real OpenID provider on a free loopback port; it ends with its standard input, however the test that holds it ends.
//
//   node serve.mjs <redirect URI> [port]
//
// Prints its issuer. Whoever `login_hint` names signs in at once, as `<hint>@acme.example`; two hints are special:
// `unverified` has an address that is not verified, and `refuses` gives up. Clients differ in how their tokens are signed.

import { createServer } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import Provider from "oidc-provider";

// Standard output is for the issuer alone: nobody reads it any more after that line.
console.info = console.warn = console.error;

const [redirectUri, port = "0"] = process.argv.slice(2);
const algorithms = ["RS256", "PS256", "ES256", "EdDSA"];

const key = async (alg) => {
  const options = alg === "EdDSA" ? { crv: "Ed25519" } : {};
  const { privateKey } = await generateKeyPair(alg, { extractable: true, ...options });
  return { ...(await exportJWK(privateKey)), alg, kid: alg.toLowerCase(), use: "sig" };
};

const client = (alg, method) => ({
  client_id: `provost-${alg.toLowerCase()}${method === "client_secret_basic" ? "" : `-${method}`}`,
  ...(method === "none" ? {} : { client_secret: "a secret / with + signs: and more" }),
  redirect_uris: [redirectUri],
  grant_types: ["authorization_code"],
  response_types: ["code"],
  token_endpoint_auth_method: method,
  id_token_signed_response_alg: alg,
});

const configuration = {
  jwks: { keys: await Promise.all(algorithms.map(key)) },
  clients: [
    ...algorithms.map((alg) => client(alg, "client_secret_basic")),
    client("ES256", "none"),
  ],
  enabledJWA: { idTokenSigningAlgValues: algorithms },
  cookies: { keys: ["a key of cookies"] },
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  // The claims stand in the ID token: the product asks no user-info endpoint.
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@acme.example`, email_verified: id !== "unverified" }),
  }),
};

const server = createServer();
// Longer than any pause between two steps of a sign-in: what is sent again over a connection meets no end of it.
server.keepAliveTimeout = 120_000;
server.listen(Number(port), "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration);

  const interact = async (request, response) => {
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
    const account = params.login_hint ?? "ada";
    if (account === "refuses") {
      const result = { error: "access_denied", error_description: "given up" };
      return provider.interactionFinished(request, response, result);
    }
    if (prompt.name === "login") {
      return provider.interactionFinished(request, response, { login: { accountId: account } });
    }
    const grant =
      (grantId && (await provider.Grant.find(grantId))) ||
      new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    const result = { consent: { grantId: await grant.save() } };
    return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
  };

  const answer = provider.callback();
  server.on("request", (request, response) => {
    if (!request.url.startsWith("/interaction/")) return answer(request, response);
    return interact(request, response).catch((error) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });
  process.stdout.write(`${issuer}\n`);
});

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
