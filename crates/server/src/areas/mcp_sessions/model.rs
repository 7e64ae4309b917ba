//! The words and rules of MCP sessions, without storage.

use provost_kernel::auth::ScopeSet;
use provost_kernel::error::{Error, Result};
use provost_kernel::id::TypedId;
use provost_kernel::text::name_key;
use provost_kernel::{Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

id!(SessionId, "mcps", "Names an MCP session.");

/// How long ended sessions are kept. Units: seconds (D7.9: 90 days).
pub const KEPT_SECS: i64 = 90 * 86_400;
/// Uses closer together than this are one use. Units: milliseconds (D7.3).
pub const USE_PRECISION_MS: i64 = 60_000;
/// What ended sessions show that no other cause is known of.
pub const ADMIN_REVOKED: &str = "admin_revoked";
/// Shown by sessions that ended by expiry.
pub const EXPIRED: &str = "expired";
/// The end of sessions of a disabled account: its token may have a new session when it is enabled (D7.11).
pub const ACCOUNT_DISABLED: &str = "service_account_disabled";
/// The end of sessions of a suspended or deleted user.
pub const USER_SUSPENDED: &str = "user_suspended";
/// The end of sessions whose token was replaced.
pub const SUPERSEDED: &str = "superseded";
/// The causes that only the program gives (D7.4).
const RESERVED: [&str; 7] = [
    "user_revoked",
    "token_reuse",
    USER_SUSPENDED,
    ACCOUNT_DISABLED,
    "client_blocked",
    SUPERSEDED,
    EXPIRED,
];
/// Stands between the members in the text that is searched; no member and no question holds it.
const SEPARATOR: char = '\u{1f}';
/// How many of an id's random bits its number keeps, behind 42 bits of time.
const SEQ_BITS: u32 = 21;

/// Whether and how a session has ended, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not; it may have run out since.
    Active,
    /// By somebody or something, before its time.
    Revoked,
    /// By its time.
    Expired,
}

impl State {
    /// Returns the number in the store.
    pub const fn code(self) -> i64 {
        match self {
            Self::Active => 0,
            Self::Revoked => 1,
            Self::Expired => 2,
        }
    }

    /// Returns the state of a stored number.
    pub fn of_code(code: i64) -> Result<Self> {
        [Self::Active, Self::Revoked, Self::Expired]
            .into_iter()
            .find(|state| state.code() == code)
            .ok_or_else(|| Error::internal("mcp_sessions.state is not a state"))
    }
}

/// What a list can narrow to: every session is exactly one of these (D7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum StatusFilter {
    /// Usable now.
    Active,
    /// Ended for any cause but expiry.
    Revoked,
    /// Ended by expiry.
    Expired,
}

impl StatusFilter {
    /// Returns the state that it asks for.
    pub const fn state(self) -> State {
        match self {
            Self::Active => State::Active,
            Self::Revoked => State::Revoked,
            Self::Expired => State::Expired,
        }
    }
}

/// The two words of a record (specification §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Status {
    /// Usable now.
    Active,
    /// Not any more.
    Revoked,
}

/// Who a session acts for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionActor {
    /// A person.
    ConsoleUser {
        /// The user.
        id: String,
        /// Its name.
        display: String,
    },
    /// A service account.
    ServiceAccount {
        /// The account.
        id: String,
        /// Its name.
        display: String,
    },
    /// A client that acts by token exchange for one of the two.
    Agent {
        /// The user that it acts for.
        console_user: Option<String>,
        /// The account that it acts for.
        service_account: Option<String>,
        /// Its name.
        display: String,
    },
}

impl SessionActor {
    /// Returns the word on the wire (D7.2).
    pub const fn word(&self) -> &'static str {
        match self {
            Self::ConsoleUser { .. } => "console_user",
            Self::ServiceAccount { .. } => "service_account",
            Self::Agent { .. } => "agent",
        }
    }

    /// Returns the user, if it is one or acts for one.
    pub fn console_user(&self) -> Option<&str> {
        match self {
            Self::ConsoleUser { id, .. } => Some(id),
            Self::ServiceAccount { .. } => None,
            Self::Agent { console_user, .. } => console_user.as_deref(),
        }
    }

    /// Returns the account, if it is one or acts for one.
    pub fn service_account(&self) -> Option<&str> {
        match self {
            Self::ServiceAccount { id, .. } => Some(id),
            Self::ConsoleUser { .. } => None,
            Self::Agent { service_account, .. } => service_account.as_deref(),
        }
    }

    /// Returns the name.
    pub fn display(&self) -> &str {
        match self {
            Self::ConsoleUser { display, .. }
            | Self::ServiceAccount { display, .. }
            | Self::Agent { display, .. } => display,
        }
    }
}

