// Stands between the conformance suite, which cannot send an Authorization header, and the server:
// `forward.mjs ORIGIN`, the token in PROVOST_TOKEN. It prints its own origin and ends with its stdin.
//
// It adds the header and turns its own Host and Origin into the server's; everything else goes through as it is.

import http from "node:http";

const server = new URL(process.argv[2]);
const authorization = `Bearer ${process.env.PROVOST_TOKEN}`;
const agent = new http.Agent({ keepAlive: true });

const forwarder = http.createServer((asked, answered) => {
  const own = `127.0.0.1:${forwarder.address().port}`;
  const headers = [];
  for (let at = 0; at < asked.rawHeaders.length; at += 2) {
    const [name, value] = asked.rawHeaders.slice(at, at + 2);
    const rewritten =
      /^host$/i.test(name) && value === own ? server.host : /^origin$/i.test(name) && value === `http://${own}` ? server.origin : value;
    headers.push(name, rewritten);
  }
  headers.push("Authorization", authorization);
  const sent = http.request({ host: server.hostname, port: server.port, path: asked.url, method: asked.method, headers, agent });
  sent.on("response", (answer) => {
    answered.writeHead(answer.statusCode, answer.statusMessage, answer.rawHeaders);
    answer.pipe(answered);
  });
  sent.on("error", () => answered.destroy());
  answered.on("close", () => sent.destroy());
  asked.pipe(sent);
});
forwarder.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${forwarder.address().port}`));
process.stdin.on("end", () => process.exit(0)).resume();
