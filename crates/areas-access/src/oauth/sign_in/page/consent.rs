//! The page that asks for consent: who asks, for whom, for what.

use super::super::CONSENT;
use super::super::offer::Offer;
use super::super::request::AuthorizationRequest;
use super::super::words::{Group, groups};
use super::{document, respond};
use crate::oauth::command_line;
use crate::oauth::grants::{Client, User};
use axum::response::Response;
use http::{StatusCode, Uri};
use provost_kernel::auth::{OrganizationId, Role, ScopeSet};
use provost_words::html::Html;
use std::net::IpAddr;

/// What is asked of whom.
pub struct ConsentQuestion<'a> {
    /// Who asks.
    pub client: &'a Client,
    /// What it asked for.
    pub asked: &'a AuthorizationRequest,
    /// The organization that it is for.
    pub organization: &'a OrganizationId,
    /// Who is asked.
    pub user: &'a User,
    /// Their role.
    pub role: Role,
    /// What consent gives.
    pub offer: &'a Offer,
    /// The sealed question.
    pub question: &'a str,
}

/// Returns the page.
pub fn consent(asking: &ConsentQuestion<'_>) -> Response {
    let is_possible = asking.offer.scopes != ScopeSet::default();
    let text = document("Allow access", |html| {
        html.element("h1", &[], |html| {
            html.text("Allow ");
            html.name(&asking.client.name);
            html.text(" to act for you?");
        });
        facts(html, asking);
        if is_possible {
            acts(html, asking);
        } else {
            html.words(
                "p",
                "warning",
                "Your role allows nothing of what the application asks for. Ask an administrator of the organization if \
                 you need it.",
            );
        }
        beyond(html, asking.offer.beyond_role);
        if asking.asked.unknown_scopes > 0 {
            html.words(
                "p",
                "hint",
                "The application also asks for what this server does not know. It gets nothing for that.",
            );
        }
        form(html, asking, is_possible);
    });
    respond(StatusCode::OK, text, &form_action(&asking.asked.redirect_uri))
}

fn facts(html: &mut Html, asking: &ConsentQuestion<'_>) {
    let is_ours = asking.client.id == command_line::ID;
    html.element("section", &[("aria-labelledby", "who")], |html| {
        html.element("h2", &[("id", "who")], |html| html.text("Who asks"));
        html.element("dl", &[("class", "facts")], |html| {
            fact(html, "Application", |html| html.name(&asking.client.name));
            match host(&asking.client.id) {
                None if is_ours => fact(html, "Known as", |html| html.text("the command line of this server")),
                Some(host) => fact(html, "Known by", |html| html.words("strong", "host", &host)),
                None => fact(html, "Registered by", |html| {
                    html.text("an administrator of ");
                    html.name(asking.organization.as_str());
                }),
            }
            fact(html, "Answer goes to", |html| {
                html.words("span", "host", &destination(&asking.asked.redirect_uri));
            });
            fact(html, "Your account", |html| {
                html.name(&asking.user.display);
                html.text(&format!(" ({})", asking.role.as_str()));
            });
            fact(html, "Organization", |html| html.name(asking.organization.as_str()));
        });
        if let Some(host) = host(&asking.client.id) {
            html.element("p", &[("class", "warning")], |html| {
                html.text("The application chose its name itself, and nobody here has checked it. Go on only if you know and trust ");
                html.words("strong", "host", &host);
                html.text(".");
            });
        }
        if is_ours {
            html.words(
                "p",
                "warning",
                "Go on only if you have just typed provost login yourself: another program on this computer can call itself so.",
            );
        } else if is_this_computer(&asking.asked.redirect_uri) {
            html.words(
                "p",
                "hint",
                "The answer goes to a program on this computer. Go on only if you have just started it yourself.",
            );
        }
    });
}

fn fact(html: &mut Html, name: &'static str, value: impl FnOnce(&mut Html)) {
    html.element("div", &[], |html| {
        html.words("dt", "", name);
        html.element("dd", &[], value);
    });
}

fn acts(html: &mut Html, asking: &ConsentQuestion<'_>) {
    html.element("section", &[("aria-labelledby", "what")], |html| {
        html.element("h2", &[("id", "what")], |html| html.text("What it could do"));
        list(html, &groups(asking.offer.scopes));
        html.element("p", &[("class", "hint")], |html| {
            html.text("In ");
            html.name(asking.organization.as_str());
            html.text(
                ", and never more than your role allows. You are not asked again until the access ends: after 30 days \
                 without use, after 90 days at the latest, or when an administrator ends it.",
            );
        });
    });
}

