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
            part("crates/server/src/areas/service_accounts/create.rs", &["recheck"]),
            part(
                "crates/server/src/areas/service_accounts/rotate.rs",
                &["check_escalation"],
            ),
            part(
                "crates/server/src/areas/directory/users/create.rs",
                &["may_hand_out"],
            ),
            part("crates/server/src/areas/directory/model.rs", &["permission"]),
            part("crates/server/src/areas/oauth/clients/store.rs", &["may_be"]),
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
            file("crates/server/src/areas/service_accounts/status.rs"),
            file("crates/server/src/areas/service_accounts/credentials.rs"),
            file("crates/server/src/areas/service_accounts/rotate.rs"),
            file("crates/server/src/areas/service_accounts/revoke_token.rs"),
            file("crates/server/src/areas/mcp_sessions/credential.rs"),
            file("crates/server/src/areas/oauth/token/answer.rs"),
            file("crates/server/src/areas/oauth/token/assertion.rs"),
            file("crates/server/src/areas/oauth/token/authenticate.rs"),
            file("crates/server/src/areas/oauth/token/client_credentials.rs"),
            file("crates/server/src/areas/oauth/token/code.rs"),
            file("crates/server/src/areas/oauth/token/exchange.rs"),
            file("crates/server/src/areas/oauth/token/exchanged.rs"),
            file("crates/server/src/areas/oauth/token/id_jag.rs"),
            file("crates/server/src/areas/oauth/token/issue.rs"),
            file("crates/server/src/areas/oauth/token/mod.rs"),
            file("crates/server/src/areas/oauth/token/refresh.rs"),
            file("crates/server/src/areas/oauth/token/scope.rs"),
        ],
    },
    Group {
        name: "states",
        about: "which state follows which",
        goal: 90,
        sources: &[
            file("crates/server/src/areas/mcp_sessions/end.rs"),
            file("crates/server/src/areas/mcp_sessions/open.rs"),
            file("crates/server/src/areas/mcp_sessions/revoke.rs"),
            file("crates/server/src/areas/mcp_sessions/model.rs"),
            file("crates/server/src/areas/backtests/model.rs"),
            file("crates/server/src/areas/managed_config/plan.rs"),
        ],
    },
];

/// Mutants that no test can tell from the original, as expressions; each with its reason.
pub const EQUIVALENT: &[&str] = &[
    // The instant has no bit where the chance has one.
    r"^crates/server/src/areas/mcp_sessions/model\.rs:\d+:\d+: replace \| with \^ in seq$",
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
