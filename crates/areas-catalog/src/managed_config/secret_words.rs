//! Which names, and which texts, may be of a secret (D8.6).
//!
//! A name is judged by its words (`apiKey`, `api_key`, `API-KEY`, `APIKey` are two each), a text by what stands in it. Where a
//! name has two meanings it hides: a number of tokens that is hidden costs a look at the file, a token that is shown costs the
//! token. What is hidden by mistake is written down in the tests beside what stays shown.

/// Words of names that hide.
const WORDS: &[&str] = &[
    "apikey",
    "apikeys",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cookies",
    "cred",
    "creds",
    "credential",
    "credentials",
    "dsn",
    "jwt",
    "key",
    "keys",
    "pass",
    "passcode",
    "passphrase",
    "passphrases",
    "passwd",
    "password",
    "passwords",
    "pat",
    "pin",
    "private",
    "psk",
    "pwd",
    "secret",
    "secrets",
    "sig",
    "signature",
    "token",
    "tokens",
];
/// What hides wherever it stands in a name, also within a word.
const PARTS: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "api_key",
    "accesskey",
    "privatekey",
    "signingkey",
    "credential",
    "authorization",
    "connectionstring",
];
/// Words behind which a key is one to press, or to look up by.
const PRESSED: &[&str] = &[
    "binding", "bindings", "board", "map", "maps", "stroke", "strokes", "code", "codes",
];
/// How tokens begin that are known by it, and how long each is at least.
const KNOWN: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("pk_live_", 16),
    ("whsec_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 14),
    ("xoxp-", 14),
    ("xoxa-", 14),
    ("xoxr-", 14),
    ("xoxs-", 14),
    ("xapp-", 14),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("ya29.", 16),
    ("npm_", 20),
    ("pypi-", 20),
    ("hf_", 16),
    ("prov_", 20),
    ("dop_v1_", 20),
    ("SG.", 20),
];

/// Says whether what lies under a member of this name is hidden.
pub fn hides(name: &str) -> bool {
    let lower = name.to_lowercase();
    if lower == "env" || lower.ends_with("headers") || lower.ends_with("header") || name.ends_with("Helper") {
        return true;
    }
    if PARTS.iter().any(|part| lower.contains(part)) {
        return true;
    }
    let words = words(name);
    words.iter().enumerate().any(|(place, word)| {
        let next = words.get(place + 1).map(String::as_str);
        let is_pressed =
            matches!(word.as_str(), "key" | "keys") && next.is_some_and(|next| PRESSED.contains(&next));
        WORDS.contains(&word.as_str()) && !is_pressed
    })
}

/// Returns the words of a name in lower case: they end at a sign, and before a capital letter behind a small one or before a
/// small one.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (place, letter) in letters.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| letters.get(place));
        let next = letters.get(place + 1);
        let begins = letter.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || (before.is_some_and(|before| before.is_uppercase())
                    && next.is_some_and(|next| next.is_lowercase())));
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    // `key2` is a key as well.
    let stem = |word: String| word.trim_end_matches(|c: char| c.is_numeric()).to_owned();
    words
        .into_iter()
        .map(stem)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Says whether an argument has the next one for its value, and the value is hidden: `--api-key`, `-u`.
pub fn is_flag(argument: &str) -> bool {
    let name = argument.trim_start_matches('-');
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    argument.starts_with('-')
        && is_name
        && (hides(name) || matches!(argument, "-u" | "--user" | "--proxy-user" | "-H"))
}

/// Says whether a text may hold a secret, whatever its name.
pub fn holds_secret(text: &str) -> bool {
    names_a_user(text) || assigns(text) || is_challenge_answer(text) || has_known(text)
}

/// Says whether a text is an address with a user and, maybe, a password in it.
fn names_a_user(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority.contains('@')
    })
}

/// Says whether a text gives a value to a name that hides: in a query or a fragment, an assignment, a header, or an argument
/// of a command.
fn assigns(text: &str) -> bool {
    let assigned = |piece: &str| {
        piece
            .split_once('=')
            .is_some_and(|(name, value)| !value.is_empty() && (hides(&unescaped(name)) || is_flag(name)))
    };
    let ends = |c: char| c.is_whitespace() || matches!(c, '?' | '&' | '#' | ';' | ',');
    if text.split(ends).any(assigned) {
        return true;
    }
    let arguments: Vec<&str> = text.split_whitespace().collect();
    arguments.iter().enumerate().any(|(place, argument)| {
        let bare = argument.trim_matches(['"', '\'']);
        let has_next = place + 1 < arguments.len();
        let named = bare
            .split_once(':')
            .is_some_and(|(name, value)| (has_next || !value.is_empty()) && hides(name));
        named || (has_next && is_flag(bare))
    })
}

