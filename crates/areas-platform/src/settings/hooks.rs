//! What of the settings is about judging on devices (F4.6, F4.12).

use provost_kernel::patch::RequiredChange;
use provost_kernel::text::IntegerBetween;
use provost_kernel::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How hooks of devices judge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["judging", "mode", "deadlineMs", "onUnknown", "offlineDays", "record"]))]
pub struct FleetHooks {
    /// Whether devices judge by themselves.
    pub judging: Judging,
    /// What hooks do with verdicts.
    pub mode: HookMode,
    /// How long a hook waits for the server. Units: milliseconds.
    pub deadline_ms: i64,
    /// What a device does where nobody can say what holds.
    pub on_unknown: OnUnknown,
    /// How long what a device judges by is fresh. Units: days.
    pub offline_days: i64,
    /// What devices tell of what passes without a reason.
    pub record: HookRecording,
}

word! {
    /// What devices tell of what passes without a reason.
    pub enum HookRecording {
        /// An event of each call, as of everything else.
        All = "all",
        /// How often, by user, client, tool and minute: no event of the history.
        Counted = "counted",
    }
}

word! {
    /// Whether devices judge by themselves.
    pub enum Judging {
        /// No device gets what it could judge by, and nothing is taken that one says it judged: hooks ask the server.
        Off = "off",
        /// Devices get it.
        On = "on",
    }
}

word! {
    /// What hooks do with verdicts.
    pub enum HookMode {
        /// Everything passes, and verdicts are reported.
        Monitor = "monitor",
        /// What is denied does not happen.
        Enforce = "enforce",
    }
}

word! {
    /// What a device does where nobody can say what holds.
    pub enum OnUnknown {
        /// It blocks where hooks enforce, and lets pass where they monitor.
        ByMode = "by_mode",
        /// Everything passes.
        Allow = "allow",
        /// Nothing passes.
        Block = "block",
    }
}

impl Default for FleetHooks {
    fn default() -> Self {
        // F4.6, F4.7, F4.12
        Self {
            judging: Judging::Off,
            mode: HookMode::Monitor,
            deadline_ms: 400,
            on_unknown: OnUnknown::ByMode,
            offline_days: 7,
            // ADR 0125
            record: HookRecording::All,
        }
    }
}

impl FleetHooks {
    /// Says whether a device blocks where nobody can say what holds.
    pub fn blocks_unknown(&self) -> bool {
        match self.on_unknown {
            OnUnknown::ByMode => self.mode == HookMode::Enforce,
            OnUnknown::Allow => false,
            OnUnknown::Block => true,
        }
    }

