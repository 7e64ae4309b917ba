//! What is changed, and how much of it the tests must notice.

/// Code of one promise.
pub struct Group {
    pub name: &'static str,
    /// What the code does, for people.
    pub about: &'static str,
    /// The share of the mutants that must be noticed. Units: percent.
    pub goal: usize,
    pub sources: &'static [Source],
}

impl Group {
    /// Whether a mutant is one of its own: version 27 also tries members of literals in functions that were not named.
    pub fn has(&self, mutant: &str) -> bool {
        let function = mutant.rsplit_once(" in ").map_or("", |(_, path)| path);
        let function = function.rsplit("::").next().unwrap_or_default();
        self.sources.iter().any(|source| {
            let is_wanted = source.functions.is_empty() || source.functions.contains(&function);
            mutant.starts_with(source.file) && (is_wanted || !mutant.contains(": delete field "))
        })
    }
}

/// A file, or some of its functions.
pub struct Source {
    pub file: &'static str,
    /// The names of functions without their types; the whole file when empty.
    pub functions: &'static [&'static str],
}

impl Source {
    /// The expression that the names of its mutants match, and no others.
    ///
    /// cargo-mutants calls them `FILE:LINE:COLUMN: replace TYPE::FUNCTION -> … with …` and `FILE:LINE:COLUMN: … in TYPE::FUNCTION`.
    pub fn expression(&self) -> String {
        let file = self.file.replace('.', r"\.");
        if self.functions.is_empty() {
            return format!("^{file}:");
        }
        let functions = self.functions.join("|");
        format!(
            r"^{file}:\d+:\d+: (replace ([^ ]*::)?({functions})( ->.*)? with |.* in (.*::)?({functions})$)"
        )
    }
}

const fn file(file: &'static str) -> Source {
    Source { file, functions: &[] }
}

const fn part(file: &'static str, functions: &'static [&'static str]) -> Source {
    Source { file, functions }
}

pub const GROUPS: &[Group] = &[
    Group {
        name: "authorization",
        about: "who may call",
        goal: 100,
        sources: &[
            file("crates/kernel/src/auth.rs"),
            file("crates/kernel/src/auth/scopes.rs"),
            part(
                "crates/kernel/src/operation/meta.rs",
                &["access", "rule", "previews", "accepts_item_token"],
            ),
            file("crates/kernel/src/operation/authorize.rs"),
            file("crates/kernel/src/dispatch/identify.rs"),
            part(
                "crates/kernel/src/dispatch/mod.rs",
                &[
                    "settle",
                    "precheck",
                    "on_reader",
                    "in_snapshot",
                    "proceed",
                    "admit",
                    "fetch_lost_answer",
                ],
            ),
            part("crates/kernel/src/work/attempt.rs", &["actor", "refresh"]),
            part(
                "crates/areas-identity/src/service_accounts/create.rs",
                &["recheck"],
            ),
            part(
                "crates/areas-identity/src/service_accounts/rotate.rs",
                &["check_escalation"],
            ),
            part(
                "crates/areas-identity/src/directory/users/create.rs",
                &["may_hand_out"],
            ),
            part("crates/areas-identity/src/directory/model.rs", &["permission"]),
            part("crates/areas-access/src/oauth/clients/store.rs", &["may_be"]),
        ],
    },
    Group {
        name: "idempotency",
        about: "a key acts once",
        goal: 90,
        sources: &[
            file("crates/kernel/src/idempotency.rs"),
            part(
                "crates/kernel/src/work/attempt.rs",
                &["key_place", "run_call", "in_savepoint", "record", "is_audited"],
            ),
        ],
    },
    Group {
        name: "tokens",
        about: "what a token is and how long",
        goal: 90,
        sources: &[
            file("crates/kernel/src/token.rs"),
            file("crates/kernel/src/credential.rs"),
            file("crates/kernel/src/credential/scheme.rs"),
            file("crates/areas-identity/src/service_accounts/status.rs"),
            file("crates/areas-identity/src/service_accounts/credentials.rs"),
            file("crates/areas-identity/src/service_accounts/rotate.rs"),
            file("crates/areas-identity/src/service_accounts/revoke_token.rs"),
            file("crates/areas-access/src/mcp_sessions/credential.rs"),
            file("crates/areas-access/src/oauth/token/answer.rs"),
            file("crates/areas-access/src/oauth/token/assertion.rs"),
            file("crates/areas-access/src/oauth/token/authenticate.rs"),
            file("crates/areas-access/src/oauth/token/client_credentials.rs"),
            file("crates/areas-access/src/oauth/token/code.rs"),
            file("crates/areas-access/src/oauth/token/exchange.rs"),
            file("crates/areas-access/src/oauth/token/exchanged.rs"),
            file("crates/areas-access/src/oauth/token/id_jag.rs"),
            file("crates/areas-access/src/oauth/token/issue.rs"),
            file("crates/areas-access/src/oauth/token/mod.rs"),
            file("crates/areas-access/src/oauth/token/refresh.rs"),
            file("crates/areas-access/src/oauth/token/scope.rs"),
        ],
    },
    Group {
        name: "states",
        about: "which state follows which",
        goal: 90,
        sources: &[
            file("crates/areas-access/src/mcp_sessions/end.rs"),
            file("crates/areas-access/src/mcp_sessions/open.rs"),
            file("crates/areas-access/src/mcp_sessions/revoke.rs"),
            file("crates/areas-access/src/mcp_sessions/model.rs"),
            file("crates/areas-policy/src/backtests/model.rs"),
            file("crates/areas-catalog/src/managed_config/plan.rs"),
        ],
    },
];

/// Mutants that no test can tell from the original, as expressions; each with its reason.
pub const EQUIVALENT: &[&str] = &[
    // The instant has no bit where the chance has one.
    r"^crates/areas-access/src/mcp_sessions/model\.rs:\d+:\d+: replace \| with \^ in seq$",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn members_of_literals_count_where_their_function_was_named() {
        let mutant = |name: &str| format!("crates/kernel/src/operation/meta.rs:254:16: {name}");
        let field = |function: &str| {
            mutant(&format!(
                "delete field access from struct Meta expression in {function}"
            ))
        };
        assert!(GROUPS[0].has(&field("Draft::rule")));
        assert!(!GROUPS[0].has(&field("Meta::ingest")));
        assert!(GROUPS[0].has(&mutant("replace may_call -> bool with true")));
        assert!(!GROUPS[1].has(&field("Draft::rule")));
        assert!(!GROUPS[0].has(""));
    }

    #[test]
    fn every_file_and_function_that_is_named_is_there() {
        for source in GROUPS.iter().flat_map(|group| group.sources) {
            let text = std::fs::read_to_string(process::root().join(source.file)).unwrap();
            for function in source.functions {
                assert!(
                    text.contains(&format!("fn {function}(")),
                    "{}: no {function}",
                    source.file
                );
            }
        }
    }
}