/// Returns a name with its percent signs read.
fn unescaped(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let [first, behind @ ..] = rest {
        let escaped = match behind {
            [high, low, ..] if *first == b'%' => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = behind
            .get(if escaped.is_some() { 2 } else { 0 }..)
            .unwrap_or_default();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Says whether `Bearer …` or `Basic …` stands in a text.
fn is_challenge_answer(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let [scheme, value] = pair else { return false };
        let scheme = scheme.trim_matches(['"', '\'']).to_lowercase();
        let is_whole = words.len() == 2;
        match scheme.as_str() {
            "bearer" => is_whole || value.len() >= 6,
            "basic" => {
                is_whole || (value.len() >= 8 && value.chars().any(|c| c.is_ascii_digit() || c == '='))
            }
            _ => false,
        }
    })
}

/// Says whether something stands in a text that is known by its form: a token of a known service, a JWT, a private key.
fn has_known(text: &str) -> bool {
    if text.contains("PRIVATE KEY-----") {
        return true;
    }
    let runs = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
    runs.into_iter().any(|run| {
        let is_jwt = run.starts_with("eyJ") && run.split('.').count() >= 3;
        is_jwt
            || KNOWN
                .iter()
                .any(|(beginning, least)| run.len() >= *least && run.starts_with(beginning))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves MC-5.
    #[test]
    fn names_hide_by_their_words() {
        for name in [
            "env",
            "headers",
            "http_headers",
            "requestHeaders",
            "authHeader",
            "apiKeyHelper",
            "otelHeadersHelper",
            "clientSecret",
            "GITHUB_TOKEN",
            "password",
            "apiKey",
            "api_key",
            "API_KEY",
            "APIKey",
            "api-key",
            "credentials",
            "privateKey",
            "private_key",
            "PRIVATE-KEY",
            "passphrase",
            "authorization",
            "proxyAuthorization",
            "auth",
            "basicAuth",
            "cookie",
            "sessionCookie",
            "passwd",
            "dbPasswd",
            "pwd",
            "DB_PWD",
            "pass",
            "smtpPass",
            "key",
            "sshKey",
            "accessKeyId",
            "key2",
            "bearer",
            "bearerValue",
            "sentryDsn",
            "DSN",
            "signature",
            "jwt",
            "authtoken",
            "accesskey",
            "connectionString",
            // Hidden although they may be harmless: better so.
            "tokenLimit",
            "maxTokens",
            "env_key",
            "preferred_auth_method",
            "privateRepositories",
        ] {
            assert!(hides(name), "{name}");
        }
        for name in [
            "environment",
            "deny",
            "helperCommand",
            "permissions",
            "headersHidden",
            "keybindings",
            "keyBindings",
            "keyboard",
            "keymap",
            "author",
            "authors",
            "authority",
            "bypassPermissionsMode",
            "passthrough",
            "compass",
            "monkey",
            "hotkey",
            "pattern",
            "path",
            "signal",
            "design",
            "model",
            "cleanupPeriodDays",
            "pinned",
            "spin",
            "oauthly",
            "args",
            "url",
        ] {
            assert!(!hides(name), "{name}");
        }
    }

    /// Proves MC-5.
    #[test]
    fn texts_hide_by_what_stands_in_them() {
        for text in [
            "https://bob:V@proxy.example/",
            "https://h/x?access_token=V",
            "https://h/x?a=b&access%5Ftoken=V",
            "https://h/x?a=b&%61pi_key=V",
            "https://h/x#id_token=V",
            "--api-key=V",
            "API_KEY=V",
            "tool --password V --verbose",
            "curl -u bob:V https://h",
            "curl -H 'X-Api-Key: V' https://h",
            "Authorization: V",
            "Cookie: a=V",
            "Bearer V",
            "basic V",
            "curl -H \"Authorization: Bearer V\"",
            "say bearer abcdef12",
            "Server=db;Password=V;",
            "sk-abcdefghijklmnop",
            "run ghp_0123456789abcdef now",
            "AKIAIOSFODNN7EXAMPLE",
            "https://h/eyJhbGciOi.eyJzdWIi.c2ln/x",
            "-----BEGIN EC PRIVATE KEY-----",
        ] {
            assert!(holds_secret(text), "{text}");
        }
        for text in [
            "bob@example.com",
            "https://example.com/x?page=2#part",
            "Bash(git push:*)",
            "Read(./src/**)",
            "opus",
            "a basic rule of the house",
            "bearer of news",
            "sk-short",
            "npx -y server --port 8080 --author ann",
            "the author: Ann",
            "LOG_LEVEL=debug",
            "1.2.3",
        ] {
            assert!(!holds_secret(text), "{text}");
        }
        assert!(is_flag("--api-key") && is_flag("-u") && is_flag("-H") && is_flag("--auth"));
        assert!(!is_flag("--port") && !is_flag("api-key") && !is_flag("--") && !is_flag("--api-key=V"));
    }
}
