//! Clients that are known by the URL of their document: fetched over TLS from a server of the tests' own.

use super::liar::LyingProvider;
use super::steps::Stage;
use super::visitor::{PageView, Visitor};
use super::*;
use crate::access::oauth::granted::Confidential;
use crate::access::oauth::{URL, post, read, refused};
use crate::support::{Reply, each};
use provost_areas_access::oauth::settings::{BlockedClient, Fetch, Settings};
use provost_outbound::Network;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{ServerConfig, crypto::aws_lc_rs};

/// The verifier of `CHALLENGE` (RFC 7636, appendix B).
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// Where a client publishes its document.
struct Site {
    url: String,
    host: String,
    count: Arc<AtomicUsize>,
    /// What stands in the head besides.
    head: Arc<Mutex<String>>,
    /// The keys that the client proves itself with, where it does.
    keys: Arc<Mutex<Value>>,
    _serving: JoinSet<()>,
}

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_file(tls("localhost.pem")).unwrap()
}

fn tls(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../kernel/tests/tls")
        .join(name)
}

impl Site {
    async fn start() -> Self {
        Self::start_with(Value::Null).await
    }

    /// A site of a client that proves itself with these keys.
    async fn start_with(keys: Value) -> Self {
        let key = PrivateKeyDer::from_pem_file(tls("localhost.key")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("localhost:{}", listener.local_addr().unwrap().port());
        let url = format!("https://{host}/apps/notes.json");
        let mut document = json!({
            "client_id": url, "client_name": "Notes <i>and more</i>", "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"], "scope": "policies:read audit:read",
        });
        if keys.is_object() {
            document["token_endpoint_auth_method"] = "private_key_jwt".into();
            document["jwks_uri"] = format!("https://{host}/apps/keys.json").into();
        }
        let keys = Arc::new(Mutex::new(keys));
        let known = keys.clone();
        let (count, head) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(String::new())));
        let (counted, said) = (count.clone(), head.clone());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                counted.fetch_add(1, Ordering::SeqCst);
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut bytes = [0; 1024];
                    match stream.read(&mut bytes).await {
                        Ok(count) if count > 0 => request.extend_from_slice(&bytes[..count]),
                        _ => break,
                    }
                }
                let body = if request.starts_with(b"GET /apps/keys.json HTTP/1.1\r\n") {
                    known.lock().unwrap().to_string()
                } else {
                    assert!(request.starts_with(b"GET /apps/notes.json HTTP/1.1\r\n"));
                    document.to_string()
                };
                let more = said.lock().unwrap().clone();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{more}content-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Self {
            url,
            host,
            count,
            head,
            keys,
            _serving: serving,
        }
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

/// One more server of the same store, that fetches from this machine and has a provider.
fn server(first: &App, providers: Vec<ProviderDeclaration>, blocked: &[&str]) -> App {
    let settings = Settings {
        blocked: blocked
            .iter()
            .map(|url| BlockedClient::parse(url).unwrap())
            .collect(),
        interactive: true,
        fetch: Fetch {
            allow: ["127.0.0.0/8", "::1"]
                .map(|net| Network::parse(net).unwrap())
                .to_vec(),
            roots: vec![certificate()],
            plain_loopback: false,
        },
        ..Settings::default()
    };
    let extras = Extras::default()
        .with(segments(&first.keys_dir))
        .with(settings)
        .with(Providers::new(providers));
    first.restarted(extras).unwrap()
}

fn redeeming<'a>(client: &'a str, code: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("client_id", client),
        ("code", code),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ]
}

fn refreshing<'a>(client: &'a str, token: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "refresh_token"),
        ("client_id", client),
        ("refresh_token", token),
    ]
}

async fn stage(first: &App, site: &Site, blocked: &[&str]) -> Stage {
    let liar = LyingProvider::start().await;
    let app = server(first, vec![declared(first, &liar.issuer, "provost")], blocked);
    let ada = user(&app, "ada@acme.example", Some("admin")).await;
    Stage {
        app,
        liar,
        client: site.url.clone(),
        ada,
    }
}

