//! What the url of a PostgreSQL store says: each thing once, and what it means for TLS.
//!
//! INVARIANT TL-1: a connection to a database on another machine has TLS with a verified certificate and name, unless
//! URL and operator both say otherwise; after a failed handshake the attempt ends and nothing is said in clear, and a
//! password that is asked for in clear leaves the machine inside TLS only.
//!
//! The driver takes the last of two options and knows two words for TLS of those that operators write. So the text is taken
//! apart here first, by the driver's own rules, and what decides about TLS is kept from it.

use crate::secret::Secret;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// A PostgreSQL url or `key=value` text. It holds a password, so nothing shows it.
#[derive(Clone, Debug)]
pub struct PostgresUrl {
    text: Secret<String>,
    may_be_plain: bool,
}

/// What is done about TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// None.
    Plain,
    /// Where the server offers it; one that says it has none is used without.
    Offered,
    /// Or no connection.
    Required,
}

/// What a url says, read.
pub(super) struct Read {
    pub config: Config,
    pub mode: Mode,
    /// Whether the connection leaves this machine.
    pub is_remote: bool,
    /// The file of `sslrootcert`.
    pub root: Option<String>,
}

/// Says which part of a url cannot be read, in words that hold no piece of it.
fn unreadable(part: &str) -> String {
    format!(
        "the PostgreSQL url cannot be read: {part}; write it like postgres://USER:PASSWORD@HOST/DATABASE, and what is special in the \
         password percent-encoded"
    )
}

/// Every option that there is. Others are not named in a refusal: they may be a piece of a password.
const KNOWN: [&str; 20] = [
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];

impl PostgresUrl {
    /// Takes a text as the operator wrote it. Nothing without TLS leaves this machine.
    pub fn new(text: Secret<String>) -> Self {
        Self {
            text,
            may_be_plain: false,
        }
    }

    /// Says whether the url may ask for a connection to another machine without TLS.
    #[must_use]
    pub fn allow_plaintext(self, is_allowed: bool) -> Self {
        Self {
            may_be_plain: is_allowed,
            ..self
        }
    }

    /// Returns the text itself. The caller must not log, format or store it.
    pub fn expose(&self) -> &String {
        self.text.expose()
    }

    /// Says what is wrong with the url, in a sentence without any piece of it.
    pub fn check(&self) -> Result<(), String> {
        self.read().map(drop)
    }

    /// Reads the url. The parser's own words are dropped, because they may quote a piece of a password.
    pub(super) fn read(&self) -> Result<Read, String> {
        let text = Text::of(self.expose()).ok_or_else(|| unreadable(form_of(self.expose())))?;
        if let Some(name) = text.repeated() {
            return Err(format!(
                "the PostgreSQL url says {name} twice; leave one of the two"
            ));
        }
        let mut config: Config = text
            .for_the_driver()
            .parse()
            .map_err(|error| unreadable(&text.wrong_part(&error)))?;
        let reach = reach(&config)?;
        let root = text.value("sslrootcert").map(str::to_owned);
        let mode = mode(text.value("sslmode"), root.is_some(), reach, self.may_be_plain)?;
        complete(&mut config);
        Ok(Read {
            config,
            mode,
            is_remote: reach == Reach::Network,
            root,
        })
    }
}

/// Says what is wrong with a text that cannot be taken apart.
fn form_of(text: &str) -> &'static str {
    let is_url = ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    if is_url {
        return "an option behind the ? has no value, or is not percent-encoded UTF-8";
    }
    if text.contains("://") {
        return "it begins neither with postgres:// nor with postgresql://";
    }
    "it is no url, and no list of words like host=… user=… dbname=…, or a quote is not closed"
}

/// Sets what the url leaves open.
fn complete(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("provost");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(5));
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(15));
    }
    // The name that a certificate is compared with.
    if config.get_hosts().is_empty() {
        for address in config.get_hostaddrs().to_vec() {
            config.host(address.to_string());
        }
    }
}

/// How far away the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Socket,
    Loopback,
    Network,
}

