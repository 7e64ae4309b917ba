//! The command line of this program as a client of its own (ADR 0112): nobody registers it, and everybody knows its id.
//!
//! What it could be given is what a person allows it, each time anew, on the page that every client has. A program that calls
//! itself by its id gets no more than the page shows, and only on the computer where the browser runs: its answers go to loopback
//! addresses alone.
//!
//! INVARIANT OC-19: the command line is a client only where people sign in and its owner lets it be one; it gets codes and their
//! renewal, on a loopback address, for the API and for nothing else.
//!
//! Absent on purpose: a secret, which a program that everybody has cannot keep; the grant for devices (RFC 8628), by which people
//! are led to allow a stranger's computer.

use super::grants::Client;
use provost_oauth::client_document::Authentication;

/// Its id, at every server.
pub const ID: &str = "provost-cli";
/// What people read.
pub const NAME: &str = "Provost command line";
/// Where its answers may be sent, on any port (RFC 8252 §7.3). A name, as `localhost`, is none of them (§8.3).
const REDIRECT_URIS: [&str; 2] = ["http://127.0.0.1/callback", "http://[::1]/callback"];

/// Returns the client.
pub fn client() -> Client {
    Client {
        id: ID.to_owned(),
        name: NAME.to_owned(),
        organization: None,
        redirect_uris: REDIRECT_URIS.map(str::to_owned).into(),
        grant_types: ["authorization_code", "refresh_token"].map(str::to_owned).into(),
        // What is asked for and what the person may bound it, as with a client that is known by its document.
        scopes: None,
        authentication: Authentication::None,
        service_account_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OC-19.
    #[test]
    fn answers_go_to_the_loopback_interface_alone() {
        let client = client();
        for there in [
            "http://127.0.0.1:4711/callback",
            "http://[::1]:4711/callback",
            "http://127.0.0.1/callback",
        ] {
            assert!(client.redirects_to(there), "{there}");
        }
        for elsewhere in [
            "http://localhost:4711/callback",
            "https://127.0.0.1:4711/callback",
            "http://127.0.0.1:4711/",
            "http://127.0.0.1:4711/callback/x",
            "http://127.0.0.1:4711/callback?next=1",
            "http://127.0.0.2:4711/callback",
            "http://127.0.0.1.example/callback",
            "http://user@127.0.0.1:4711/callback",
            "https://app.example/callback",
        ] {
            assert!(!client.redirects_to(elsewhere), "{elsewhere}");
        }
    }
}
