//! The document, its factory state and its bounds.

use provost_kernel::Timestamp;
use provost_kernel::text::Bounded;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const DAY_SECS: i64 = 86_400;

// A stored document may lack members (SE-2); an answer has them all, which its schema says in `extend`.

/// The automation settings of an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["tokens", "managedConfig", "llmGateway", "policies", "retention"]))]
pub struct Settings {
    /// Tokens of service accounts.
    pub tokens: Tokens,
    /// Managed configuration.
    pub managed_config: ManagedConfig,
    /// The LLM gateway.
    pub llm_gateway: LlmGateway,
    /// Policies and what is asked about them.
    pub policies: Policies,
    /// How long what was recorded is kept.
    pub retention: Retention,
}

/// How tokens of service accounts live and die.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["secretReplaySeconds", "defaultGraceSeconds", "maxLifetimeSeconds", "revokeFamilyOnReuse"]))]
pub struct Tokens {
    /// How long a lost answer can be fetched again with its secret. Units: seconds.
    pub secret_replay_seconds: i64,
    /// How long a rotated token still works when the caller does not say. Units: seconds.
    pub default_grace_seconds: i64,
    /// The longest life of a token. Units: seconds.
    pub max_lifetime_seconds: i64,
    /// Whether the reuse of a dead token revokes its successors.
    pub revoke_family_on_reuse: bool,
}

/// How managed configuration is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["requirePreview"]))]
pub struct ManagedConfig {
    /// Whether a rollback must have been previewed.
    pub require_preview: bool,
}

/// Whether the LLM gateway answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["enabled"]))]
pub struct LlmGateway {
    /// Whether it does.
    pub enabled: bool,
}

/// Policies and what is asked about them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["maxBacktestDays"]))]
pub struct Policies {
    /// The longest window of a backtest; the history's retention bounds it as well. Units: days.
    pub max_backtest_days: i64,
}

impl Default for Policies {
    fn default() -> Self {
        // D9.5
        Self {
            max_backtest_days: 90,
        }
    }
}

/// How long what was recorded is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["historyDays"]))]
pub struct Retention {
    /// Recorded decisions and imported events. Units: days.
    pub history_days: i64,
}

impl Default for Retention {
    fn default() -> Self {
        // D12.6: as long as the audit log.
        Self { history_days: 400 }
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            secret_replay_seconds: DAY_SECS,
            default_grace_seconds: 0,
            max_lifetime_seconds: 365 * DAY_SECS,
            revoke_family_on_reuse: false,
        }
    }
}

impl Default for LlmGateway {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Settings {
    /// Returns every member with its JSON Pointer, for the audit entry.
    pub(super) fn members(&self) -> [(&'static str, Value); 8] {
        let Self {
            tokens,
            managed_config,
            llm_gateway,
            policies,
            retention,
        } = self;
        [
            ("/tokens/secretReplaySeconds", tokens.secret_replay_seconds.into()),
            ("/tokens/defaultGraceSeconds", tokens.default_grace_seconds.into()),
            ("/tokens/maxLifetimeSeconds", tokens.max_lifetime_seconds.into()),
            (
                "/tokens/revokeFamilyOnReuse",
                tokens.revoke_family_on_reuse.into(),
            ),
            (
                "/managedConfig/requirePreview",
                managed_config.require_preview.into(),
            ),
            ("/llmGateway/enabled", llm_gateway.enabled.into()),
            ("/policies/maxBacktestDays", policies.max_backtest_days.into()),
            ("/retention/historyDays", retention.history_days.into()),
        ]
    }
}

/// The settings as a whole; absent members have their factory value.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct Wanted {
    tokens: WantedTokens,
    managed_config: WantedManagedConfig,
    llm_gateway: WantedLlmGateway,
    policies: WantedPolicies,
    retention: WantedRetention,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedTokens {
    /// How long a lost answer can be fetched again with its secret, in seconds.
    secret_replay_seconds: Bounded<0, 86_400>,
    /// How long a rotated token still works when the caller does not say, in seconds.
    default_grace_seconds: Bounded<0, 604_800>,
    /// The longest life of a token, in seconds. Tokens that exist keep theirs.
    max_lifetime_seconds: Bounded<3_600, 31_536_000>,
    /// Whether the reuse of a revoked token revokes its successors too.
    revoke_family_on_reuse: bool,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedManagedConfig {
    /// Whether a rollback must have been previewed.
    require_preview: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedLlmGateway {
    /// Whether the LLM gateway answers.
    enabled: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedPolicies {
    /// The longest window of a backtest, in days; the history's retention bounds it as well.
    max_backtest_days: Bounded<1, 3_650>,
}

impl Default for WantedPolicies {
    fn default() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the factory's value lies within the bounds; a test reads it"
        )]
        let max_backtest_days = Bounded::new(Policies::default().max_backtest_days).expect("within bounds");
        Self { max_backtest_days }
    }
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedRetention {
    /// How long recorded decisions and imported events are kept, in days.
    history_days: Bounded<1, 3_650>,
}

impl Default for WantedRetention {
    fn default() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the factory's value lies within the bounds; a test reads it"
        )]
        let history_days = Bounded::new(Retention::default().history_days).expect("within bounds");
        Self { history_days }
    }
}