/// A name other than `localhost` may lead anywhere, tomorrow if not today; so it counts as another machine.
fn reach(config: &Config) -> Result<Reach, String> {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let sockets = hosts.iter().filter(|host| matches!(host, Host::Unix(_))).count();
    if sockets > 0 && (sockets < hosts.len() || !addresses.is_empty()) {
        return Err("the PostgreSQL url names a socket and a host; name one of them".into());
    }
    if sockets > 0 {
        return Ok(Reach::Socket);
    }
    if hosts.is_empty() && addresses.is_empty() {
        return Err(
            "the PostgreSQL url names no host; name one, or the folder of the server's socket".into(),
        );
    }
    // The driver goes to the address where there is one, whatever the host is called.
    let is_near = if addresses.is_empty() {
        hosts.iter().all(is_this_machine)
    } else {
        addresses.iter().all(is_loopback)
    };
    Ok(if is_near { Reach::Loopback } else { Reach::Network })
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name.eq_ignore_ascii_case("localhost")
                || name.parse().is_ok_and(|address: IpAddr| is_loopback(&address))
        }
        Host::Unix(_) => true,
    }
}

fn is_loopback(address: &IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Decides about TLS. A root certificate stands in a url for a reason, so it asks for TLS as `sslmode=require` does; and with
/// TLS, certificate and name are always verified.
fn mode(asked: Option<&str>, has_root: bool, reach: Reach, may_be_plain: bool) -> Result<Mode, String> {
    let wish = match asked {
        Some("require" | "verify-ca" | "verify-full") => Some(Mode::Required),
        Some("prefer" | "allow") | None if has_root => Some(Mode::Required),
        Some("prefer" | "allow") => Some(Mode::Offered),
        Some("disable") if has_root => {
            return Err(
                "the PostgreSQL url asks for TLS with sslrootcert and forbids it with sslmode=disable; take one \
                 of them away"
                    .into(),
            );
        }
        Some("disable") => Some(Mode::Plain),
        Some(_) => {
            return Err(
                "sslmode of the PostgreSQL url must be require, verify-ca, verify-full, prefer, allow or disable"
                    .into(),
            );
        }
        None => None,
    };
    match (reach, wish) {
        // Nobody listens between the two, and PostgreSQL has no TLS over a socket.
        (Reach::Socket, _) | (Reach::Loopback, None) => Ok(Mode::Plain),
        (Reach::Network, None) => Ok(Mode::Required),
        (Reach::Network, Some(Mode::Plain | Mode::Offered)) if !may_be_plain => Err(format!(
            "sslmode={} of the PostgreSQL url lets the connection to another machine go without TLS; take it out of the url, \
             or allow it with --database-plaintext (store.database_plaintext, PROVOST_DATABASE_PLAINTEXT)",
            asked.unwrap_or_default()
        )),
        (_, Some(mode)) => Ok(mode),
    }
}

/// A text, taken apart where the driver takes it apart.
struct Text<'a> {
    /// What stands before the options.
    head: &'a str,
    /// What the head says already.
    named: Vec<&'static str>,
    separator: &'static str,
    options: Vec<UrlOption<'a>>,
}