/// Signs in, allows, redeems; returns the code and what the token endpoint said.
async fn connected(stage: &Stage) -> (String, Value) {
    let mut visitor = Visitor::default();
    let page = stage.asked(&mut visitor).await;
    let code = visitor.answer(&stage.app, &page, "allow").await.code();
    let reply = post(&stage.app, "/oauth/token", &redeeming(&stage.client, &code)).await;
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
    (code, reply.json)
}

#[test]
fn a_client_is_known_by_its_document_from_the_first_page_to_its_session() {
    each("sign_in_document", |first: Arc<App>| async move {
        let site = Site::start().await;
        let stage = stage(&first, &site, &[]).await;
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        // The host stands out twice: where the application is named, and in the warning.
        let host = format!("<strong class=\"host\">{}</strong>", site.host);
        assert_eq!(page.body.matches(&host).count(), 2, "{}", page.body);
        for words in [
            "Notes &lt;i&gt;and more&lt;/i&gt;",
            "chose its name itself",
            "Ada Lovelace",
            "Audit log",
        ] {
            assert!(page.body.contains(words), "{words}: {}", page.body);
        }
        assert!(!page.body.contains("Registered by"), "{}", page.body);
        let code = visitor.answer(&stage.app, &page, "allow").await.code();
        let reply = post(&stage.app, "/oauth/token", &redeeming(&site.url, &code)).await;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
        // What its document does not name is not granted.
        assert_eq!(reply.json["scope"], "audit:read policies:read");
        let access = reply.json["access_token"].as_str().unwrap();
        read(&stage.app, access).await.ok();
        let refresh = reply.json["refresh_token"].as_str().unwrap();
        let reply = post(&stage.app, "/oauth/token", &refreshing(&site.url, refresh)).await;
        assert_eq!(reply.status.as_u16(), 200, "{}", reply.text());
        assert_eq!(site.count(), 1, "asked once for all of it");
        let sessions = stage.app.get("/mcp/sessions?status=active").await;
        let session = &sessions.ok()["sessions"][0];
        assert_eq!(session["mcpClientId"], json!(site.url));
        assert_eq!(session["consoleUserId"], json!(stage.ada));
        assert_eq!(sessions.json["total"], 1);
    });
}

/// Proves OC-3.
#[test]
fn a_code_that_comes_twice_takes_back_what_it_gave() {
    each("sign_in_code_twice", |first: Arc<App>| async move {
        let site = Site::start().await;
        let stage = stage(&first, &site, &[]).await;
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        let code = visitor.answer(&stage.app, &page, "allow").await.code();
        let form = redeeming(&site.url, &code);
        let given = post(&stage.app, "/oauth/token", &form).await;
        let access = given.ok()["access_token"].as_str().unwrap();
        let refresh = given.json["refresh_token"].as_str().unwrap();
        read(&stage.app, access).await.ok();
        // The page does not lead there any more either.
        let again = visitor.answer(&stage.app, &page, "allow").await;
        again.page(409, "This was answered already");
        read(&stage.app, access).await.ok();

        refused(
            &post(&stage.app, "/oauth/token", &form).await,
            400,
            "invalid_grant",
        );
        read(&stage.app, access).await.refused(401, "token_revoked");
        let form = refreshing(&site.url, refresh);
        refused(
            &post(&stage.app, "/oauth/token", &form).await,
            400,
            "invalid_grant",
        );
        let sessions = stage.app.get("/mcp/sessions").await;
        assert_eq!(sessions.ok()["sessions"][0]["revokeReason"], "token_reuse");
    });
}

#[test]
fn a_document_is_fetched_again_when_it_says_so_and_within_bounds() {
    each("sign_in_document_age", |first: Arc<App>| async move {
        let site = Site::start().await;
        let stage = stage(&first, &site, &[]).await;
        let mut visitor = Visitor::default();
        let mut fetched = 0;
        for (said, secs) in [
            ("", 3600),
            ("cache-control: max-age=1200\r\n", 1200),
            ("cache-control: no-store\r\n", 300),
            ("cache-control: public, max-age=31536000\r\n", 86_400),
        ] {
            said.clone_into(&mut site.head.lock().unwrap());
            visitor.begin(&stage.app, &site.url).await;
            fetched += 1;
            assert_eq!(site.count(), fetched, "{said}");
            first.advance(secs - 1);
            visitor.begin(&stage.app, &site.url).await;
            assert_eq!(site.count(), fetched, "{said}");
            first.advance(1);
        }
    });
}

