//! What is changed, which tests judge it, and how much of it they must notice.

use super::journal::Stage;

/// Code of one promise.
pub struct Group {
    pub name: &'static str,
    /// What the code does, for people.
    pub about: &'static str,
    /// The share of the mutants that must be noticed. Units: percent.
    pub goal: usize,
    pub sets: &'static [Set],
}

/// Code with the tests that judge it.
pub struct Set {
    pub sources: &'static [Source],
    /// Judges every mutant.
    pub unit: Judge,
    /// Judges what the unit tests let through.
    pub integration: Judge,
}

impl Set {
    pub fn judge(&self, stage: Stage) -> &Judge {
        match stage {
            Stage::Unit => &self.unit,
            Stage::Integration => &self.integration,
        }
    }
}

/// A file, or some of its functions.
pub struct Source {
    pub file: &'static str,
    /// The names of functions without their types; the whole file when empty.
    pub functions: &'static [&'static str],
}

/// Tests that are built and run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judge {
    pub package: &'static str,
    /// Which of the package's test programs.
    pub targets: &'static [&'static str],
    /// A filter expression of nextest; everything when empty.
    pub filter: &'static str,
    /// What the tests are made of: while it is the same, they say the same.
    pub ground: &'static str,
}

const fn file(file: &'static str) -> Source {
    Source { file, functions: &[] }
}

const fn part(file: &'static str, functions: &'static [&'static str]) -> Source {
    Source { file, functions }
}

const fn kernel(filter: &'static str) -> Judge {
    Judge {
        package: "provost-kernel",
        targets: &["--lib"],
        filter,
        ground: "crates/kernel",
    }
}

const fn areas(filter: &'static str) -> Judge {
    Judge {
        package: "provost-server",
        targets: &["--lib"],
        filter,
        ground: "crates",
    }
}

const fn scenarios(filter: &'static str) -> Judge {
    Judge {
        package: "provost-server",
        targets: &["--test", "it"],
        filter,
        ground: "crates",
    }
}

pub const GROUPS: &[Group] = &[
    Group {
        name: "authorization",
        about: "who may call",
        goal: 100,
        sets: &[
            Set {
                sources: &[
                    file("crates/kernel/src/auth.rs"),
                    part(
                        "crates/kernel/src/operation.rs",
                        &[
                            "access",
                            "rule",
                            "previews",
                            "accepts_gateway_token",
                            "authorize",
                            "authorize_performance",
                            "may_call",
                            "scoped",
                        ],
                    ),
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
                    part("crates/kernel/src/work/attempt.rs", &["actor", "refresh", "read"]),
                ],
                unit: kernel("test(/^(auth|operation|dispatch|work|credential|error)::/)"),
                integration: scenarios(
                    "test(/^(permissions|escalation|revocation|rotation|replay_cell|idempotency|accounts|subjects|\
                     same_commit|skill_tokens|skill_registry|mcp_sessions|oauth|invariants|input|audit_complete|\
                     torment|clock|writer|managed_config|directory)::/)",
                ),
            },
            Set {
                sources: &[
                    part(
                        "crates/server/src/areas/service_accounts/create.rs",
                        &["recheck", "permission"],
                    ),
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
                unit: areas("test(/^areas::(service_accounts|directory|oauth)/)"),
                integration: scenarios(
                    "test(/^(permissions|escalation|rotation|idempotency|accounts|directory|oauth)::/)",
                ),
            },
        ],
    },
    Group {
        name: "idempotency",
        about: "a key acts once",
        goal: 90,
        sets: &[Set {
            sources: &[
                file("crates/kernel/src/idempotency.rs"),
                part(
                    "crates/kernel/src/work/attempt.rs",
                    &["key_place", "run_call", "in_savepoint", "record", "is_audited"],
                ),
            ],
            unit: kernel("test(/^(idempotency|work|cx|keys|error)::/)"),
            integration: scenarios(
                "test(/^(idempotency|replay_cell|rotation|same_commit|writer|model|skill_tokens|audit_complete|accounts)::/)",
            ),
        }],
    },
    Group {
        name: "tokens",
        about: "what a token is and how long",
        goal: 90,
        sets: &[
            Set {
                sources: &[
                    file("crates/kernel/src/token.rs"),
                    file("crates/kernel/src/credential.rs"),
                ],
                unit: kernel("test(/^(token|credential|keys)::/)"),
                integration: scenarios(
                    "test(/^(revocation|rotation|replay_cell|permissions|accounts|skill_tokens|subjects|mcp_sessions|\
                     oauth|clock|input|torment)::/)",
                ),
            },
            Set {
                sources: &[
                    file("crates/server/src/areas/service_accounts/status.rs"),
                    file("crates/server/src/areas/service_accounts/credentials.rs"),
                    file("crates/server/src/areas/service_accounts/rotate.rs"),
                    file("crates/server/src/areas/service_accounts/revoke_token.rs"),
                ],
                unit: areas("test(/^areas::(service_accounts|skill_registry|mcp_sessions)/)"),
                integration: scenarios(
                    "test(/^(accounts|areas|rotation|revocation|replay_cell|escalation|clock|subjects|torment|\
                     skill_tokens|mcp_sessions|audit_complete)::/)",
                ),
            },
        ],
    },
    Group {
        name: "states",
        about: "which state follows which",
        goal: 90,
        sets: &[
            Set {
                sources: &[
                    file("crates/server/src/areas/mcp_sessions/end.rs"),
                    file("crates/server/src/areas/mcp_sessions/revoke.rs"),
                    file("crates/server/src/areas/mcp_sessions/model.rs"),
                ],
                unit: areas("test(/^areas::mcp_sessions/)"),
                integration: scenarios("test(/^(mcp_sessions|oauth|areas|audit_complete)::/)"),
            },
            Set {
                sources: &[file("crates/server/src/areas/backtests/model.rs")],
                unit: areas("test(/^areas::backtests/)"),
                integration: scenarios("test(/^(backtests|backtests_worker)::/)"),
            },
            Set {
                sources: &[file("crates/server/src/areas/managed_config/plan.rs")],
                unit: areas("test(/^areas::managed_config/)"),
                integration: scenarios("test(/^(managed_config|permissions)::/)"),
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn every_file_and_function_that_is_named_is_there() {
        for source in GROUPS
            .iter()
            .flat_map(|group| group.sets)
            .flat_map(|set| set.sources)
        {
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
