// A person's browser without a person: it follows redirects, keeps cookies, reads forms and presses the button that
// agrees. It holds what browsers hold against a page: `form-action` for every redirect behind a form, `Origin: null`
// where the page wants no referrer, cookies by host and path.
//
// As a program: `browser.mjs URL` walks from an authorization request to its redirect URI and visits that too.

import { fileURLToPath } from "node:url";

import { ALONE, expect, run, say } from "./steps.mjs";

const AGREES = /allow|continue|sign.?in|log.?in|approve|accept/i;
const DENIES = /deny|cancel|refuse/i;

class Jar {
  #cookies = [];

  keep(answer, url) {
    for (const line of answer.headers.getSetCookie()) {
      const [pair, ...words] = line.split(";").map((word) => word.trim());
      const [name, value] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      const attributes = new Map(words.map((word) => word.split("=")).map(([key, text]) => [key.toLowerCase(), text ?? ""]));
      expect(!name.startsWith("__Host-") || (attributes.has("secure") && attributes.get("path") === "/"), "a cookie keeps its prefix", line);
      const path = attributes.get("path") ?? "/";
      this.#cookies = this.#cookies.filter((known) => known.name !== name || known.path !== path || known.host !== url.hostname);
      const isOver = attributes.get("max-age") === "0" || Date.parse(attributes.get("expires") ?? "") < Date.now();
      if (!isOver) this.#cookies.push({ name, value, path, host: url.hostname });
    }
  }

  for(url) {
    const fits = ({ host, path }) => host === url.hostname && (url.pathname === path || url.pathname.startsWith(path.endsWith("/") ? path : `${path}/`));
    return this.#cookies.filter(fits).map(({ name, value }) => `${name}=${value}`).join("; ");
  }
}

const plain = (text) => text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(amp|lt|gt|quot|apos));/gi, (_, decimal, hex, name) =>
  name ? { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" }[name] : String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16)));

function attributes(tag) {
  const found = {};
  for (const [, name, , double, single, bare] of tag.matchAll(/([\w-]+)(\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?/g)) {
    found[name.toLowerCase()] ??= plain(double ?? single ?? bare ?? "");
  }
  return found;
}

/** The forms of a page, with what they would send but for the button. */
function forms(html) {
  return [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, head, body]) => {
    const fields = [];
    for (const [, tag] of body.matchAll(/<input\b([^>]*)>/gi)) {
      const { type = "text", name, value, checked } = attributes(tag);
      if (!name || /submit|button|image/i.test(type)) continue;
      if (/radio|checkbox/i.test(type) && checked === undefined && fields.some(([known]) => known === name)) continue;
      fields.push([name, value ?? "anything"]);
    }
    const buttons = [...body.matchAll(/<button\b([^>]*)>([\s\S]*?)<\/button>/gi)].map(([, tag, text]) => ({ ...attributes(tag), text: plain(text.replaceAll(/<[^>]*>/g, " ")).trim() }));
    return { ...attributes(head), fields, buttons };
  });
}

function allows(policy, target) {
  const directive = policy?.split(";").map((part) => part.trim().split(/\s+/)).find(([name]) => name === "form-action");
  if (!directive) return true;
  return directive.slice(1).some((source) => source === target.protocol || source === target.origin || (source === "'self'" && target.origin === allows.page));
}

/**
 * Walks from `url` to the first redirect that begins with `target` and returns it. `choice` is "allow" or "deny".
 */
export async function walk(url, target, choice = "allow") {
  const jar = new Jar();
  const seen = [];
  let [at, body, origin, policy] = [new URL(url), undefined, undefined, undefined];
  for (let step = 0; step < 30; step += 1) {
    const headers = { ...ALONE, Accept: "text/html", Cookie: jar.for(at), "Sec-Fetch-Site": origin ? "same-origin" : "none", "Sec-Fetch-Mode": "navigate" };
    if (body !== undefined) Object.assign(headers, { "Content-Type": "application/x-www-form-urlencoded", Origin: origin });
    const answer = await fetch(at, { method: body === undefined ? "GET" : "POST", body, headers, redirect: "manual" });
    seen.push(`${body === undefined ? "GET" : "POST"} ${at.origin}${at.pathname} ${answer.status}`);
    jar.keep(answer, at);
    const location = answer.headers.get("location");
    if (location) {
      at = new URL(location, at);
      body = undefined;
      expect(allows(policy, at), "the page's policy lets its form lead here", { policy, to: at.href, seen });
      if (at.href.startsWith(target)) return { url: at, seen };
      continue;
    }
    const html = await answer.text();
    expect(answer.status === 200, "the step is taken", { seen, html: html.replaceAll(/<style[\s\S]*?<\/style>/g, "").slice(0, 800) });
    const found = forms(html);
    if (found.length === 0) {
      const link = [...html.matchAll(/<a\b([^>]*)>/gi)].map(([, tag]) => attributes(tag).href).find((href) => href?.includes("/oauth/"));
      expect(link, "there is something to press", { seen, html: html.slice(0, 800) });
      at = new URL(link, at);
      continue;
    }
    const wanted = choice === "deny" ? DENIES : AGREES;
    const form = found.find((one) => one.buttons.some((button) => wanted.test(button.text) || wanted.test(button.value ?? ""))) ?? found[0];
    const button = form.buttons.find((one) => wanted.test(one.text) || wanted.test(one.value ?? "")) ?? form.buttons[0];
    const fields = [...form.fields, ...(button?.name ? [[button.name, button.value ?? ""]] : [])];
    policy = answer.headers.get("content-security-policy");
    allows.page = at.origin;
    origin = answer.headers.get("referrer-policy") === "no-referrer" ? "null" : at.origin;
    at = new URL(form.action || at, at);
    expect(allows(policy, at), "the page's policy lets its form go here", { policy, to: at.href });
    body = new URLSearchParams(fields).toString();
    if (!/post/i.test(form.method ?? "get")) [at.search, body] = [body, undefined];
  }
  throw new Error(`the way has no end: ${seen.join(", ")}`);
}

/** Visits the client's own address. A client may show where to go a moment before it listens there. */
async function arrive(url) {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      return await fetch(url, { headers: ALONE });
    } catch (error) {
      // Refused, so that nothing of the answer can have arrived yet.
      if (error.cause?.code !== "ECONNREFUSED" || Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await run(async () => {
    const url = new URL(process.argv[2]);
    const end = await walk(url, url.searchParams.get("redirect_uri"));
    const answer = await arrive(end.url);
    say("arrived", { path: end.url.pathname, parameters: [...end.url.searchParams.keys()], status: answer.status, steps: end.seen.length });
  });
}