/// Proves OC-9.
#[test]
fn a_blocked_client_gets_nothing_and_what_it_has_stops() {
    each("sign_in_blocked", |first: Arc<App>| async move {
        let site = Site::start().await;
        let stage = stage(&first, &site, &[]).await;
        let (_, given) = connected(&stage).await;
        let access = given["access_token"].as_str().unwrap();
        let refresh = given["refresh_token"].as_str().unwrap();
        read(&stage.app, access).await.ok();
        let origin = format!("https://{}", site.host.to_uppercase());
        for entry in [site.url.as_str(), origin.as_str()] {
            let asked = site.count();
            let provider = declared(&first, &stage.liar.issuer, "provost");
            let app = server(&first, vec![provider], &[entry]);
            read(&app, access).await.refused(401, "unauthenticated");
            refused(
                &post(&app, "/oauth/token", &refreshing(&site.url, refresh)).await,
                401,
                "invalid_client",
            );
            let seen = Visitor::default().get(&app, &authorize(&site.url, &[])).await;
            seen.page(400, "This application cannot be used");
            assert_eq!(
                site.count(),
                asked,
                "nothing is fetched from where a blocked one is"
            );
            app.kernel.stop().await;
        }
        // Another one is not meant, and neither is the same path elsewhere.
        let elsewhere = ["https://localhost:1", "https://localhost:1/apps/notes.json"];
        let provider = declared(&first, &stage.liar.issuer, "provost");
        let app = server(&first, vec![provider], &elsewhere);
        read(&app, access).await.ok();
        Visitor::default().begin(&app, &site.url).await;
    });
}

/// Proves SI-4.
#[test]
fn a_user_of_several_organizations_chooses_for_a_client_of_none() {
    each("sign_in_organizations", |first: Arc<App>| async move {
        let site = Site::start().await;
        let (key, admin) = first.other_organization("Umbrella").await;
        let liar = LyingProvider::start().await;
        let mut provider = declared(&first, &liar.issuer, "provost");
        provider.organizations.push(OrganizationId::parse(&key).unwrap());
        let app = server(&first, vec![provider], &[]);
        let umbrella = app.view_of(key.clone(), admin);
        user(&app, "ada@acme.example", Some("admin")).await;
        let there = user(&umbrella, "ada@acme.example", Some("viewer")).await;
        let stage = Stage {
            app,
            liar,
            client: site.url.clone(),
            ada: there,
        };
        let mut visitor = Visitor::default();
        let target = stage.signed_in(&mut visitor, "ada").await;
        let choice = visitor.get(&stage.app, &target).await;
        choice.page(200, "Choose an organization");
        assert!(choice.body.contains("Notes &lt;i&gt;and more&lt;/i&gt;"));
        let links = choice.links();
        assert_eq!(links.len(), 2, "{}", choice.body);
        for name in [&stage.app.organization, &key] {
            assert!(choice.body.contains(name.as_str()), "{}", choice.body);
        }
        // The choice belongs to this browser, and to the organizations that were offered.
        let gone = "This sign-in is not valid any more";
        Visitor::default()
            .get(&stage.app, &links[1])
            .await
            .page(400, gone);
        let foreign = links[1].replace(&key, "elsewhere");
        let again = visitor.get(&stage.app, &foreign).await;
        again.page(200, "Choose an organization");
        let pages: Vec<PageView> = vec![
            visitor.get(&stage.app, &links[0]).await,
            visitor.get(&stage.app, &links[1]).await,
        ];
        let of = |name: &str| {
            let hidden = format!("name=\"organization\" value=\"{name}\"");
            pages.iter().find(|page| page.body.contains(&hidden)).unwrap()
        };
        let page = of(&key);
        page.page(200, "Allow access");
        assert!(page.body.contains("(viewer)"), "{}", page.body);
        assert!(of(&stage.app.organization).body.contains("(admin)"));
        let code = visitor.answer(&stage.app, page, "allow").await.code();
        // The same question for the other organization would be another consent.
        let other = visitor
            .answer(&stage.app, of(&stage.app.organization), "allow")
            .await;
        other.page(409, "This was answered already");
        let reply = post(&stage.app, "/oauth/token", &redeeming(&site.url, &code)).await;
        let access = reply.ok()["access_token"].as_str().unwrap();
        read(&umbrella, access).await.ok();
        assert_eq!(read(&stage.app, access).await.status.as_u16(), 403);
        assert_eq!(audited(&umbrella, "oauth.consent.given").await.len(), 1);
        assert_eq!(audited(&stage.app, "oauth.consent.given").await.len(), 0);
    });
}

