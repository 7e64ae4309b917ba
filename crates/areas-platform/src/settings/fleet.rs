//! What of the settings is about devices (F2.14): what guards something today, and nothing else.

use super::hooks::{FleetHooks, WantedFleetHooks};
use super::privacy::{Privacy, WantedPrivacy};
use provost_kernel::patch::RequiredChange;
use provost_kernel::text::IntegerBetween;
use provost_kernel::word;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// How devices come, and when they are given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["enrolment", "hooks", "privacy", "quarantineAction", "retireAfterDays", "silentAfterHours"]))]
pub struct Fleet {
    /// How devices come.
    pub enrolment: FleetEnrolment,
    /// How their hooks judge.
    pub hooks: FleetHooks,
    /// How long a device is not heard of before it is retired; 0 means never. Units: days.
    pub retire_after_days: i64,
    /// How long a device is not heard of before it is shown as silent. Units: hours.
    pub silent_after_hours: i64,
    /// How people and their machines are shown to others.
    pub privacy: Privacy,
    /// What hooks do on a device that is quarantined and judges.
    pub quarantine_action: QuarantineAction,
}

/// How devices come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(inline, extend("required" = ["requireApproval", "selfEnrol"]))]
pub struct FleetEnrolment {
    /// Whether an admin approves every device that enrols, whatever the enrolment token says.
    pub require_approval: bool,
    /// Whether people enrol machines of their own.
    pub self_enrol: SelfEnrol,
}

word! {
    /// Whether people enrol machines of their own.
    pub enum SelfEnrol {
        /// Nobody does.
        Off = "off",
        /// Whoever signs in and holds the scope `fleet:enrol_self` does.
        SignedIn = "signed_in",
    }
}

word! {
    /// What hooks do on a device that is quarantined and judges.
    pub enum QuarantineAction {
        /// Those that enforce let no call pass.
        Block = "block",
        /// Calls go on being judged, by the server.
        Monitor = "monitor",
    }
}

impl Default for Fleet {
    fn default() -> Self {
        // F2.14
        Self {
            enrolment: FleetEnrolment::default(),
            hooks: FleetHooks::default(),
            retire_after_days: 90,
            silent_after_hours: 72,
            privacy: Privacy::default(),
            quarantine_action: QuarantineAction::Block,
        }
    }
}

impl Default for FleetEnrolment {
    fn default() -> Self {
        Self {
            require_approval: false,
            self_enrol: SelfEnrol::Off,
        }
    }
}

impl Fleet {
    /// Returns every member with its JSON Pointer.
    pub(super) fn members(&self) -> [(&'static str, Value); 16] {
        let enrolment = &self.enrolment;
        let [judging, mode, deadline, on_unknown, offline, record] = self.hooks.members();
        let [people, host_names, project_names, prompts, tool_arguments] = self.privacy.members();
        [
            (
                "/fleet/enrolment/requireApproval",
                enrolment.require_approval.into(),
            ),
            ("/fleet/enrolment/selfEnrol", enrolment.self_enrol.as_str().into()),
            ("/fleet/retireAfterDays", self.retire_after_days.into()),
            ("/fleet/silentAfterHours", self.silent_after_hours.into()),
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
            ("/fleet/quarantineAction", self.quarantine_action.as_str().into()),
        ]
    }

    /// Says whether devices are retired by their silence that were not before.
    pub(super) fn retires_sooner_than(&self, old: &Self) -> bool {
        let days = |fleet: &Self| match fleet.retire_after_days {
            0 => i64::MAX,
            days => days,
        };
        days(self) < days(old)
    }
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
pub(super) struct WantedFleet {
    enrolment: WantedFleetEnrolment,
    hooks: WantedFleetHooks,
    /// How long a device is not heard of before it is retired, in days; 0 means never, and from 1 on it is at least 30.
    retire_after_days: RequiredChange<RetirementDays>,
    /// How long a device is not heard of before it is shown as silent, in hours.
    silent_after_hours: RequiredChange<IntegerBetween<24, 720>>,
    privacy: WantedPrivacy,
    /// What hooks do on a quarantined device that judges.
    quarantine_action: RequiredChange<QuarantineAction>,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[schemars(inline)]
struct WantedFleetEnrolment {
    /// Whether an admin approves every device that enrols, whatever the enrolment token says.
    require_approval: RequiredChange<bool>,
    /// Whether people enrol machines of their own: `off`, or `signed_in` for whoever holds the scope `fleet:enrol_self`.
    self_enrol: RequiredChange<SelfEnrol>,
}

/// Days of silence after which a device is retired. Shorter than a device's token lives none may be: after it the machine could
/// not call again anyway.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "IntegerBetween<0, 730>")]
struct RetirementDays(i64);

impl TryFrom<IntegerBetween<0, 730>> for RetirementDays {
    type Error = &'static str;
    fn try_from(days: IntegerBetween<0, 730>) -> Result<Self, Self::Error> {
        match days.get() {
            1..30 => Err("must be 0 or at least 30"),
            days => Ok(Self(days)),
        }
    }
}

impl JsonSchema for RetirementDays {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "RetirementDays".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": 730, "not": { "minimum": 1, "maximum": 29 } })
    }
}

impl WantedFleet {
    /// Returns what `base` becomes with what the body names.
    pub(super) fn applied(&self, base: &Fleet) -> Fleet {
        let (enrolment, known) = (&self.enrolment, &base.enrolment);
        let approval = enrolment.require_approval.get();
        let self_enrol = enrolment.self_enrol.get();
        let silence = self.silent_after_hours.get();
        Fleet {
            enrolment: FleetEnrolment {
                require_approval: *approval.unwrap_or(&known.require_approval),
                self_enrol: *self_enrol.unwrap_or(&known.self_enrol),
            },
            hooks: self.hooks.applied(&base.hooks),
            retire_after_days: self
                .retire_after_days
                .get()
                .map_or(base.retire_after_days, |days| days.0),
            silent_after_hours: silence.map_or(base.silent_after_hours, |hours| hours.get()),
            privacy: self.privacy.applied(base.privacy),
            quarantine_action: *self.quarantine_action.get().unwrap_or(&base.quarantine_action),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SE-7.
    #[test]
    fn fewer_days_are_sooner_and_never_is_latest() {
        let of = |days| Fleet {
            retire_after_days: days,
            ..Fleet::default()
        };
        let sooner = |is, was| of(is).retires_sooner_than(&of(was));
        assert!(sooner(30, 90) && sooner(730, 0));
        assert!(!sooner(90, 90) && !sooner(90, 30) && !sooner(0, 30) && !sooner(0, 0));
    }
}
