//! The whole way with a real OpenID provider, in each way in which it signs and knows this server.

use super::visitor::Visitor;
use super::*;
use crate::support::each;
use provost_kernel::time::{Clock, SystemClock};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told where the provider is; this is no configuration"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A running provider; it ends with this value, and with the test in any case.
struct RunningProvider {
    child: Child,
    issuer: String,
}

impl RunningProvider {
    fn start() -> Option<Self> {
        let Some(folder) = variable("PROVOST_TEST_OIDC_PROVIDER") else {
            assert!(
                variable("PROVOST_TEST_REQUIRE_OIDC").as_deref() != Some("1"),
                "PROVOST_TEST_OIDC_PROVIDER is not set, and PROVOST_TEST_REQUIRE_OIDC is"
            );
            return None;
        };
        let mut child = Command::new("node")
            .args(["serve.mjs", "http://127.0.0.1:8080/oauth/callback"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut issuer = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut issuer)
            .unwrap();
        let issuer = issuer.trim().to_owned();
        assert!(issuer.starts_with("http://127.0.0.1:"), "{issuer}");
        Some(Self { child, issuer })
    }

    /// Goes where this server sent a browser, through the provider's pages, and returns the target of the way back.
    fn sign_in(&self, url: &str) -> String {
        let mut cookies: Vec<(String, String)> = Vec::new();
        let mut url = url.to_owned();
        for _ in 0..8 {
            if let Some(target) = url.strip_prefix("http://127.0.0.1:8080") {
                return target.to_owned();
            }
            let path = url.strip_prefix(&self.issuer).unwrap_or(&url);
            assert!(path.starts_with('/'), "{url}");
            url = self.step(path, &mut cookies);
        }
        panic!("the provider leads nowhere: {url}");
    }

    fn step(&self, path: &str, cookies: &mut Vec<(String, String)>) -> String {
        let host = self.issuer.strip_prefix("http://").unwrap();
        let pairs: Vec<_> = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {}\r\nconnection: close\r\n\r\n",
            pairs.join("; ")
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // What came before the end of the connection counts, however it ends.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let mut location = None;
        for line in answer.lines().take_while(|line| !line.is_empty()) {
            let Some((name, value)) = line.split_once(": ") else {
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "location" => location = Some(value.to_owned()),
                "set-cookie" => {
                    let (name, value) = value.split(';').next().unwrap().split_once('=').unwrap();
                    cookies.retain(|(known, _)| known != name);
                    cookies.push((name.to_owned(), value.to_owned()));
                }
                _ => {}
            }
        }
        location.unwrap_or_else(|| panic!("{path}: {answer}"))
    }
}

impl Drop for RunningProvider {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

/// Proves SI-3.
#[test]
fn a_real_provider_signs_people_in() {
    let Some(provider) = RunningProvider::start() else {
        return;
    };
    let provider = Arc::new(provider);
    each("sign_in_real", |first: Arc<App>| {
        let provider = provider.clone();
        async move {
            // The provider lives in the present.
            first
                .clock
                .step_ms(SystemClock::new().now().as_ms() - first.now().as_ms());
            let ada = user(&first, "ada@acme.example", Some("operator")).await;
            user(&first, "unverified@acme.example", Some("operator")).await;
            let notes = client(&first, "Notes", &[REDIRECT], &[]).await;
            for id in [
                "provost-rs256",
                "provost-ps256",
                "provost-es256",
                "provost-eddsa",
                "provost-es256-none",
            ] {
                let mut known = declared(&first, &provider.issuer, id);
                if id.ends_with("none") {
                    known.client_secret_file = None;
                }
                let app = with_providers(&first, vec![known]);
                let mut visitor = Visitor::default();
                let hint = |hint| authorize(&notes, &[("login_hint", Some(hint))]);
                let asked = visitor
                    .get(&app, &hint("ada"))
                    .await
                    .to(&provider.issuer)
                    .to_owned();
                let back = provider.sign_in(&asked);
                let target = visitor.return_to(&app, &back).await;
                let page = visitor.get(&app, &target).await;
                page.page(200, "Allow access");
                visitor.answer(&app, &page, "allow").await.code();
                // The provider's code serves once.
                let again = visitor.get(&app, &back).await;
                again.error("temporarily_unavailable");

                let asked = visitor
                    .get(&app, &hint("refuses"))
                    .await
                    .to(&provider.issuer)
                    .to_owned();
                let back = provider.sign_in(&asked);
                visitor.get(&app, &back).await.error("access_denied");

                for (hint_of, title) in [
                    ("unverified", "You have no account here"),
                    ("mallory", "You have no account here"),
                ] {
                    let asked = visitor
                        .get(&app, &hint(hint_of))
                        .await
                        .to(&provider.issuer)
                        .to_owned();
                    let back = provider.sign_in(&asked);
                    visitor.get(&app, &back).await.page(403, title);
                }
            }
            assert_eq!(audited(&first, "oauth.consent.given").await.len(), 5);
            suspend(&first, &ada).await;
        }
    });
}