/// Asks with an assertion of the client's under a key's name; what it asks for is not there.
async fn with_assertion(app: &App, client: &Confidential, kid: &str, id: &str) -> Reply {
    let now = app.now().as_ms() / 1000;
    let claims = json!({
        "iss": client.id, "sub": client.id, "aud": URL, "jti": id, "iat": now, "exp": now + 60,
    });
    let form = [("grant_type", "refresh_token"), ("refresh_token", "nobodys")];
    client
        .send(app, "/oauth/token", &form, &client.signed(kid, &claims))
        .await
}

#[test]
fn keys_that_a_client_changed_are_asked_for_before_one_is_refused() {
    each("oauth_document_keys", |first| async move {
        let site = Site::start_with(json!({ "keys": [] })).await;
        let (old, new) = (Confidential::of(&site.url), Confidential::of(&site.url));
        *site.keys.lock().unwrap() = old.key_set("one");
        let app = server(&first, Vec::new(), &[]);
        // The client is known: only what it brings is not.
        refused(
            &with_assertion(&app, &old, "one", "a").await,
            400,
            "invalid_grant",
        );
        let fetched = site.count();
        refused(
            &with_assertion(&app, &old, "one", "b").await,
            400,
            "invalid_grant",
        );
        assert_eq!(site.count(), fetched, "its keys are remembered");
        *site.keys.lock().unwrap() = new.key_set("two");
        refused(
            &with_assertion(&app, &new, "two", "c").await,
            400,
            "invalid_grant",
        );
        assert_eq!(site.count(), fetched + 1);
        // The old key is withdrawn with that, and names that nobody has cause no fetch for a minute.
        refused(
            &with_assertion(&app, &old, "one", "d").await,
            401,
            "invalid_client",
        );
        refused(
            &with_assertion(&app, &old, "three", "e").await,
            401,
            "invalid_client",
        );
        assert_eq!(site.count(), fetched + 1);
        app.advance(61);
        refused(
            &with_assertion(&app, &old, "one", "f").await,
            401,
            "invalid_client",
        );
        assert_eq!(site.count(), fetched + 2);
        app.kernel.stop().await;
    });
}

/// Proves OC-5.
#[test]
fn an_assertion_of_a_client_that_is_no_row_is_spent_at_every_server() {
    each("oauth_document_spent", |first| async move {
        let site = Site::start_with(json!({ "keys": [] })).await;
        let client = Confidential::of(&site.url);
        *site.keys.lock().unwrap() = client.key_set("k");
        let stage = stage(&first, &site, &[]).await;
        let other = server(&first, Vec::new(), &[]);
        let mut visitor = Visitor::default();
        let page = stage.asked(&mut visitor).await;
        let code = visitor.answer(&stage.app, &page, "allow").await.code();
        let now = first.now().as_ms() / 1000;
        let claims = |id: &str| {
            json!({
                "iss": client.id, "sub": client.id, "aud": URL, "jti": id, "iat": now, "exp": now + 60,
            })
        };
        // Sent once, with what is refused before there is anything to write.
        let assertion = client.signed("k", &claims("once"));
        let form = [("grant_type", "refresh_token"), ("refresh_token", "nobodys")];
        let sent = client.send(&stage.app, "/oauth/token", &form, &assertion).await;
        refused(&sent, 400, "invalid_grant");
        let form = redeeming(&stage.client, &code);
        for server in [&other, &stage.app] {
            let again = client.send(server, "/oauth/token", &form, &assertion).await;
            refused(&again, 401, "invalid_client");
        }
        let fresh = client.signed("k", &claims("another"));
        let redeemed = client.send(&other, "/oauth/token", &form, &fresh).await;
        assert_eq!(redeemed.status.as_u16(), 200, "{}", redeemed.text());
        stage.app.kernel.stop().await;
        other.kernel.stop().await;
    });
}
