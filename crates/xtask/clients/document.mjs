// Serves a client's metadata document over HTTPS: `document.mjs CERTIFICATE KEY REDIRECT_URI`. It prints the document's
// URL, which is the client's id, and ends with its stdin.

import { readFileSync } from "node:fs";
import https from "node:https";

const [cert, key, redirectUri] = process.argv.slice(2);
const server = https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (asked, answered) => {
  const found = asked.url === "/client.json";
  const document = {
    client_id: url(),
    client_name: "A client that documents itself",
    redirect_uris: [redirectUri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  answered.writeHead(found ? 200 : 404, { "Content-Type": "application/json", "Cache-Control": "max-age=60" });
  answered.end(JSON.stringify(found ? document : {}));
});
const url = () => `https://127.0.0.1:${server.address().port}/client.json`;
server.listen(0, "127.0.0.1", () => console.log(url()));
process.stdin.on("end", () => process.exit(0)).resume();