/// A session to be opened.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// What a presented token is looked up by; unique over all organizations, no secret.
    pub grant_key: String,
    /// Who it acts for.
    pub actor: SessionActor,
    /// The MCP client, if it is known.
    pub client_id: Option<String>,
    /// What the client calls itself.
    pub client_display: Option<String>,
    /// What was granted.
    pub scopes: ScopeSet,
    /// The service-account token that it stands for (D7.11).
    pub token_id: Option<String>,
    /// The end of its life.
    pub expires_at: Timestamp,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
}

/// A session as it is stored.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// See [`seq`].
    pub seq: i64,
    /// Its organization.
    pub organization_id: String,
    /// `console_user`, `service_account` or `agent`.
    pub actor_type: String,
    /// The actor's name.
    pub actor_display: Option<String>,
    /// The client.
    pub mcp_client_id: Option<String>,
    /// The account.
    pub service_account_id: Option<String>,
    /// The user.
    pub console_user_id: Option<String>,
    /// What was granted.
    pub scopes: ScopeSet,
    /// When it was opened.
    pub issued_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Timestamp,
    /// The end of its life.
    pub expires_at: Timestamp,
    /// Whether and how it ended, as stored.
    pub state: State,
    /// When and why.
    pub ended: Option<Ended>,
}

/// The end of all of a subject's sessions up to one, which is not written down everywhere yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Whose sessions.
    pub subject: Subject,
    /// The last one.
    pub seq: i64,
    /// When and why.
    pub ended: Ended,
}

/// Whose sessions end together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A client's.
    Client(String),
    /// An account's.
    ServiceAccount(String),
    /// A user's.
    ConsoleUser(String),
}

impl Subject {
    /// Returns the text in the store.
    pub fn text(&self) -> String {
        match self {
            Self::Client(id) => format!("client:{id}"),
            Self::ServiceAccount(id) => format!("account:{id}"),
            Self::ConsoleUser(id) => format!("user:{id}"),
        }
    }

    /// Returns the subject of a stored text.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, id) = text.split_once(':')?;
        let make = match kind {
            "client" => Self::Client,
            "account" => Self::ServiceAccount,
            "user" => Self::ConsoleUser,
            _ => return None,
        };
        Some(make(id.to_owned()))
    }

    /// Returns its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Client(id) | Self::ServiceAccount(id) | Self::ConsoleUser(id) => id,
        }
    }

    /// Returns the kind of record that it is, for audit entries.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Client(_) => "mcp_client",
            Self::ServiceAccount(_) => "service_account",
            Self::ConsoleUser(_) => "user",
        }
    }

    fn has(&self, session: &Session) -> bool {
        let id = match self {
            Self::Client(_) => &session.mcp_client_id,
            Self::ServiceAccount(_) => &session.service_account_id,
            Self::ConsoleUser(_) => &session.console_user_id,
        };
        id.as_deref() == Some(self.id())
    }
}

impl Session {
    /// Returns what it is at an instant, whatever of it is written down yet.
    ///
    /// INVARIANT MS-2: a session is active, revoked or expired at every instant, and never active again.
    pub fn at(mut self, now: Timestamp, cuts: &[Cut]) -> Self {
        if self.state != State::Active {
            return self;
        }
        let cut = cuts
            .iter()
            .filter(|cut| cut.seq >= self.seq && cut.ended.at < self.expires_at && cut.subject.has(&self));
        if let Some(cut) = cut.min_by_key(|cut| cut.ended.at) {
            self.state = State::Revoked;
            self.ended = Some(cut.ended.clone());
        } else if self.expires_at <= now {
            self.state = State::Expired;
            self.ended = Some(Ended {
                at: self.expires_at,
                reason: EXPIRED.to_owned(),
            });
        }
        self
    }
}

/// An MCP session (specification §2.1).
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HeadlessMcpSession")]
pub struct SessionView {
    id: SessionId,
    organization_id: String,
    /// `console_user`, `service_account` or `agent`. Open.
    actor_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor_display: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    console_user_id: Option<String>,
    scopes: Vec<&'static str>,
    status: Status,
    issued_at: Timestamp,
    /// To the minute; of a session that was not used yet, when it was issued.
    last_used_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    /// What was given, or a word of the program; `expired` for a session whose time ran out. Open.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoke_reason: Option<String>,
}

impl From<Session> for SessionView {
    fn from(session: Session) -> Self {
        let status = match session.state {
            State::Active => Status::Active,
            State::Revoked | State::Expired => Status::Revoked,
        };
        let (revoked_at, revoke_reason) = session.ended.map(|ended| (ended.at, ended.reason)).unzip();
        Self {
            id: session.id,
            organization_id: session.organization_id,
            actor_type: session.actor_type,
            actor_display: session.actor_display,
            mcp_client_id: session.mcp_client_id,
            service_account_id: session.service_account_id,
            console_user_id: session.console_user_id,
            scopes: session.scopes.to_list(),
            status,
            issued_at: session.issued_at,
            last_used_at: session.last_used_at,
            revoked_at,
            revoke_reason,
        }
    }
}

