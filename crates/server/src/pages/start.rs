//! The page at `/`: what this is, whether it takes requests, and where to go.

use super::reference::block;
use super::{DOCS, document};
use provost_words::html::Html;

/// Returns the page.
pub fn page(is_ready: bool) -> String {
    document("Provost", "narrow", |html| {
        html.words("h1", "", "This is a Provost server");
        html.words(
            "p",
            "",
            "It decides which people and programs of an organization may use which AI models, MCP servers, tools, skills and data, and \
             keeps what they did. It has no web console: it is used by its API, by its command line and by MCP clients.",
        );
        let (class, words) = if is_ready {
            ("state good", "It is ready: it takes requests.")
        } else {
            (
                "state bad",
                "It is not ready. Its operator finds the reason at /readyz and in the log.",
            )
        };
        html.element("p", &[("class", class), ("role", "status")], |html| {
            html.text(words);
        });
        html.words("h2", "", "Where to go");
        html.element("dl", &[("class", "facts")], |html| {
            go(
                html,
                DOCS,
                "API reference",
                "Every operation, with examples for curl, the command line, Python and MCP.",
            );
            go(
                html,
                "/api/headless/v1/openapi.json",
                "OpenAPI 3.1 document",
                "For generators and other tools; /api/headless/v1/openapi-3.0.json is its older form.",
            );
            say(html, "/mcp", "Where MCP clients connect. They sign you in.");
            go(html, "/readyz", "Readiness", "For load balancers and probes.");
            go(
                html,
                "/.well-known/provost-keys.json",
                "Public keys",
                "For whoever checks checkpoints, releases and skills.",
            );
        });
        html.words("h2", "", "From a shell");
        html.words(
            "p",
            "",
            "Your administrator gives you a token and the key of your organization; then",
        );
        block(html, "provost login\nprovost whoami");
        html.words("p", "soft", "provost --help lists what else it can do.");
    })
}

fn go(html: &mut Html, place: &'static str, name: &str, words: &str) {
    html.element("div", &[], |html| {
        html.element("dt", &[], |html| {
            html.element("a", &[("href", place)], |html| html.text(name));
        });
        html.words("dd", "", words);
    });
}

fn say(html: &mut Html, place: &str, words: &str) {
    html.element("div", &[], |html| {
        html.element("dt", &[], |html| html.words("code", "", place));
        html.words("dd", "", words);
    });
}