fn list(html: &mut Html, groups: &[Group]) {
    html.element("ul", &[("class", "acts"), ("role", "list")], |html| {
        for group in groups {
            html.element("li", &[], |html| {
                html.words("h3", "", group.title);
                html.element("ul", &[], |html| {
                    for act in &group.acts {
                        html.element("li", &[], |html| {
                            html.text(&act.words);
                            if act.is_far_reaching {
                                html.text(" ");
                                html.words("strong", "mark", "far-reaching");
                            }
                        });
                    }
                });
            });
        }
    });
}

fn beyond(html: &mut Html, scopes: ScopeSet) {
    if scopes == ScopeSet::default() {
        return;
    }
    html.element("details", &[], |html| {
        html.words("summary", "", "Asked for, and not possible with your role");
        list(html, &groups(scopes));
    });
}

fn form(html: &mut Html, asking: &ConsentQuestion<'_>, is_possible: bool) {
    let scopes = asking.offer.scopes.to_list().join(" ");
    html.element("form", &[("method", "post"), ("action", CONSENT)], |html| {
        let mut hidden = |name, value| {
            html.void("input", &[("type", "hidden"), ("name", name), ("value", value)]);
        };
        hidden("question", asking.question);
        hidden("organization", asking.organization.as_str());
        hidden("scopes", &scopes);
        let mut button = |value, class, words| {
            let attributes = [
                ("type", "submit"),
                ("name", "decision"),
                ("value", value),
                ("class", class),
            ];
            html.element("button", &attributes, |html| html.text(words));
        };
        if is_possible {
            button("allow", "button primary", "Allow");
            button("deny", "button", "Deny");
        } else {
            button("deny", "button", "Go back to the application");
        }
    });
}

/// Returns the host that a client is known by, if it is known by the URL of its document.
fn host(client_id: &str) -> Option<String> {
    let uri: Uri = client_id.strip_prefix("https://").and(client_id.parse().ok())?;
    uri.authority().map(ToString::to_string)
}

/// Says where a redirect target leads, in few words.
fn destination(redirect_uri: &str) -> String {
    if is_this_computer(redirect_uri) {
        return "a program on this computer".to_owned();
    }
    match redirect_uri.parse::<Uri>() {
        Ok(uri) if uri.authority().is_some() => uri.authority().map(ToString::to_string).unwrap_or_default(),
        _ => {
            let scheme = redirect_uri.split(':').next().unwrap_or_default();
            format!("the program that is installed for {scheme}:")
        }
    }
}

fn is_this_computer(redirect_uri: &str) -> bool {
    redirect_uri.starts_with("http://")
}

/// Returns the sources to which the form may lead. Chromium holds the policy against every redirect behind a form, not only
/// the first, and a client's target often redirects once more, to a page of its maker: such pages are `https:`.
fn form_action(redirect_uri: &str) -> String {
    let scheme = redirect_uri.split(':').next().unwrap_or_default();
    let target = match redirect_uri.parse::<Uri>() {
        Ok(uri) if scheme == "http" => {
            let host = uri.host().unwrap_or_default();
            // An address of IPv6 has no form in a policy.
            let is_v6 = host
                .trim_matches(['[', ']'])
                .parse::<IpAddr>()
                .is_ok_and(|ip| ip.is_ipv6());
            match uri.authority() {
                Some(authority) if !is_v6 => format!("http://{authority}"),
                _ => "http:".to_owned(),
            }
        }
        _ if scheme == "https" => String::new(),
        _ => format!("{scheme}:"),
    };
    format!("'self' https: {target}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_to_the_target_and_what_lies_behind_it() {
        for (uri, sources, words) in [
            ("https://app.example/cb", "'self' https:", "app.example"),
            (
                "http://127.0.0.1:4711/cb",
                "'self' https: http://127.0.0.1:4711",
                "a program on this computer",
            ),
            (
                "http://localhost:1/cb",
                "'self' https: http://localhost:1",
                "a program on this computer",
            ),
            (
                "http://[::1]:4711/cb",
                "'self' https: http:",
                "a program on this computer",
            ),
            (
                "com.example.app:/cb",
                "'self' https: com.example.app:",
                "the program that is installed for com.example.app:",
            ),
        ] {
            assert_eq!(form_action(uri), sources, "{uri}");
            assert_eq!(destination(uri), words, "{uri}");
        }
    }

    #[test]
    fn a_client_is_known_by_its_host() {
        assert_eq!(
            host("https://app.example/client.json").as_deref(),
            Some("app.example")
        );
        assert_eq!(
            host("https://app.example:8443/c").as_deref(),
            Some("app.example:8443")
        );
        assert_eq!(host("ocl_01"), None);
    }
}
