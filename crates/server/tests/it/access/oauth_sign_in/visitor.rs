//! A browser: it keeps cookies, follows nothing by itself, and shows what it got.

use super::{authorize, parameter, query};
use crate::support::App;
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use provost_kernel::expose::edge::Peer;
use std::net::IpAddr;
use tower::ServiceExt;

#[derive(Default, Clone)]
pub struct Visitor {
    pub cookies: Vec<(String, String)>,
    /// Headers of every request besides.
    pub headers: Vec<(&'static str, &'static str)>,
    /// Where it calls from.
    pub address: Option<IpAddr>,
}

#[derive(Debug)]
pub struct PageView {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Visitor {
    pub async fn get(&mut self, app: &App, target: &str) -> PageView {
        self.send(app, "GET", target, None).await
    }

    pub async fn post(&mut self, app: &App, target: &str, form: &[(&str, &str)]) -> PageView {
        self.send(app, "POST", target, Some(query(form))).await
    }

    async fn send(&mut self, app: &App, method: &str, target: &str, form: Option<String>) -> PageView {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in &self.cookies {
            request = request.header(header::COOKIE, format!("{name}={value}"));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        if form.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        if let Some(address) = self.address {
            request = request.extension(Peer((address, 4711).into()));
        }
        let request = request.body(Body::from(form.unwrap_or_default())).unwrap();
        let response = app.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let seen = PageView {
            status: parts.status,
            headers: parts.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        };
        for cookie in seen.headers.get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap();
            assert!(
                cookie.contains("; Path=/;") && cookie.ends_with("; HttpOnly; SameSite=Lax"),
                "{cookie}"
            );
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            self.cookies.push((name.to_owned(), value.to_owned()));
        }
        seen.judge();
        seen
    }

    /// Begins a sign-in; returns where the provider is asked.
    pub async fn begin(&mut self, app: &App, client_id: &str) -> String {
        let seen = self.get(app, &authorize(client_id, &[])).await;
        seen.to("http://127.0.0.1:").to_owned()
    }

    /// Comes back from the provider; returns the target of the page that asks for consent.
    pub async fn return_to(&mut self, app: &App, target: &str) -> String {
        let seen = self.get(app, target).await;
        seen.to("/oauth/consent?").to_owned()
    }

    /// Answers the page of consent.
    pub async fn answer(&mut self, app: &App, page: &PageView, decision: &str) -> PageView {
        let mut form = page.hidden();
        form.push(("decision".into(), decision.into()));
        let form: Vec<_> = form.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        self.post(app, "/oauth/consent", &form).await
    }
}

impl PageView {
    /// What holds for everything that is ever shown.
    fn judge(&self) {
        assert_eq!(self.headers["cache-control"], "no-store");
        assert_eq!(self.headers["x-content-type-options"], "nosniff");
        assert_eq!(self.headers["referrer-policy"], "no-referrer", "{self:?}");
        if self.headers.get("location").is_some() {
            assert_eq!((self.status, self.body.as_str()), (StatusCode::SEE_OTHER, ""));
            return;
        }
        assert_eq!(
            self.headers["content-type"], "text/html; charset=utf-8",
            "{self:?}"
        );
        assert_eq!(self.headers["x-frame-options"], "DENY");
        let policy = self.headers["content-security-policy"].to_str().unwrap();
        for word in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "style-src 'sha256-",
        ] {
            assert!(policy.contains(word), "{policy}");
        }
        assert!(self.body.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
        assert!(!self.body.contains("<script") && !self.body.contains(" onclick"));
        assert_eq!(self.body.matches("<h1>").count(), 1, "{}", self.body);
        assert_eq!(self.body.matches("<main>").count(), 1);
    }

    /// Returns where it leads, which begins with this.
    #[track_caller]
    pub fn to(&self, lead: &str) -> &str {
        let location = self.headers.get("location").unwrap_or_else(|| panic!("{self:?}"));
        let location = location.to_str().unwrap();
        assert!(location.starts_with(lead), "{location}");
        location
    }

    /// Asserts a page of this status whose title is this.
    #[track_caller]
    pub fn page(&self, status: u16, title: &str) -> &Self {
        assert!(self.headers.get("location").is_none(), "{self:?}");
        let found = (
            self.status.as_u16(),
            self.body.contains(&format!("<title>{title} · Provost</title>")),
        );
        assert_eq!(found, (status, true), "{title}: {}", self.body);
        self
    }

    /// Asserts an error for the client, at its own place.
    #[track_caller]
    pub fn error(&self, code: &str) {
        let location = self.to(super::REDIRECT);
        assert_eq!(parameter(location, "error").as_deref(), Some(code), "{location}");
        assert_eq!(
            parameter(location, "iss").as_deref(),
            Some("http://127.0.0.1:8080")
        );
        assert!(parameter(location, "error_description").is_some() && parameter(location, "code").is_none());
    }

    /// Returns the code for the client.
    #[track_caller]
    pub fn code(&self) -> String {
        let location = self.to(super::REDIRECT);
        assert_eq!(
            parameter(location, "state").as_deref(),
            Some("s t/a&te"),
            "{location}"
        );
        assert_eq!(
            parameter(location, "iss").as_deref(),
            Some("http://127.0.0.1:8080")
        );
        parameter(location, "code").unwrap()
    }

    /// Returns the hidden fields of the form.
    pub fn hidden(&self) -> Vec<(String, String)> {
        let value = |tag: &str, name: &str| {
            let (_, rest) = tag.split_once(&format!(" {name}=\"")).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let tags = self.body.split("<input").skip(1);
        tags.map(|tag| (value(tag, "name"), value(tag, "value")))
            .collect()
    }

    /// Returns the links of the page.
    pub fn links(&self) -> Vec<String> {
        let tags = self.body.split(" href=\"").skip(1);
        tags.map(|tag| tag.split('"').next().unwrap().replace("&amp;", "&"))
            .collect()
    }
}
