//! Somebody signs in at a real OpenID provider and allows a program on this computer to act for them, in a browser.
//!
//! What only a browser can say: that it keeps the cookie, shows the pages as they are meant, and follows the form to the
//! client and one redirect further, in spite of the policy of the page.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use serde_json::{Value, json};

use super::browser::{Browser, BrowserView, View};
use super::{PICTURED, WIDTHS};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::oidc::Provider;
use crate::product::{Bootstrap, Installation, Store, free_address};

/// What the pages consist of.
const ELEMENTS: &str = "a bdi body button dd details div dl dt form h1 h2 h3 head header html input li main meta p section \
    span strong style summary title ul";

/// Signs in; returns how many views were looked at.
pub fn look(browser: &mut Browser, binary: &Path, folder: &Path, pictures: &Path) -> Outcome<usize> {
    let provider_at = free_address()?;
    let folder = folder.join("sign-in");
    std::fs::create_dir_all(&folder).context("cannot make a folder")?;
    let secret = folder.join("secret");
    std::fs::write(&secret, "a secret / with + signs: and more").context("cannot write a file")?;
    let configuration = folder.join("provost.toml");
    let declared = format!(
        "[[oauth.sign_in]]\nname = \"Acme Login\"\nissuer = \"http://{provider_at}\"\nclient_id = \"provost-es256\"\n\
         client_secret_file = {:?}\norganizations = [\"acme\"]\nauthoritative_for = \"default\"\n",
        secret.display().to_string()
    );
    std::fs::write(&configuration, declared).context("cannot write a file")?;
    let data = folder.join("data");
    let installation = Installation {
        configuration: Some(configuration),
        ..Installation::new(binary, Store::Sqlite { data }, &folder)
    };
    let bootstrap = installation.initialize()?;
    let server = installation.serve()?;
    let url = format!("http://{}", server.address);
    let _provider = Provider::start(&format!("{url}/oauth/callback"), provider_at)?;
    let client_at = answer_as_client()?;
    let client = prepare(server.address, &bootstrap)?;
    let mut views = 0;
    let ask = |hint: &str| {
        format!(
            "{url}/oauth/authorize?response_type=code&client_id={client}&redirect_uri=http%3A%2F%2F127.0.0.1%3A{}%2Fdone\
             &scope=policies%3Aread%20policies%3Abacktest%20audit%3Aread%20audit%3Aexport&state=s&login_hint={hint}&prompt=login\
             &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256",
            client_at.port()
        )
    };
    for (name, hint, title) in [
        ("sign-in-consent", "ada", "Allow access · Provost"),
        (
            "sign-in-stranger",
            "mallory",
            "You have no account here · Provost",
        ),
    ] {
        for width in WIDTHS {
            for is_dark in [false, true] {
                let view = View { width, is_dark };
                let seen = browser.look_at(&ask(hint), view)?;
                judge(&seen, view, title).context(format_args!("the page {name}, {view}"))?;
                for button in ["button[value=allow]", "button[value=deny]"] {
                    if hint == "ada" && !browser.is_in_sight(button)? {
                        return Err(Failure::new(format!(
                            "expected that {button} of {name} is in sight, {view}"
                        )));
                    }
                }
                if PICTURED.contains(&width) {
                    let picture = pictures.join(format!("{name}-{width}-{}.png", view.scheme()));
                    browser.photograph(&picture, width, seen.height)?;
                }
                views += 1;
            }
        }
        if hint == "ada" {
            let reached = browser.click("button[value=allow]")?;
            if !reached.starts_with(&format!("http://{client_at}/behind?code=")) {
                return Err(Failure::new(format!(
                    "the browser ended at {reached} and not at the client"
                )));
            }
        }
    }
    server.stop()?;
    Ok(views)
}

/// Registers a client and a user; returns the client's id.
fn prepare(address: SocketAddr, bootstrap: &Bootstrap) -> Outcome<String> {
    let mut connection = Connection::new(address);
    let mut write = |path: &str, mut body: Value| -> Outcome<Value> {
        body["reason"] = "a look".into();
        body["idempotencyKey"] = format!("look-at-{path}-in-a-browser").into();
        let request = Request::new("POST", bootstrap.path(path), &bootstrap.token).with_body(body);
        connection.fetch(&request)
    };
    let user = json!({ "loginName": "ada@acme.example", "displayName": "Ada Lovelace", "permissionRole": "operator" });
    write("directory/users", user)?;
    let client = json!({
        "name": "Notes", "redirectUris": ["http://127.0.0.1/done"], "grantTypes": ["authorization_code"],
        "tokenEndpointAuthMethod": "none",
        "scopes": ["policies:read", "policies:backtest", "audit:read", "audit:export"],
    });
    let made = write("mcp/clients", client)?;
    let id = made["id"].as_str();
    id.map(str::to_owned).context("a client has no id")
}

/// Answers as a client on this computer does: with one more redirect, to a page that can be closed.
fn answer_as_client() -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot find a free port")?;
    let address = listener.local_addr().context("cannot find a free port")?;
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&stream).lines();
            let line = lines.next().and_then(Result::ok).unwrap_or_default();
            let target = line.split(' ').nth(1).unwrap_or_default();
            let answer = match target.strip_prefix("/done") {
                Some(query) => format!("303 See Other\r\nlocation: /behind{query}\r\ncontent-length: 0"),
                None => "200 OK\r\ncontent-length: 0".to_owned(),
            };
            let answer = format!("HTTP/1.1 {answer}\r\nconnection: close\r\n\r\n");
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            drop((&stream).write_all(answer.as_bytes()));
        }
    });
    Ok(address)
}

fn judge(seen: &BrowserView, view: View, title: &str) -> Outcome {
    let allowed: Vec<&str> = ELEMENTS.split_whitespace().collect();
    let foreign: Vec<&String> = seen
        .elements
        .iter()
        .filter(|name| !allowed.contains(&name.as_str()))
        .collect();
    // The browser calls a page of a refusal one that failed to load.
    let complaints: Vec<&String> = seen
        .complaints
        .iter()
        .filter(|text| !text.contains("status of 403"))
        .collect();
    let rules = [
        (
            seen.title == title,
            format!("the title is {title:?}, not {:?}", seen.title),
        ),
        (
            complaints.is_empty(),
            format!("nothing is complained about, not {complaints:?}"),
        ),
        (
            foreign.is_empty(),
            format!("there are no elements such as {foreign:?}"),
        ),
        (
            seen.width <= u64::from(view.width),
            format!("it fits: {} pixels of {}", seen.width, view.width),
        ),
        (
            seen.faint.is_empty(),
            format!("every word has a contrast of 4.5 or more, not {:?}", seen.faint),
        ),
        // The notice to a stranger has a heading, a sentence and a hint.
        (seen.words >= 3, format!("there are words, not {}", seen.words)),
    ];
    match rules.into_iter().find(|(is_so, _)| !is_so) {
        None => Ok(()),
        Some((_, sentence)) => Err(Failure::new(format!("expected that {sentence}"))),
    }
}
