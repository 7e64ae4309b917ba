//! The words and rules of MCP sessions, without storage.

use super::fences;
use provost_areas_identity::directory;
use provost_areas_identity::service_accounts;
use provost_kernel::auth::ScopeSet;
use provost_kernel::error::{Error, Result};
use provost_kernel::fence::TargetKind;
use provost_kernel::id::TypedId;
use provost_kernel::text::name_key;
use provost_kernel::{Timestamp, id};

id!(SessionId, "mcps", "Names an MCP session.");

/// How long ended sessions are kept. Units: seconds (D7.9: 90 days).
pub const KEPT_SECS: i64 = 90 * 86_400;
/// LIMIT: sessions of one user or account that begin within a day, so that a client that connects in a loop makes some
/// 180 000 rows in the time that ended ones are kept, and no million (ADR 0022).
pub const MAX_A_DAY: i64 = 2000;
/// How the keys of grants begin that an issuer can name for as long as it likes (`sid`); others end with their tokens.
pub const LASTING_GRANT: &str = "ext-sid";
/// The life of a lasting session that nobody uses. Units: seconds (D2.7, as of those that are refreshed).
pub const IDLE_SECS: i64 = 30 * 86_400;
/// The life of a lasting session, however much it is used. Units: seconds (D2.7).
pub const ABSOLUTE_SECS: i64 = 90 * 86_400;
/// How much of its idle time a session uses up before a use is written down as its end's: a day.
pub const IDLE_PRECISION_SECS: i64 = 86_400;
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
/// The end of sessions whose workload trust was changed, suspended or deleted, or whose account can do less.
pub const TRUST_CHANGED: &str = "workload_trust_changed";
/// The causes that only the program gives (D7.4).
const RESERVED: [&str; 8] = [
    "user_revoked",
    "token_reuse",
    USER_SUSPENDED,
    ACCOUNT_DISABLED,
    "client_blocked",
    SUPERSEDED,
    TRUST_CHANGED,
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
pub struct SessionEnd {
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
    pub ended: Option<SessionEnd>,
}

/// The end of all of a subject's sessions up to one, which is not written down everywhere yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationWatermark {
    /// Whose sessions.
    pub subject: Subject,
    /// The last one.
    pub seq: i64,
    /// When and why.
    pub ended: SessionEnd,
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
    pub fn kind(&self) -> &'static TargetKind {
        match self {
            Self::Client(_) => &fences::CLIENT,
            Self::ServiceAccount(_) => &service_accounts::fences::ACCOUNT,
            Self::ConsoleUser(_) => &directory::fences::USER,
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
    #[must_use]
    pub fn at(mut self, now: Timestamp, cuts: &[RevocationWatermark]) -> Self {
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
            self.ended = Some(SessionEnd {
                at: self.expires_at,
                reason: EXPIRED.to_owned(),
            });
        }
        self
    }
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

/// Returns the text in which substrings of an actor are looked for.
pub fn searched(actor: &SessionActor) -> String {
    let members = [
        Some(actor.display()),
        actor.service_account(),
        actor.console_user(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use provost_kernel::entropy::UnitRng;

    /// Proves MS-1.
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
            assert_eq!(instant_behind(last_seq(at)), at.plus_ms(1));
            assert_eq!(instant_behind(last_seq(at) + 1), at.plus_ms(2));
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

    #[test]
    fn an_end_that_is_not_written_down_holds_for_whoever_it_names_and_what_was_there() {
        let session = Session {
            id: SessionId::from_text("mcps_1"),
            seq: 10,
            organization_id: "acme".into(),
            actor_type: "console_user".into(),
            actor_display: None,
            mcp_client_id: Some("c".into()),
            service_account_id: None,
            console_user_id: Some("u".into()),
            scopes: ScopeSet::all(),
            issued_at: Timestamp::from_ms(0),
            last_used_at: Timestamp::from_ms(0),
            expires_at: Timestamp::from_ms(1_000),
            state: State::Active,
            ended: None,
        };
        let cut = |subject: Subject, seq: i64, at: i64| RevocationWatermark {
            subject,
            seq,
            ended: SessionEnd {
                at: Timestamp::from_ms(at),
                reason: format!("at {at}"),
            },
        };
        let client = || Subject::Client("c".into());
        for (subject, seq, at, expected) in [
            (client(), 10, 500, State::Revoked),
            (client(), 9, 500, State::Active),
            (client(), 10, 999, State::Revoked),
            (client(), 10, 1_000, State::Active),
            (Subject::ConsoleUser("u".into()), 11, 500, State::Revoked),
            (Subject::Client("d".into()), 10, 500, State::Active),
            (Subject::ServiceAccount("c".into()), 10, 500, State::Active),
        ] {
            let seen = session
                .clone()
                .at(Timestamp::from_ms(999), &[cut(subject.clone(), seq, at)]);
            assert_eq!(seen.state, expected, "{subject:?} {seq} {at}");
        }
        let both = [cut(client(), 10, 700), cut(client(), 10, 300)];
        let seen = session.clone().at(Timestamp::from_ms(999), &both);
        assert_eq!(seen.ended.unwrap().reason, "at 300");
        let late = session.at(Timestamp::from_ms(1_000), &[]);
        assert_eq!(late.state, State::Expired);
        // What has ended stays as it ended.
        assert_eq!(late.at(Timestamp::from_ms(0), &both).state, State::Expired);
        let kinds = [
            client(),
            Subject::ServiceAccount("a".into()),
            Subject::ConsoleUser("u".into()),
        ];
        assert_eq!(
            kinds.map(|subject| subject.kind().word()),
            ["mcp_client", "service_account", "user"]
        );
    }
}
