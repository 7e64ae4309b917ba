//! The document, its factory state and its bounds.
//!
//! Keeps SE-1, SE-2.

use super::approvals::{Approvals, WantedApprovals};
use super::fleet::{Fleet, WantedFleet};
use provost_kernel::auth::Role;
use provost_kernel::patch::RequiredChange;
use provost_kernel::text::IntegerBetween;
use provost_kernel::{Timestamp, word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const DAY_SECS: i64 = 86_400;
/// How long a shorter retention waits before it acts: time enough to notice and to take it back.
pub(super) const SHORTENING_SECS: i64 = 7 * DAY_SECS;

// A stored document may lack members (SE-2); an answer has them all, which its schema says in `extend`.

/// The automation settings of an organization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["tokens", "managedConfig", "llmGateway", "policies", "history", "retention", "directory", "oauth", "fleet", "approvals"]))]
pub struct Settings {
    /// Tokens of service accounts.
    pub tokens: Tokens,
    /// Managed configuration.
    pub managed_config: ManagedConfig,
    /// The LLM gateway.
    pub llm_gateway: LlmGateway,
    /// Policies and what is asked about them.
    pub policies: Policies,
    /// What of the recorded history counts.
    pub history: History,
    /// How long what was recorded is kept.
    pub retention: Retention,
    /// What the directory is to policies, and what a file may take from it.
    pub directory: Directory,
    /// Delegated access.
    pub oauth: DelegatedAccess,
    /// Devices.
    pub fleet: Fleet,
    /// What one person alone does not do.
    pub approvals: Approvals,
    /// A shorter retention that does not act yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retention_shortening: Option<PendingRetention>,
}

/// A shorter retention that does not act yet; setting a longer one takes it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct PendingRetention {
    /// How long recorded decisions and imported events are kept until then. Units: days.
    pub history_days: i64,
    /// When the retention that was set acts.
    pub acts_at: Timestamp,
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

/// What the directory is to policies, and what a file may take from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["complete", "maxRemovalPercent", "defaultRole"]))]
pub struct Directory {
    /// Whether everybody who may act is a user of it or a service account. Nobody can say whom a policy matches then when an
    /// event names somebody else.
    pub complete: bool,
    /// How much of a directory's users, of its groups or of its memberships a file removes without a word. Units: percent.
    pub max_removal_percent: i64,
    /// The role of users to whom nobody gave one.
    pub default_role: DefaultRole,
}

word! {
    /// The role of users to whom nobody gave one. There is nothing above `member` (SE-6): more than what everybody may do for
    /// themselves is given by name.
    pub enum DefaultRole {
        /// They have none, and call nothing.
        None = "none",
        /// They do for themselves what everybody may.
        Member = "member",
    }
}

impl DefaultRole {
    /// Returns the role.
    ///
    /// Keeps SE-6.
    pub fn role(self) -> Option<Role> {
        match self {
            Self::None => None,
            Self::Member => Some(Role::Member),
        }
    }
}

/// How programs go on that act for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["refreshLeewaySeconds"]))]
pub struct DelegatedAccess {
    /// How long a refresh token that was used is answered with the same successor, whose first answer was lost. Units: seconds.
    pub refresh_leeway_seconds: i64,
}

impl Default for DelegatedAccess {
    fn default() -> Self {
        // Programs try again for some minutes after a network that went away.
        Self {
            refresh_leeway_seconds: 600,
        }
    }
}

impl Default for Directory {
    fn default() -> Self {
        // A tenth is more than an ordinary week brings, and less than a broken export takes.
        Self {
            complete: false,
            max_removal_percent: 10,
            default_role: DefaultRole::None,
        }
    }
}

impl Default for Policies {
    fn default() -> Self {
        // D9.5
        Self {
            max_backtest_days: 90,
        }
    }
}

/// What of the recorded history counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["countImports"]))]
pub struct History {
    /// Whether live conditions on the past count imported events. Backtests count every event that they evaluate.
    pub count_imports: bool,
}

/// How long what was recorded is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["historyDays"]))]
pub struct Retention {
    /// Recorded decisions and imported events, as it was set: see [`Settings::acting_history_days`]. Units: days.
    pub(super) history_days: i64,
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
    /// Returns how long recorded decisions and imported events are kept at an instant. Units: days.
    ///
    /// INVARIANT SE-4: what is shortened acts [`SHORTENING_SECS`] later.
    pub fn acting_history_days(&self, now: Timestamp) -> i64 {
        let set = self.retention.history_days;
        match &self.retention_shortening {
            Some(shortening) if now < shortening.acts_at => set.max(shortening.history_days),
            _ => set,
        }
    }

    /// Returns the instant up to which a confirmed shortening that acts now lets events go, if there is one: whoever confirmed
    /// it knew that.
    pub fn released_before(&self, now: Timestamp) -> Option<Timestamp> {
        let shortening = self.retention_shortening.as_ref()?;
        let secs = self.retention.history_days.saturating_mul(DAY_SECS);
        (now >= shortening.acts_at).then(|| shortening.acts_at.plus_secs(-secs))
    }

    /// Returns the settings without what does not wait any more.
    pub(super) fn at(mut self, now: Timestamp) -> Self {
        self.retention_shortening
            .take_if(|waiting| now >= waiting.acts_at);
        self
    }

    /// Returns what waits when the retention of `self` is set to that of `after`: nothing when it grows or was lengthened
    /// again, what waits already when it stays.
    pub(super) fn shortened_to(&self, after: &Settings, now: Timestamp) -> Option<PendingRetention> {
        let (acting, wanted) = (self.acting_history_days(now), after.retention.history_days);
        if wanted == self.retention.history_days {
            return self.clone().at(now).retention_shortening;
        }
        (wanted < acting).then(|| PendingRetention {
            history_days: acting,
            acts_at: now.plus_secs(SHORTENING_SECS),
        })
    }

    /// Returns every member that can be set with its JSON Pointer.
    pub(super) fn members(&self) -> [(&'static str, Value); 30] {
        let Self {
            tokens,
            managed_config,
            llm_gateway,
            policies,
            history,
            retention,
            directory,
            oauth,
            fleet,
            approvals,
            retention_shortening: _,
        } = self;
        let [acts_of_two] = approvals.members();
        let [
            approval,
            self_enrolment,
            retirement,
            silence,
            judging,
            mode,
            deadline,
            on_unknown,
            offline,
            record,
            people,
            host_names,
            project_names,
            prompts,
            tool_arguments,
            quarantine,
        ] = fleet.members();
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
            ("/history/countImports", history.count_imports.into()),
            ("/retention/historyDays", retention.history_days.into()),
            ("/directory/complete", directory.complete.into()),
            (
                "/directory/maxRemovalPercent",
                directory.max_removal_percent.into(),
            ),
            ("/directory/defaultRole", directory.default_role.as_str().into()),
            ("/oauth/refreshLeewaySeconds", oauth.refresh_leeway_seconds.into()),
            approval,
            self_enrolment,
            retirement,
            silence,
            judging,
            mode,
            deadline,
            on_unknown,
            offline,
            record,
            people,
            host_names,
            project_names,
            prompts,
            tool_arguments,
            quarantine,
            acts_of_two,
        ]
    }
}

/// What a body names of the settings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct SettingsChange {
    tokens: WantedTokens,
    managed_config: WantedManagedConfig,
    llm_gateway: WantedLlmGateway,
    policies: WantedPolicies,
    history: WantedHistory,
    retention: WantedRetention,
    directory: WantedDirectory,
    oauth: WantedDelegatedAccess,
    fleet: WantedFleet,
    approvals: WantedApprovals,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedTokens {
    /// How long a lost answer can be fetched again with its secret, in seconds.
    secret_replay_seconds: RequiredChange<IntegerBetween<0, 86_400>>,
    /// How long a rotated token still works when the caller does not say, in seconds.
    default_grace_seconds: RequiredChange<IntegerBetween<0, 604_800>>,
    /// The longest life of a token, in seconds. Tokens that exist keep theirs.
    max_lifetime_seconds: RequiredChange<IntegerBetween<3_600, 31_536_000>>,
    /// Whether the reuse of a revoked token revokes its successors too.
    revoke_family_on_reuse: RequiredChange<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedManagedConfig {
    /// Whether a rollback must have been previewed.
    require_preview: RequiredChange<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedLlmGateway {
    /// Whether the LLM gateway answers.
    enabled: RequiredChange<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedPolicies {
    /// The longest window of a backtest, in days; the history's retention bounds it as well.
    max_backtest_days: RequiredChange<IntegerBetween<1, 3_650>>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedHistory {
    /// Whether live conditions on the past count imported events.
    count_imports: RequiredChange<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedRetention {
    /// How long recorded decisions and imported events are kept, in days. Less than now needs confirm, and acts after
    /// 7 days.
    history_days: RequiredChange<IntegerBetween<1, 3_650>>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedDirectory {
    /// Whether everybody who may act is a user of the directory or a service account. A policy about users or accounts is
    /// then unknown, and counts as matched, for an event that names somebody else.
    complete: RequiredChange<bool>,
    /// How much of a directory's users, of its groups or of its memberships a file removes without a word, in percent.
    max_removal_percent: RequiredChange<IntegerBetween<1, 100>>,
    /// The role of users to whom nobody gave one. `member` lets them do for themselves what everybody may, such as see and enrol
    /// their own machines.
    default_role: RequiredChange<DefaultRole>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedDelegatedAccess {
    /// How long a refresh token that was used is answered again with the same successor, in seconds; 0 means never. Without a key
    /// it is so only from the network of the use before, five times, and else for 30 seconds at most.
    refresh_leeway_seconds: RequiredChange<IntegerBetween<0, 1_800>>,
}

impl SettingsChange {
    /// Returns the settings that `base` becomes with what the body names.
    pub(super) fn applied(&self, base: &Settings) -> Settings {
        fn number<const MIN: i64, const MAX: i64>(
            given: &RequiredChange<IntegerBetween<MIN, MAX>>,
            base: i64,
        ) -> i64 {
            given.get().copied().map_or(base, IntegerBetween::get)
        }
        let truth = |given: &RequiredChange<bool>, base: bool| given.get().copied().unwrap_or(base);
        let tokens = &self.tokens;
        Settings {
            tokens: Tokens {
                secret_replay_seconds: number(
                    &tokens.secret_replay_seconds,
                    base.tokens.secret_replay_seconds,
                ),
                default_grace_seconds: number(
                    &tokens.default_grace_seconds,
                    base.tokens.default_grace_seconds,
                ),
                max_lifetime_seconds: number(&tokens.max_lifetime_seconds, base.tokens.max_lifetime_seconds),
                revoke_family_on_reuse: truth(
                    &tokens.revoke_family_on_reuse,
                    base.tokens.revoke_family_on_reuse,
                ),
            },
            managed_config: ManagedConfig {
                require_preview: truth(
                    &self.managed_config.require_preview,
                    base.managed_config.require_preview,
                ),
            },
            llm_gateway: LlmGateway {
                enabled: truth(&self.llm_gateway.enabled, base.llm_gateway.enabled),
            },
            policies: Policies {
                max_backtest_days: number(&self.policies.max_backtest_days, base.policies.max_backtest_days),
            },
            history: History {
                count_imports: truth(&self.history.count_imports, base.history.count_imports),
            },
            retention: Retention {
                history_days: number(&self.retention.history_days, base.retention.history_days),
            },
            directory: Directory {
                complete: truth(&self.directory.complete, base.directory.complete),
                max_removal_percent: number(
                    &self.directory.max_removal_percent,
                    base.directory.max_removal_percent,
                ),
                default_role: *self
                    .directory
                    .default_role
                    .get()
                    .unwrap_or(&base.directory.default_role),
            },
            oauth: DelegatedAccess {
                refresh_leeway_seconds: number(
                    &self.oauth.refresh_leeway_seconds,
                    base.oauth.refresh_leeway_seconds,
                ),
            },
            fleet: self.fleet.applied(&base.fleet),
            approvals: self.approvals.applied(&base.approvals),
            retention_shortening: base.retention_shortening.clone(),
        }
    }

    /// Returns the members that the body leaves out and that are not in the factory state.
    pub(super) fn unnamed(&self, base: &Settings) -> Vec<&'static str> {
        let (kept, replaced) = (self.applied(base), self.applied(&Settings::default()));
        let pairs = kept.members().into_iter().zip(replaced.members());
        pairs
            .filter(|((_, kept), (_, replaced))| kept != replaced)
            .map(|((pointer, _), _)| pointer)
            .collect()
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

    /// Proves SE-2.
    #[test]
    fn an_empty_document_is_the_factory_state() {
        assert_eq!(
            serde_json::from_value::<Settings>(json!({})).unwrap(),
            Settings::default()
        );
        let nothing: SettingsChange = serde_json::from_value(json!({})).unwrap();
        assert_eq!(nothing.applied(&Settings::default()), Settings::default());
        assert_eq!(nothing.unnamed(&Settings::default()), [""; 0]);
    }

    fn keeping(days: i64, shortening: Option<(i64, i64)>) -> Settings {
        Settings {
            retention: Retention { history_days: days },
            retention_shortening: shortening.map(|(history_days, at)| PendingRetention {
                history_days,
                acts_at: Timestamp::from_ms(at),
            }),
            ..Settings::default()
        }
    }

    #[test]
    fn a_shortening_acts_when_its_time_has_come_and_not_before() {
        let waiting = keeping(30, Some((400, 1_000)));
        let at = Timestamp::from_ms;
        assert_eq!(waiting.acting_history_days(at(999)), 400);
        assert_eq!(waiting.acting_history_days(at(1_000)), 30);
        assert_eq!(waiting.clone().at(at(999)), waiting);
        assert_eq!(waiting.at(at(1_000)), keeping(30, None));
        // A row that says less than nothing shortens nothing.
        assert_eq!(keeping(400, Some((30, 1_000))).acting_history_days(at(0)), 400);
    }

    /// Proves SE-4.
    #[test]
    fn what_shortens_waits_and_what_lengthens_takes_it_back() {
        let now = Timestamp::from_ms(500);
        let later = |days| {
            Some(PendingRetention {
                history_days: days,
                acts_at: now.plus_secs(SHORTENING_SECS),
            })
        };
        let to = |before: &Settings, days| before.shortened_to(&keeping(days, None), now);
        let plain = keeping(400, None);
        assert_eq!(
            (to(&plain, 400), to(&plain, 401), to(&plain, 399)),
            (None, None, later(400))
        );
        let waiting = keeping(30, Some((400, 1_000)));
        assert_eq!(
            to(&waiting, 30),
            waiting.retention_shortening,
            "said again, it waits no longer"
        );
        assert_eq!((to(&waiting, 400), to(&waiting, 500)), (None, None));
        assert_eq!(to(&waiting, 100), later(400), "less than acts now");
        let acted = keeping(30, Some((400, 500)));
        assert_eq!(
            (to(&acted, 30), to(&acted, 31), to(&acted, 29)),
            (None, None, later(30))
        );
    }

    /// Proves SE-2.
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

    fn leaves(value: &Value) -> usize {
        let members = value.as_object();
        members.map_or(1, |members| members.values().map(leaves).sum())
    }

    /// Proves SE-3.
    #[test]
    fn every_member_is_noted_when_it_changes() {
        let document = serde_json::to_value(Settings::default()).unwrap();
        let members = Settings::default().members();
        assert_eq!(leaves(&document), members.len());
        for (pointer, value) in members {
            assert_eq!(document.pointer(pointer), Some(&value), "{pointer}");
        }
    }
}