/// One session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct OneSession {
    /// It.
    pub session: SessionView,
}

/// The path of operations on one session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct SessionPath {
    /// The session.
    pub session_id: SessionId,
}

/// Returns the number of an id: its instant and the first bits of its chance. Numbers order as ids do.
///
/// INVARIANT MS-1: a session's id holds the instant of its issue, so the order of numbers is that of `issuedAt`, `id`.
pub fn seq(id: &SessionId) -> Result<i64> {
    let ulid = provost_kernel::id::parse(SessionId::PREFIX, id.as_str());
    let ulid = ulid.ok_or_else(|| Error::internal("a session's id is not well formed"))?;
    let chance = u64::try_from(ulid.random() >> (80 - SEQ_BITS)).map_err(Error::internal)?;
    i64::try_from((ulid.timestamp_ms() << SEQ_BITS) | chance).map_err(Error::internal)
}

/// Returns the last number of an instant.
pub fn last_seq(at: Timestamp) -> i64 {
    at.plus_ms(1).as_ms() * (1 << SEQ_BITS) - 1
}

/// Returns the first instant whose numbers all lie behind `seq`.
pub fn instant_behind(seq: i64) -> Timestamp {
    Timestamp::from_ms((seq >> SEQ_BITS) + 1)
}

/// Returns the text in which substrings are looked for.
pub fn searched(id: &SessionId, new: &NewSession) -> String {
    let members = [
        Some(id.as_str()),
        Some(new.actor.display()),
        new.client_id.as_deref(),
        new.actor.service_account(),
        new.actor.console_user(),
    ];
    let mut text = String::new();
    for member in members.into_iter().flatten() {
        text.push_str(&name_key(member));
        text.push(SEPARATOR);
    }
    text
}

/// Returns the cause that is stored for a reason that a caller gave.
///
/// Errors: `InvalidRequest` for a word that only the program gives.
pub fn cause(reason: Option<&str>) -> Result<&str> {
    let reason = reason.unwrap_or(ADMIN_REVOKED);
    if RESERVED.iter().any(|word| word.eq_ignore_ascii_case(reason)) {
        return Err(Error::invalid(
            "/reason",
            "is a word that only the server gives; say it in other words",
        ));
    }
    Ok(reason)
}

/// What a filter compares with: 1 to `MAX` characters, none of them a control character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterText<const MAX: usize>(String);

impl<const MAX: usize> FilterText<MAX> {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de, const MAX: usize> Deserialize<'de> for FilterText<MAX> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        if (1..=MAX).contains(&text.chars().count()) && !text.contains(char::is_control) {
            return Ok(Self(text.into_owned()));
        }
        Err(serde::de::Error::custom(format!(
            "must have 1 to {MAX} characters and no control character"
        )))
    }
}

impl<const MAX: usize> JsonSchema for FilterText<MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("FilterText_{MAX}").into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string", "minLength": 1, "maxLength": MAX,
            "pattern": r"^[^\u0000-\u001F\u007F-\u009F]+$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_kernel::entropy::UnitRng;

    #[test]
    fn numbers_order_as_ids_do() {
        let mut rng = UnitRng::new([3; 32]);
        let mut ids: Vec<SessionId> = (0..500)
            .map(|n| SessionId::mint(Timestamp::from_ms(1_795_144_500_000 + n / 100), &mut rng))
            .collect();
        let mut by_seq = ids.clone();
        ids.sort();
        by_seq.sort_by_key(|id| seq(id).unwrap());
        assert_eq!(ids, by_seq);
        for id in &ids {
            let at = provost_kernel::id::parse("mcps", id.as_str())
                .unwrap()
                .timestamp_ms();
            let at = Timestamp::from_ms(i64::try_from(at).unwrap());
            assert!(seq(id).unwrap() <= last_seq(at));
            assert!(seq(id).unwrap() > last_seq(at.plus_ms(-1)));
            assert_eq!(instant_behind(seq(id).unwrap()), at.plus_ms(1));
        }
    }

    #[test]
    fn words_of_the_program_are_refused_as_reasons() {
        assert_eq!(cause(None).unwrap(), "admin_revoked");
        assert_eq!(cause(Some("admin_revoked")).unwrap(), "admin_revoked");
        assert_eq!(cause(Some("laptop lost")).unwrap(), "laptop lost");
        for word in RESERVED {
            assert!(cause(Some(word)).is_err(), "{word}");
        }
        assert!(cause(Some("EXPIRED")).is_err());
    }

    #[test]
    fn subjects_are_read_as_they_are_written() {
        for subject in [
            Subject::Client("https://a.example/client:1".into()),
            Subject::ServiceAccount("sa_1".into()),
            Subject::ConsoleUser("usr_1".into()),
        ] {
            assert_eq!(Subject::parse(&subject.text()), Some(subject));
        }
        assert_eq!(Subject::parse("x:1"), None);
    }
}
