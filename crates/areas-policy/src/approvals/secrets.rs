//! What looks like a credential in a text, wherever it stands.

use super::values::HIDDEN;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// LIMIT: a run of letters and digits of no known form is a credential from this length on. Source: the scanner of machines.
const LONG: usize = 20;

/// Says whether something in a text, whose values are hidden, looks like a credential.
pub fn looks_secret(text: &str) -> bool {
    let runs = || text.split(|c: char| !c.is_ascii_alphanumeric());
    // The secret half of a key of AWS is forty characters of base64 without any sign of what it is.
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "/+=".contains(c)));
    provost_inventory::holds_credential(text)
        || runs().any(|run| run.len() >= LONG && is_mixed(run))
        || words.into_iter().any(|word| word.len() == 40 && is_mixed(word))
        || has_scheme(text)
        || has_argument(text)
}

/// Says whether small and large letters and digits are mixed as no word is. Digests and ids of hexadecimal digits are not.
fn is_mixed(run: &str) -> bool {
    let count = |of: fn(&u8) -> bool| run.as_bytes().iter().filter(|byte| of(byte)).count();
    count(u8::is_ascii_digit) >= 3 && count(u8::is_ascii_uppercase) >= 2 && count(u8::is_ascii_lowercase) >= 2
}

/// Says whether a scheme of authorization stands before something that is no reference.
fn has_scheme(text: &str) -> bool {
    let mut before = "";
    for word in text
        .split(|c: char| c.is_whitespace() || "\"'`".contains(c))
        .filter(|word| !word.is_empty())
    {
        let is_shown = word != HIDDEN && !word.starts_with(HIDDEN) && !is_reference(word);
        // `X:Basic …`, `X=Bearer …`
        let last = before
            .trim_end_matches(':')
            .rsplit([':', '='])
            .next()
            .unwrap_or(before);
        let before_is = |scheme: &str| last.eq_ignore_ascii_case(scheme);
        if is_shown && before_is("bearer") {
            return true;
        }
        if is_shown
            && before_is("basic")
            && STANDARD_NO_PAD
                .decode(word.trim_end_matches('='))
                .is_ok_and(|said| said.contains(&b':'))
        {
            return true;
        }
        before = word;
    }
    false
}

/// Programs, and the flag behind which they take a password.
const ARGUMENTS: [(&[&str], &str); 7] = [
    (
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
        ],
        "-p",
    ),
    (&["sshpass"], "-p"),
    (&["redis-cli"], "-a"),
    (&["login"], "-p"),
    (&["7z", "7za", "7zz", "rar", "unrar"], "-p"),
    (&["zip", "unzip"], "-P"),
    (&["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete"], "-w"),
];

/// Says whether a program that takes a password behind a flag of one letter is given one: `-pPASSWORD`, `-u user:password`.
fn has_argument(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || "\"'`;|&()[],".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let is_called = |names: &[&str]| {
        words
            .iter()
            .any(|word| names.contains(&word.rsplit(['/', '\\']).next().unwrap_or(word)))
    };
    let is_said = |value: &str| !value.is_empty() && !is_reference(value) && !value.starts_with(HIDDEN);
    for (names, flag) in ARGUMENTS {
        if !is_called(names) {
            continue;
        }
        for (at, word) in words.iter().enumerate() {
            let Some(glued) = word.strip_prefix(flag) else {
                continue;
            };
            // `mysql -p base` asks for the password; the others take the next word.
            let next = words.get(at + 1).copied().unwrap_or_default();
            let takes_next = !names.contains(&"mysql") && !next.starts_with('-');
            if is_said(glued.trim_start_matches('=')) || (glued.is_empty() && takes_next && is_said(next)) {
                return true;
            }
        }
    }
    // Of curl and its like; `docker run -u 1000:1000` has numbers.
    let pairs = |word: &str| {
        let (name, password) = word.split_once(':').unwrap_or_default();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_said(password) && !(is_number(name) && is_number(password))
    };
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let is_flag = matches!(*word, "-u" | "-U" | "--user" | "--proxy-user");
        let glued = word
            .strip_prefix("-u")
            .or_else(|| word.strip_prefix("--user="))
            .filter(|rest| !rest.starts_with('-'));
        (is_flag && pairs(next)) || (is_called(&["curl", "wget", "http"]) && glued.is_some_and(pairs))
    })
}

/// Says whether a text is the name of a value and not the value: `$TOKEN`, `${token}`. `$ecret` may be one.
pub fn is_reference(text: &str) -> bool {
    let Some(name) = text.strip_prefix('$') else {
        return false;
    };
    let is_name = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
        Some(name) => !name.is_empty() && is_name(name),
        None => !name.is_empty() && is_name(name) && !name.bytes().any(|byte| byte.is_ascii_lowercase()),
    }
}
