//! The pages of the sign-in: one column, no script, nothing from elsewhere, readable on a telephone and aloud.
//!
//! Keeps SI-6: names that strangers chose are text ([`provost_words::html`]); the policy that goes with a page
//! forbids scripts, images, frames and any style but the one below.

mod consent;

pub use consent::{ConsentQuestion, consent};

use super::answer::with_query;
use crate::oauth::grants::User;
use aws_lc_rs::digest::{SHA256, digest};
use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_FRAME_OPTIONS};
use http::{HeaderName, HeaderValue, StatusCode};
use provost_kernel::auth::OrganizationId;
use provost_kernel::expose::edge::Page;
use provost_words::html::Html;
use std::borrow::Cow;
use std::sync::LazyLock;

const STYLE: &str = include_str!("style.css");

const BEFORE_TITLE: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"robots\" content=\"noindex\">
<meta name=\"color-scheme\" content=\"light dark\">
";

/// Something that is told, and nothing to do about it here.
pub struct Notice {
    status: StatusCode,
    title: &'static str,
    words: Cow<'static, str>,
}

impl Notice {
    /// Makes one of a title and a few sentences.
    pub fn new(status: StatusCode, title: &'static str, words: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            title,
            words: words.into(),
        }
    }
}

/// Returns the page of a notice.
pub fn notice(notice: &Notice) -> Response {
    let text = document(notice.title, |html| {
        html.words("h1", "", notice.title);
        html.words("p", "", &notice.words);
    });
    respond(notice.status, text, "'none'")
}

/// What was begun is over, was begun elsewhere, or was tampered with: nobody is told which.
pub fn gone() -> Notice {
    Notice::new(
        StatusCode::BAD_REQUEST,
        "This sign-in is not valid any more",
        "It took longer than ten minutes, or it began in another browser. Nothing was given to the application. Start again \
         there.",
    )
}

/// Nobody knows the person.
pub fn stranger() -> Notice {
    Notice::new(
        StatusCode::FORBIDDEN,
        "You have no account here",
        "You are signed in at your provider, but this server knows no user for you. Ask an administrator of your \
         organization to add you, and to give you a role.",
    )
}

/// Somebody comes under the name of a user who was somebody else before.
pub fn withheld() -> Notice {
    Notice::new(
        StatusCode::FORBIDDEN,
        "An administrator has to link you",
        "You are signed in at your provider, but the user of your name was linked to another account there, or was renamed, \
         within the last 90 days. Ask an administrator of your organization to link you, or to allow that you are linked \
         anew, and start again.",
    )
}

/// Somebody is known and may do nothing.
pub fn unusable(organization: &OrganizationId, user: &User) -> Notice {
    let (title, why) = if user.is_active {
        (
            "Your account has no role",
            "has no role, so nothing can be done with it",
        )
    } else {
        ("Your account is suspended", "is suspended")
    };
    Notice::new(
        StatusCode::FORBIDDEN,
        title,
        format!(
            "Your account in the organization {organization} {why}. Ask an administrator of the organization. Nothing was \
             given to the application."
        ),
    )
}

/// Returns the page on which a provider is chosen.
pub fn providers(client: &str, links: &[(&str, String)]) -> Response {
    let text = document("Sign in", |html| {
        html.words("h1", "", "Sign in");
        html.element("p", &[], |html| {
            html.text("To go on to ");
            html.name(client);
            html.text(", choose where you have an account.");
        });
        choices(html, links, "With ");
    });
    respond(StatusCode::OK, text, "'none'")
}

/// Returns the page on which an organization is chosen.
pub fn organizations(client: &str, question: &str, keys: &[&str]) -> Response {
    let links: Vec<_> = keys
        .iter()
        .map(|key| {
            let parameters = [("question", question), ("organization", *key)];
            (*key, with_query(super::CONSENT, &parameters))
        })
        .collect();
    let text = document("Choose an organization", |html| {
        html.words("h1", "", "Choose an organization");
        html.element("p", &[], |html| {
            html.text("You are a user of several. For which one do you want to use ");
            html.name(client);
            html.text("?");
        });
        choices(html, &links, "");
    });
    respond(StatusCode::OK, text, "'none'")
}

fn choices(html: &mut Html, links: &[(&str, String)], before: &'static str) {
    html.element("ul", &[("class", "choices"), ("role", "list")], |html| {
        for (name, link) in links {
            html.element("li", &[], |html| {
                html.element("a", &[("class", "button"), ("href", link)], |html| {
                    html.text(before);
                    html.name(name);
                });
            });
        }
    });
}

/// Returns a whole page.
fn document(title: &str, main: impl FnOnce(&mut Html)) -> String {
    let mut html = Html::default();
    html.raw(BEFORE_TITLE);
    html.words("title", "", &format!("{title} · Provost"));
    html.raw("<style>");
    html.raw(STYLE);
    html.raw("</style>\n</head>\n<body>\n");
    html.element("header", &[], |html| html.words("p", "brand", "Provost"));
    html.element("main", &[], main);
    html.raw("</body>\n</html>\n");
    html.into_string()
}

/// `form_action` are the sources of the policy to which a form may lead, redirects included.
fn respond(status: StatusCode, text: String, form_action: &str) -> Response {
    static STYLE_HASH: LazyLock<String> =
        LazyLock::new(|| STANDARD.encode(digest(&SHA256, STYLE.as_bytes())));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; form-action {form_action}; frame-ancestors 'none'; base-uri 'none'",
        *STYLE_HASH
    );
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    // A page whose status is an error stays a page.
    response.extensions_mut().insert(Page);
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &'static str| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(CONTENT_TYPE, "text/html; charset=utf-8");
    set(REFERRER_POLICY, "no-referrer");
    set(X_FRAME_OPTIONS, "DENY");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}
