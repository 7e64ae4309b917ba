//! Who reads the details of what the area does, and what its events say.
//!
//! Whoever reads the log reads the list of devices whole; what is done to them says no more, but for the account that gateways
//! take one for.

use super::bypass::BypassId;
use super::command::CommandId;
use super::model::{DeviceId, EnrolmentTokenId};
use provost_kernel::Timestamp;
use provost_kernel::fence::Readers;

provost_kernel::event_data! {
    /// A device.
    OfDevice {
        /// The device.
        device_id: DeviceId,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2"}"#;
    /// A device that enrolled, and by which token.
    Enrolment {
        /// The device.
        device_id: DeviceId,
        /// The enrolment token.
        enrolment_token_id: EnrolmentTokenId,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","enrolmentTokenId":"ent_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;
    /// A device of which there may be two.
    Clone {
        /// The device.
        device_id: DeviceId,
        /// `counter_back`: its heartbeats count backwards. `counter_leapt`: one counted further than machines count. `boot_returned`: a run of its system came back. `token_forked`: a
        /// token was renewed or used whose successor had been used before, or two successors of one token were used.
        /// `former_key`: a change of the key was asked for again as often as it may be. Open.
        reason: &'static str,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","reason":"counter_back"}"#;
    /// A client of a device that is guarded less than before.
    Drop {
        /// The device.
        device_id: DeviceId,
        /// The client, by the word of the inventory. Open.
        client: String,
        /// The level before: `bypassable`, `enforced` or `observed`.
        was: &'static str,
        /// The level now: `none`, `observed` or `bypassable`.
        level: &'static str,
        /// What is missing of a proof; `not_reported` where the device says nothing of the client any more. Open.
        reasons: Vec<String>,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","client":"claude_code","was":"enforced","level":"none","reasons":["not_registered"]}"#;
    /// A device works without enforcement for a time.
    BypassBegin {
        /// The device.
        device_id: DeviceId,
        /// The bypass.
        bypass_id: BypassId,
        /// Until when.
        expires_at: Timestamp,
        /// The clients that it is for: `claude_code`, `codex` or `gemini_cli`; empty where it is for all. Open.
        clients: Vec<&'static str>,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","bypassId":"byp_01kaf9q2m4x7t8v3c5d6e0g1h3","expiresAt":"2026-11-28T18:00:00.000Z","clients":["codex"]}"#;
    /// A bypass of a device ended.
    BypassEnd {
        /// The device.
        device_id: DeviceId,
        /// The bypass.
        bypass_id: BypassId,
        /// `taken_back`, `expired`, `quarantined`, `retired`, `owner_changed`, `owner_ended`, `maker_ended`, `clock_set_back`, `restored` or `lost`. Open.
        reason: &'static str,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","bypassId":"byp_01kaf9q2m4x7t8v3c5d6e0g1h3","reason":"expired"}"#;
    /// What came of a command to a device.
    OfCommand {
        /// The device.
        device_id: DeviceId,
        /// The command.
        command_id: CommandId,
        /// `succeeded` or `failed`. Open.
        state: &'static str,
    } like r#"{"deviceId":"dev_01kaf9q2m4x7t8v3c5d6e0g1h2","commandId":"cmd_01kaf9q2m4x7t8v3c5d6e0g1h3","state":"succeeded"}"#;
    /// An enrolment token.
    OfEnrolmentToken {
        /// The enrolment token.
        enrolment_token_id: EnrolmentTokenId,
    } like r#"{"enrolmentTokenId":"ent_01kaf9q2m4x7t8v3c5d6e0g1h3"}"#;
}

/// The action under which the log has the first heartbeat of a device.
pub const ACTIVATION: &str = "fleet.device.activated";
/// The action under which the log has a device that never called and was retired.
pub const ABANDONMENT: &str = "fleet.device.abandoned";
/// The action under which the log has that more tokens of a retired device were revoked.
pub const REST: &str = "fleet.device.tokens_revoked";
/// The action under which the log has that there may be two of a device.
pub const CLONE: &str = "fleet.device.suspected";

/// The action under which the log has that clients of a device are guarded less than before.
pub const NOT_EFFECTIVE: &str = "fleet.device.hooks_not_effective";

/// The action under which the log has that a bypass ended by its time, or by a clock that was set back.
pub const BYPASS_OVER: &str = "fleet.device.bypass_over";

/// The action under which the log has that a device was called for with a key that it gave up.
pub const FORMER_KEY: &str = "fleet.device.former_key_used";

provost_kernel::fences! {
    acts Readers::Everybody, [ACTIVATION, ABANDONMENT, REST, CLONE, FORMER_KEY, NOT_EFFECTIVE, BYPASS_OVER];
    targets {
        /// A device.
        DEVICE = "device" => Readers::Everybody;
        /// An enrolment token.
        ENROLMENT_TOKEN = "enrolment_token" => Readers::Everybody;
    }
    events {
        /// A device enrolled; it does nothing before its first heartbeat.
        ENROLLED: Enrolment = "fleet.device.enrolled" => Readers::Everybody;
        /// A device called for the first time, or was approved after that.
        ACTIVATED: OfDevice = "fleet.device.activated" => Readers::Everybody;
        /// Calls of a device contradict each other: there may be two machines with its key. Both go on working.
        CLONED: Clone = "fleet.device.cloned" => Readers::Everybody;
        /// A client of a device is guarded less than before, by the device's word.
        HOOKS_NOT_EFFECTIVE: Drop = "fleet.device.hooks_not_effective" => Readers::Everybody;
        /// The name, the labels or the owner of a device changed.
        UPDATED: OfDevice = "fleet.device.updated" => Readers::Everybody;
        /// Gateways take a device for another account, or for its owner again.
        GATEWAY_IDENTITY_CHANGED: OfDevice = "fleet.device.gateway_identity_changed" => Readers::Everybody;
        /// A device has another key. Whoever calls with the earlier one from now on has it quarantined.
        KEY_ROTATED: OfDevice = "fleet.device.key_rotated" => Readers::Everybody;
        /// A device said what came of a command.
        COMMAND_FINISHED: OfCommand = "fleet.command.finished" => Readers::Everybody;
        /// A device works without enforcement for a time: what policies refuse passes on it, and is recorded.
        BYPASS_BEGUN: BypassBegin = "fleet.device.bypass_begun" => Readers::Everybody;
        /// A bypass of a device ended.
        BYPASS_ENDED: BypassEnd = "fleet.device.bypass_ended" => Readers::Everybody;
        /// A device was quarantined.
        QUARANTINED: OfDevice = "fleet.device.quarantined" => Readers::Everybody;
        /// A device was released from quarantine.
        RELEASED: OfDevice = "fleet.device.released" => Readers::Everybody;
        /// A device was retired: its tokens and its key are dead for ever.
        RETIRED: OfDevice = "fleet.device.retired" => Readers::Everybody;
        /// An enrolment token was made.
        TOKEN_CREATED: OfEnrolmentToken = "fleet.enrolment_token.created" => Readers::Everybody;
        /// An enrolment token was revoked; devices that enrolled by it stay.
        TOKEN_REVOKED: OfEnrolmentToken = "fleet.enrolment_token.revoked" => Readers::Everybody;
    }
    members {
        // It names a service account.
        "/gatewayIdentity" => Readers::Overseers;
        // They name people of the directory.
        "/ownerUserId" => Readers::Overseers;
        "/ownedDevices" => Readers::Overseers;
        "/ownerReach" => Readers::Overseers;
        "/ownerNamed" => Readers::Overseers;
    }
}