/// One option.
struct UrlOption<'a> {
    key: Cow<'a, str>,
    value: Cow<'a, str>,
    raw: &'a str,
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Option<Self> {
        ["postgres://", "postgresql://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .map_or_else(|| Self::of_words(text), |rest| Self::of_url(text, rest))
    }

    /// `user:password@host:port/database?key=value&…`, where the first `@` ends the credentials, whatever they hold.
    fn of_url(text: &'a str, rest: &'a str) -> Option<Self> {
        let mut named = Vec::new();
        let mut rest = rest;
        if let Some((credentials, after)) = rest.split_once('@') {
            named.push("user");
            named.extend(credentials.contains(':').then_some("password"));
            rest = after;
        }
        let (host, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        named.extend((!host.is_empty()).then_some("host"));
        rest = after;
        if let Some(path) = rest.strip_prefix('/') {
            let (database, after) = path.split_at(path.find('?').unwrap_or(path.len()));
            named.extend((!database.is_empty()).then_some("dbname"));
            rest = after;
        }
        let mut rest = rest.strip_prefix('?').unwrap_or_default();
        let head = &text[..text.len() - rest.len()];
        let mut options = Vec::new();
        while !rest.is_empty() {
            let (key, after) = rest.split_once('=')?;
            let (value, next) = after.split_once('&').unwrap_or((after, ""));
            options.push(UrlOption {
                key: percent_decode_str(key).decode_utf8().ok()?,
                value: percent_decode_str(value).decode_utf8().ok()?,
                raw: &rest[..key.len() + 1 + value.len()],
            });
            rest = next;
        }
        Some(Self {
            head,
            named,
            separator: "&",
            options,
        })
    }

    /// `key=value key='value with \' in it' …`
    fn of_words(text: &'a str) -> Option<Self> {
        let mut options = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (key, after) = rest.split_at(rest.find(|c: char| c.is_whitespace() || c == '=')?);
            if key.is_empty() {
                return None;
            }
            let after = after.trim_start().strip_prefix('=')?.trim_start();
            let (value, after) = word(after)?;
            options.push(UrlOption {
                key: key.into(),
                value: value.into(),
                raw: &rest[..rest.len() - after.len()],
            });
            rest = after.trim_start();
        }
        Some(Self {
            head: "",
            named: Vec::new(),
            separator: " ",
            options,
        })
    }

    /// Returns the name of something that is said twice.
    fn repeated(&self) -> Option<&'static str> {
        KNOWN.into_iter().find(|known| {
            let before = self.named.iter().filter(|named| *named == known);
            let options = self.options.iter().filter(|option| option.key == *known);
            before.count() + options.count() > 1
        })
    }

    /// Says which part the driver does not take. Of its own words only names of known options are repeated.
    fn wrong_part(&self, error: &tokio_postgres::Error) -> String {
        let said = std::error::Error::source(error)
            .map(ToString::to_string)
            .unwrap_or_default();
        let is_value_of = |known: &&str| said == format!("invalid value for option `{known}`");
        if let Some(option) = KNOWN.into_iter().find(is_value_of) {
            return format!("its {option} has a value that does not exist there");
        }
        if self
            .options
            .iter()
            .any(|option| !KNOWN.contains(&option.key.as_ref()))
        {
            return format!(
                "it has an option that does not exist; there are {}",
                KNOWN.join(", ")
            );
        }
        "its user, password, host or database is not percent-encoded UTF-8".into()
    }

    fn value(&self, key: &str) -> Option<&str> {
        let mut options = self.options.iter();
        options
            .find(|option| option.key == key)
            .map(|option| option.value.as_ref())
    }

    /// Returns the text without what is decided here.
    fn for_the_driver(&self) -> String {
        let kept = self
            .options
            .iter()
            .filter(|option| !matches!(option.key.as_ref(), "sslmode" | "sslrootcert"));
        let kept: Vec<&str> = kept.map(|option| option.raw).collect();
        format!("{}{}", self.head, kept.join(self.separator))
    }
}