impl Default for WantedTokens {
    fn default() -> Self {
        let factory = Tokens::default();
        #[expect(
            clippy::expect_used,
            reason = "the factory's values lie within the bounds; a test reads them"
        )]
        let (replay, grace, lifetime) = (
            Bounded::new(factory.secret_replay_seconds).expect("within bounds"),
            Bounded::new(factory.default_grace_seconds).expect("within bounds"),
            Bounded::new(factory.max_lifetime_seconds).expect("within bounds"),
        );
        Self {
            secret_replay_seconds: replay,
            default_grace_seconds: grace,
            max_lifetime_seconds: lifetime,
            revoke_family_on_reuse: factory.revoke_family_on_reuse,
        }
    }
}

impl Default for WantedLlmGateway {
    fn default() -> Self {
        Self {
            enabled: LlmGateway::default().enabled,
        }
    }
}

impl Wanted {
    /// Returns the settings.
    pub(super) fn settings(&self) -> Settings {
        let tokens = &self.tokens;
        Settings {
            tokens: Tokens {
                secret_replay_seconds: tokens.secret_replay_seconds.get(),
                default_grace_seconds: tokens.default_grace_seconds.get(),
                max_lifetime_seconds: tokens.max_lifetime_seconds.get(),
                revoke_family_on_reuse: tokens.revoke_family_on_reuse,
            },
            managed_config: ManagedConfig {
                require_preview: self.managed_config.require_preview,
            },
            llm_gateway: LlmGateway {
                enabled: self.llm_gateway.enabled,
            },
            policies: Policies {
                max_backtest_days: self.policies.max_backtest_days.get(),
            },
            retention: Retention {
                history_days: self.retention.history_days.get(),
            },
        }
    }
}

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AutomationSettings {
    #[serde(flatten)]
    pub settings: Settings,
    /// When they were last set; absent in the factory state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_empty_document_is_the_factory_state() {
        assert_eq!(
            serde_json::from_value::<Settings>(json!({})).unwrap(),
            Settings::default()
        );
        assert_eq!(
            serde_json::from_value::<Wanted>(json!({})).unwrap().settings(),
            Settings::default()
        );
    }

    #[test]
    fn a_document_of_a_later_version_is_read() {
        let later = json!({ "tokens": { "defaultGraceSeconds": 5, "later": 1 }, "later": {} });
        let settings: Settings = serde_json::from_value(later).unwrap();
        assert_eq!(
            settings.tokens,
            Tokens {
                default_grace_seconds: 5,
                ..Tokens::default()
            }
        );
    }

    #[test]
    fn every_member_is_noted_when_it_changes() {
        let document = serde_json::to_value(Settings::default()).unwrap();
        let leaves = document
            .as_object()
            .unwrap()
            .values()
            .map(|group| group.as_object().unwrap().len());
        let members = Settings::default().members();
        assert_eq!(leaves.sum::<usize>(), members.len());
        for (pointer, value) in members {
            assert_eq!(document.pointer(pointer), Some(&value), "{pointer}");
        }
    }
}
