//! Names whose values are credentials, and names that only sound like them.

/// Parts of the names of members, variables, headers and flags whose values are credentials.
const NAMES: [&str; 18] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "privatekey",
    "private_key",
    "private-key",
    "authorization",
    "credential",
    "cookie",
];
/// The same, of the end of a name.
const ENDS: [&str; 7] = ["pass", "_pwd", "-pwd", "_auth", "-auth", "signature", "jwt"];
/// Ends of names that say where a credential is, what it is called, how much of it there is, or which program knows it: `GIT_ASKPASS`,
/// `secretName`, `tokenAmount`.
const NO_VALUES: &str = "file path name _url -url _uri endpoint _type -type _ttl -ttl _env -env stdin bypass askpass helper \
    command cmd program plugin exec script jar dir -fd id arn amount address domain version";
/// Parts of names of how many tokens of a model: `max_tokens`.
const COUNTS: &str = "max min num total input output prompt completion";

/// Says whether the value of a member, variable, header or flag of this name is a credential.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase();
    let says = NAMES.iter().any(|part| name.contains(part)) || ENDS.iter().any(|end| name.ends_with(end));
    says && !is_no_value(&name) && !name.contains("tokeniz")
}

/// Says whether what a name names is no credential, whatever else stands in the name.
pub fn is_no_value(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let counts = name.ends_with("tokens") && COUNTS.split_whitespace().any(|part| name.contains(part));
    counts || NO_VALUES.split_whitespace().any(|end| name.ends_with(end))
}
