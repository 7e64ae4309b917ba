//! A person signs in with a browser, and this machine enrols as theirs: `provost agent enrol --sign-in`.
//!
//! ```text
//! browser: sign in, allow fleet:enrol_self ─► enrolment token of the person's own ─► the machine enrols by it ─► the sign-in is given back
//! ```
//!
//! It is the flow of `provost login` (ADR 0112) and the enrolment token of ADR 0111, and no way of its own. The sign-in asks for one scope,
//! and is kept nowhere.
//!
//! Keeps CL-6, CL-8.

use super::super::connection::{Connection, TokenSource};
use super::super::device::DeviceServer;
use super::super::draft::target;
use super::super::failure::{Exit, Failure};
use super::super::print::parsed;
use super::super::profile::SignIn;
use super::super::secret_file;
use super::super::send::Sender;
use super::super::server::{Call, Server};
use super::super::sign_in::{Offer, Wish, sign_in};
use super::super::terminal::Terminal;
use super::identity::Identity;
use super::login::give_back;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, Method};
use provost_words::Secret;
use provost_words::entropy::{Entropy, SystemEntropy};
use provost_words::url::{BASE, encoded};
use serde_json::{Value, json};

/// With it, people enrol machines of their own, and do little else.
const SCOPE: &str = "fleet:enrol_self";
const REASON: &str = "a person signed in to enrol the machine at hand";
const BY_TOKEN: &str = "an admin makes an enrolment token for this machine: provost enrolment-tokens create; then say --token-file FILE";

/// What a person signed in for.
pub struct OwnEnrolment {
    /// The organization that the person chose.
    pub organization: String,
    /// The enrolment token, for one machine and for minutes.
    pub token: Secret<String>,
    connection: Connection,
    sign_in: SignIn,
}

/// How a person signs in to enrol a machine.
pub struct EnrolmentWish<'a> {
    /// The organization that is meant; nothing where the person says it in the browser.
    pub organization: Option<&'a str>,
    /// What people call the machine.
    pub name: &'a str,
    /// Whether the browser is opened, and not only named its address.
    pub opens: bool,
    /// The port of the answer; 0: one that is free.
    pub port: u16,
}

impl OwnEnrolment {
    /// Has a person sign in at the server of a device, and makes an enrolment token of theirs.
    ///
    /// Errors: `Refused` where nobody signs in there; `Forbidden` where it was not allowed; `Conflict` where people enrol no machines of
    /// their own; why the server gave no answer. The sign-in is given back before.
    pub async fn begin(
        server: &DeviceServer,
        wish: &EnrolmentWish<'_>,
        terminal: &Terminal,
    ) -> Result<Self, Failure> {
        let place = server.place(terminal)?;
        let Some(offer) = Offer::of(&place, terminal, false).await? else {
            let line = format!(
                "{} has nobody sign in to the command line with a browser",
                place.url
            );
            return Err(Failure::new(Exit::Refused, line)
                .and("whoever runs it declares where people sign in: [[oauth.sign_in]]")
                .and(BY_TOKEN));
        };
        let asked = Wish {
            scopes: vec![SCOPE.to_owned()],
            opens: wish.opens,
            port: wish.port,
        };
        let tokens = sign_in(&offer, &asked, &place, terminal).await.map_err(advised)?;
        let connection = Connection {
            place,
            token: tokens.access,
            token_source: TokenSource::Typed,
        };
        match token(&connection, wish, terminal).await {
            Ok((organization, token)) => Ok(Self {
                organization,
                token,
                connection,
                sign_in: tokens.sign_in,
            }),
            Err(failure) => {
                give_back(&connection, Some(&tokens.sign_in), terminal).await;
                Err(advised(failure))
            }
        }
    }

    /// Gives the sign-in back: what enrolled stays, and an enrolment token that was not used ends.
    pub async fn end(self, terminal: &Terminal) {
        give_back(&self.connection, Some(&self.sign_in), terminal).await;
    }
}

/// Makes an enrolment token for a machine of the person's own; with the organization that it is for.
async fn token(
    connection: &Connection,
    wish: &EnrolmentWish<'_>,
    terminal: &Terminal,
) -> Result<(String, Secret<String>), Failure> {
    let identity = Identity::ask(connection, terminal, false).await?;
    if let Some(other) = wish
        .organization
        .filter(|wanted| *wanted != identity.organization)
    {
        let line = format!(
            "you signed in to the organization {}, and said --organization {other}",
            identity.organization
        );
        return Err(Failure::new(Exit::Refused, line).and("nothing was enrolled"));
    }
    terminal.note(&format!(
        "signed in as {}, organization {}, to enrol this machine and for nothing else",
        identity.who(),
        identity.organization
    ));
    let mut answer = ask(connection, &identity.organization, wish.name, terminal).await?;
    let token = secret_file::take(&mut answer);
    let token = token.ok_or_else(|| {
        Failure::new(
            Exit::ServerFault,
            "the server made no enrolment token that can be read",
        )
    })?;
    Ok((identity.organization, token))
}

async fn ask(
    connection: &Connection,
    organization: &str,
    name: &str,
    terminal: &Terminal,
) -> Result<Value, Failure> {
    let path = BASE.replacen("{organizationId}", &encoded(organization).to_string(), 1);
    let key = URL_SAFE_NO_PAD.encode(SystemEntropy.seed());
    let body = json!({ "name": name, "reason": REASON, "idempotencyKey": key });
    let call = Call {
        method: Method::POST,
        target: target(&format!("{path}/devices/own/enrolment-tokens"), &[]),
        headers: HeaderMap::new(),
        body: Some(body.to_string().into()),
        is_download: false,
    };
    let server = Server::new(connection)?;
    let sender = Sender {
        server: &server,
        terminal,
        retries: connection.place.retries,
        quiet: false,
        // A token whose answer was lost ends with the sign-in.
        repeat: None,
        unmodified: false,
        weighs: false,
    };
    parsed(&sender.send(&call).await?)
}

/// Says what somebody does who cannot enrol a machine by signing in.
fn advised(failure: Failure) -> Failure {
    match failure.exit {
        Exit::Forbidden => failure
            .and("the role member is enough to enrol a machine of one's own; an admin gives it")
            .and(BY_TOKEN),
        Exit::Conflict => failure.and(BY_TOKEN),
        _ => failure,
    }
}