/// Reads a value, in quotes or up to a blank, and returns it with what stands behind it.
fn word(text: &str) -> Option<(String, &str)> {
    let quoted = text.strip_prefix('\'');
    let mut rest = quoted.unwrap_or(text).chars();
    let mut value = String::new();
    loop {
        let before = rest.as_str();
        match rest.next() {
            Some('\\') => value.extend(rest.next()),
            Some('\'') if quoted.is_some() => return Some((value, rest.as_str())),
            Some(c) if quoted.is_none() && c.is_whitespace() => {
                return (!value.is_empty()).then_some((value, before));
            }
            Some(c) => value.push(c),
            None => return (quoted.is_none() && !value.is_empty()).then_some((value, "")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> PostgresUrl {
        PostgresUrl::new(Secret::new(text.to_owned()))
    }

    fn read(text: &str) -> Read {
        url(text).read().expect(text)
    }

    fn refusal(text: &str) -> String {
        url(text).check().expect_err(text)
    }

    #[test]
    fn all_forms_of_a_url_are_read() {
        for text in [
            "host=/tmp/pg user=postgres dbname=x options=-csearch_path=one",
            "postgres:///x?host=/tmp/pg&user=postgres&options=-csearch_path%3Done",
            "postgres://postgres@%2Ftmp%2Fpg/x?options=-csearch_path%3Done",
        ] {
            let read = read(text);
            assert_eq!(read.config.get_hosts(), [Host::Unix("/tmp/pg".into())], "{text}");
            assert_eq!(read.config.get_options(), Some("-csearch_path=one"), "{text}");
            assert_eq!((read.mode, read.is_remote), (Mode::Plain, false), "{text}");
        }
        let other =
            read("postgres://a:p?s'w@db.example:5433/x?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem");
        assert_eq!(other.config.get_password(), Some(&b"p?s'w"[..]));
        assert_eq!(other.config.get_ports(), [5433]);
        assert_eq!(other.root.as_deref(), Some("/etc/ca.pem"));
        assert_eq!((other.mode, other.is_remote), (Mode::Required, true));
        // What a value in quotes holds is no option.
        let quoted =
            read(r"host = db.example password='a sslmode=disable \' b' sslrootcert=/etc/ca.pem user=c");
        assert_eq!(quoted.config.get_password(), Some(&b"a sslmode=disable ' b"[..]));
        assert_eq!(quoted.config.get_user(), Some("c"));
        assert_eq!(quoted.root.as_deref(), Some("/etc/ca.pem"));
        assert_eq!(quoted.mode, Mode::Required);
    }

    /// Whatever this machine's name for itself is, only what cannot be elsewhere is near.
    /// Proves TL-1.
    #[test]
    fn only_a_socket_and_loopback_are_near() {
        for (hosts, expected) in [
            ("host=/run/postgresql", Reach::Socket),
            ("host=/run/a,/run/b", Reach::Socket),
            ("host=localhost", Reach::Loopback),
            ("host=LOCALHOST", Reach::Loopback),
            ("host=127.0.0.1", Reach::Loopback),
            ("host=127.8.9.1", Reach::Loopback),
            ("host=::1", Reach::Loopback),
            ("host=::ffff:127.0.0.1", Reach::Loopback),
            ("host=localhost,127.0.0.1", Reach::Loopback),
            ("hostaddr=127.0.0.1", Reach::Loopback),
            ("host=db.example hostaddr=127.0.0.1", Reach::Loopback),
            ("host=db.example", Reach::Network),
            ("host=localhost.example", Reach::Network),
            ("host=127.1", Reach::Network),
            ("host=0.0.0.0", Reach::Network),
            ("host=10.0.0.1", Reach::Network),
            ("host=fe80::1", Reach::Network),
            ("host=localhost,db.example", Reach::Network),
            ("host=localhost hostaddr=10.0.0.1", Reach::Network),
            ("hostaddr=127.0.0.1,10.0.0.1", Reach::Network),
        ] {
            let config: Config = hosts.parse().expect(hosts);
            assert_eq!(reach(&config), Ok(expected), "{hosts}");
        }
        assert_eq!(
            refusal("host=/run/postgresql,db.example"),
            "the PostgreSQL url names a socket and a host; name one of them"
        );
        assert!(refusal("host=/run/postgresql hostaddr=10.0.0.1").contains("a socket and a host"));
        assert!(refusal("postgres:///x").contains("names no host"));
    }

    /// Proves TL-1.
    #[test]
    fn tls_is_on_unless_it_is_refused() {
        use Mode::{Offered, Plain, Required};
        const WORDS: [Option<&str>; 7] = [
            None,
            Some("disable"),
            Some("allow"),
            Some("prefer"),
            Some("require"),
            Some("verify-ca"),
            Some("verify-full"),
        ];
        let row =
            |has_root, reach, may_be_plain| WORDS.map(|word| mode(word, has_root, reach, may_be_plain).ok());
        let must = Some(Required);
        let may = Some(Offered);
        let no = Some(Plain);
        assert_eq!(
            row(false, Reach::Network, false),
            [must, None, None, None, must, must, must]
        );
        assert_eq!(
            row(false, Reach::Network, true),
            [must, no, may, may, must, must, must]
        );
        assert_eq!(
            row(false, Reach::Loopback, false),
            [no, no, may, may, must, must, must]
        );
        for reach in [Reach::Network, Reach::Loopback] {
            for may_be_plain in [false, true] {
                let row = row(true, reach, may_be_plain);
                assert_eq!(row, [must, None, must, must, must, must, must], "{reach:?}");
            }
        }
        assert_eq!(row(false, Reach::Socket, false), [no; 7]);
        assert_eq!(mode(Some("on"), false, Reach::Socket, true).ok(), None);
    }

    #[test]
    fn a_refusal_names_what_would_allow_it() {
        for word in ["disable", "prefer", "allow"] {
            let text = format!("postgres://u:hunter2@db.example/x?sslmode={word}");
            let said = refusal(&text);
            for part in [
                word,
                "--database-plaintext",
                "store.database_plaintext",
                "PROVOST_DATABASE_PLAINTEXT",
            ] {
                assert!(said.contains(part), "{part}: {said}");
            }
            assert!(!said.contains("hunter2"), "{said}");
            let allowed = url(&text).allow_plaintext(true);
            assert!(allowed.read().expect("allowed").is_remote);
        }
        // Allowed is not asked for.
        let allowed = url("postgres://u@db.example/x").allow_plaintext(true);
        assert_eq!(allowed.read().expect("read").mode, Mode::Required);
    }

    /// The driver would take the last one, and a reader of the url sees the first.
    #[test]
    fn what_is_said_twice_is_refused() {
        for (text, name) in [
            ("postgres://h/x?sslmode=require&sslmode=disable", "sslmode"),
            ("postgres://h/x?sslmode=require&ssl%6Dode=disable", "sslmode"),
            ("postgresql://h/x?sslrootcert=/a&sslrootcert=/b", "sslrootcert"),
            ("postgres://h/x?host=127.0.0.1", "host"),
            ("postgres://u@h/x?user=v", "user"),
            ("postgres://u:p@h/x?password=q", "password"),
            ("postgres://h/x?dbname=y", "dbname"),
            ("postgres://h?options=-ca=b&options=-cc=d", "options"),
            ("host=h sslmode=require sslmode=disable", "sslmode"),
            ("host=h sslmode = 'require' host=127.0.0.1", "host"),
        ] {
            let expected = format!("the PostgreSQL url says {name} twice; leave one of the two");
            assert_eq!(refusal(text), expected, "{text}");
        }
        // The same word in another place is another thing.
        assert!(url("postgres://u:p@h/user?options=-cuser=1").check().is_ok());
    }

    #[test]
    fn an_unreadable_url_is_told_which_part_it_is() {
        for (text, part) in [
            ("mysql://u:hunter2@h/x", "begins neither with postgres://"),
            ("hunter2", "no list of words"),
            ("host=h password='hunter2", "a quote is not closed"),
            ("postgres://u:hunter2@h:port/x", "its port has"),
            ("postgres://u:hunter2@h:70000/x", "its port has"),
            (
                "postgres://u@h/x?connect_timeout=hunter2",
                "its connect_timeout has",
            ),
            (
                "host=h target_session_attrs=hunter2",
                "its target_session_attrs has",
            ),
            (
                "postgres://u@h/x?hunter2=y",
                "an option that does not exist; there are user, password",
            ),
            ("postgres://u@h/x?hunter2", "has no value"),
            (
                "postgres://%ffhunter2@h/x",
                "its user, password, host or database",
            ),
        ] {
            let said = refusal(text);
            assert!(said.contains(part) && !said.contains("hunter2"), "{text}: {said}");
        }
    }

    #[test]
    fn an_unreadable_url_is_not_shown() {
        for text in [
            "postgres://u:hunter2@h/x?hunter2=y",
            "postgres://u:hunter2@h/x?hunter2",
            "host=h password=hunter2 hunter2",
            "host=h password='hunter2",
            "=hunter2 host=h",
            "postgres://u@h/x?a%ff=hunter2",
        ] {
            let said = refusal(text);
            assert!(
                said.contains("cannot be read") && !said.contains("hunter2"),
                "{text}: {said}"
            );
        }
        assert!(!refusal("host=h sslmode=hunter2").contains("hunter2"));
    }
}