    /// Returns every member with its JSON Pointer.
    pub(super) fn members(&self) -> [(&'static str, Value); 6] {
        [
            ("/fleet/hooks/judging", self.judging.as_str().into()),
            ("/fleet/hooks/mode", self.mode.as_str().into()),
            ("/fleet/hooks/deadlineMs", self.deadline_ms.into()),
            ("/fleet/hooks/onUnknown", self.on_unknown.as_str().into()),
            ("/fleet/hooks/offlineDays", self.offline_days.into()),
            ("/fleet/hooks/record", self.record.as_str().into()),
        ]
    }

    /// Says whether a device lets the unknown pass even where the registration of its hooks enforces by itself.
    fn passes_unknown(&self) -> bool {
        self.mode == HookMode::Enforce && self.on_unknown == OnUnknown::Allow
    }

    /// Returns what passes by these that did not by others, or is told no more, each in a sentence. A registration of hooks may enforce
    /// although the organization monitors, and what it refuses counts.
    pub(super) fn weaker_than(&self, old: &Self) -> Vec<&'static str> {
        let judges = self.judging == Judging::On;
        let begins = judges && old.judging == Judging::Off;
        let mut found = Vec::new();
        if old.mode == HookMode::Enforce && self.mode == HookMode::Monitor {
            found.push(
                "hooks of devices would let pass what they deny now, on each device as soon as it hears of it",
            );
        }
        if self.passes_unknown() && !old.passes_unknown() {
            found.push("where nobody can say what holds, hooks of devices would let pass what they deny now");
        }
        if begins {
            found.push(
                "devices would judge by themselves, also while the server is away, where hooks that enforce deny everything now",
            );
        }
        if judges && self.offline_days > old.offline_days {
            found.push(
                "devices that do not reach the server would go on letting calls pass for longer than now",
            );
        }
        if judges && self.record == HookRecording::Counted && (begins || old.record == HookRecording::All) {
            found.push(
                "what passes without a reason would be counted and be no event: no backtest and no condition on the past sees it",
            );
        }
        found
    }
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct WantedFleetHooks {
    /// Whether devices judge by themselves, or hooks ask the server.
    judging: RequiredChange<Judging>,
    /// What hooks of devices do with verdicts: report what policies deny, or deny it.
    mode: RequiredChange<HookMode>,
    /// How long a hook waits for the server where a device has to ask it, in milliseconds.
    deadline_ms: RequiredChange<IntegerBetween<50, 2_000>>,
    /// What a device does where nobody can say what holds; `by_mode` blocks where hooks enforce.
    on_unknown: RequiredChange<OnUnknown>,
    /// For how many days a device judges by what it has.
    offline_days: RequiredChange<IntegerBetween<1, 30>>,
    /// What devices tell of what passes without a reason: each call, or counts, which no backtest and no condition on the past sees.
    record: RequiredChange<HookRecording>,
}

impl WantedFleetHooks {
    /// Returns what `base` becomes with what the body names.
    pub(super) fn applied(&self, base: &FleetHooks) -> FleetHooks {
        FleetHooks {
            judging: *self.judging.get().unwrap_or(&base.judging),
            mode: *self.mode.get().unwrap_or(&base.mode),
            deadline_ms: self.deadline_ms.get().map_or(base.deadline_ms, |ms| ms.get()),
            on_unknown: *self.on_unknown.get().unwrap_or(&base.on_unknown),
            offline_days: self
                .offline_days
                .get()
                .map_or(base.offline_days, |days| days.get()),
            record: *self.record.get().unwrap_or(&base.record),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(mode: HookMode, on_unknown: OnUnknown) -> FleetHooks {
        FleetHooks {
            mode,
            on_unknown,
            ..FleetHooks::default()
        }
    }

    #[test]
    fn the_unknown_is_blocked_where_hooks_enforce_unless_somebody_says_otherwise() {
        use HookMode::{Enforce, Monitor};
        for (mode, on_unknown, blocks) in [
            (Monitor, OnUnknown::ByMode, false),
            (Enforce, OnUnknown::ByMode, true),
            (Monitor, OnUnknown::Block, true),
            (Enforce, OnUnknown::Allow, false),
        ] {
            assert_eq!(
                hooks(mode, on_unknown).blocks_unknown(),
                blocks,
                "{mode:?} {on_unknown:?}"
            );
        }
    }

    /// Proves SE-8.
    #[test]
    fn less_is_guarded_where_something_passes_that_did_not() {
        use HookMode::{Enforce, Monitor};
        use OnUnknown::{Allow, Block, ByMode};
        let less = |is: (HookMode, OnUnknown), was: (HookMode, OnUnknown)| {
            !hooks(is.0, is.1).weaker_than(&hooks(was.0, was.1)).is_empty()
        };
        assert!(less((Monitor, ByMode), (Enforce, ByMode)));
        assert!(less((Monitor, Block), (Enforce, Block)));
        assert!(less((Monitor, Allow), (Enforce, Allow)));
        assert!(less((Enforce, Allow), (Enforce, ByMode)));
        assert!(less((Enforce, Allow), (Enforce, Block)));
        assert!(!less((Enforce, Block), (Enforce, ByMode)));
        assert!(!less((Enforce, Block), (Enforce, Allow)));
        // A registration that enforces denied the unknown before.
        assert!(less((Enforce, Allow), (Monitor, ByMode)));
        assert!(less((Enforce, Allow), (Monitor, Allow)));
        assert!(!less((Enforce, Allow), (Enforce, Allow)));
        assert!(!less((Enforce, ByMode), (Monitor, Allow)));
        assert!(
            !less((Monitor, Allow), (Monitor, Block)),
            "everything passes there"
        );
    }

    /// Proves SE-8.
    #[test]
    fn devices_judge_judge_longer_and_tell_less_only_where_that_was_confirmed() {
        let on = FleetHooks {
            judging: Judging::On,
            ..FleetHooks::default()
        };
        let off = FleetHooks::default();
        assert!(!on.weaker_than(&off).is_empty());
        assert!(off.weaker_than(&on).is_empty() && on.weaker_than(&on).is_empty());
        let with = |base: &FleetHooks, days: i64, record: HookRecording| FleetHooks {
            offline_days: days,
            record,
            ..base.clone()
        };
        let all = HookRecording::All;
        assert!(!with(&on, 8, all).weaker_than(&on).is_empty());
        assert!(with(&on, 6, all).weaker_than(&on).is_empty());
        assert!(!with(&on, 7, HookRecording::Counted).weaker_than(&on).is_empty());
        assert!(on.weaker_than(&with(&on, 7, HookRecording::Counted)).is_empty());
        // Where no device judges neither is of use, and to switch it on is asked for.
        assert!(
            with(&off, 30, HookRecording::Counted)
                .weaker_than(&off)
                .is_empty()
        );
        // All of it is said at once: whoever switched judging off in between reads what else there is.
        let said = with(&on, 30, HookRecording::Counted).weaker_than(&off);
        assert_eq!(said.len(), 3, "{said:?}");
    }
}
