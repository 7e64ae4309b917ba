//! Variables of the process: where a token and trust may come from, and what is said of those that say nothing.

use crate::http::{Server, json};
use crate::provost::{Outcome, Provost, TOKEN, folder};
use provost_client::cli::Surroundings;
use provost_kernel::Secret;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

fn none() -> crate::http::Answer {
    json(200, &json!({ "widgets": [], "total": 0 }))
}

async fn list(server: &Server, surroundings: Surroundings, token: Option<&str>) -> Outcome {
    let provost = Provost::script().token(token).surroundings(surroundings);
    provost.asks(server, &["widgets", "list"]).await
}

#[tokio::test]
async fn a_variable_may_name_the_file_of_the_token() {
    let (server, path) = (Server::playing([none()]).await, folder().join("token"));
    fs::write(&path, "prov_sat_from_file\n").expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("the file");
    let surroundings = || Surroundings {
        token_file: Some(path.clone()),
        ..Surroundings::default()
    };
    let outcome = list(&server, surroundings(), None).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
    let sent = server.asked()[0].header("authorization").to_owned();
    assert_eq!(sent, "Bearer prov_sat_from_file");
    // Two variables that name two tokens: neither is taken.
    let both = list(&server, surroundings(), Some(TOKEN)).await;
    assert_eq!((both.code, server.asked().len()), (2, 1));
    assert!(both.err.contains("unset PROVOST_TOKEN"), "{}", both.err);
}

#[tokio::test]
async fn an_empty_variable_is_an_error_that_names_it() {
    for name in ["PROVOST_TOKEN", "PROVOST_URL", "PROVOST_CA_CERT"] {
        let server = Server::playing([]).await;
        let surroundings = Surroundings {
            empty: vec![name.into()],
            named: vec![name.into()],
            ..Surroundings::default()
        };
        let outcome = list(&server, surroundings, Some(TOKEN)).await;
        assert_eq!((outcome.code, server.asked().len()), (2, 0), "{name}");
        let said = format!("error: {name} is set and empty\ngive a value, or remove it: unset {name}\n");
        assert_eq!(outcome.err, said);
    }
}

#[tokio::test]
async fn a_variable_that_nobody_reads_is_named_and_nothing_is_stopped_by_it() {
    let surroundings = || Surroundings {
        named: vec!["PROVOST_ORGANISATION".into()],
        ..Surroundings::default()
    };
    let server = Server::playing([none(), none()]).await;
    let outcome = list(&server, surroundings(), Some(TOKEN)).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(
        outcome.err,
        "warning: nothing reads the variable PROVOST_ORGANISATION; did you mean PROVOST_ORGANIZATION?\n"
    );
    let provost = Provost::script().surroundings(surroundings());
    let quiet = provost.asks(&server, &["widgets", "list", "-q"]).await;
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""));
}

#[tokio::test]
async fn an_address_of_a_proxy_that_cannot_be_read_is_not_shown() {
    let surroundings = Surroundings {
        https_proxy: Some(Secret::new("socks5://ada:secret@proxy.example".into())),
        ..Surroundings::default()
    };
    let provost = Provost::script().surroundings(surroundings);
    let to = [
        "widgets",
        "list",
        "--organization",
        "acme",
        "--url",
        "https://provost.example",
    ];
    let outcome = provost.runs(&to).await;
    assert_eq!(outcome.code, 2, "{outcome:?}");
    assert!(
        outcome.err.contains("HTTPS_PROXY") && !outcome.err.contains("secret"),
        "{}",
        outcome.err
    );
}
