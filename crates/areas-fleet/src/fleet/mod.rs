//! Devices: the machines that people work on, each an identity of its own.
//!
//! ```text
//! enrolment token   made by an admin, used 1 … n times, ends by time, by revocation, with whoever made it and with what it came by
//! device            pending ─► active ⇄ quarantined      each of them ─► retired, for ever
//!                   pending: enrolled, and not heard of or not approved yet; a day without a call retires it
//! request           Bearer prov_dvt_… and a proof of the device's key, made for this request and this token
//! token             thirty days; from the fifteenth on it is renewed, and serves on beside its successor to its own end
//! ```
//!
//! A device is its key. The server knows the thumbprint, and neither a serial number nor an address: what several machines may
//! have in common names none of them. The token alone, copied out of a file, opens nothing; and a device is a principal without
//! a role, which only operations admit that name its kind.
//!
//! INVARIANT FL-1: a device can call operations of devices for itself alone, and an enrolment token can enrol, each with a
//! proof of its key; neither can do anything else, by whatever door.
//! INVARIANT FL-2: no token of a retired device, or of one that a restore holds back, is accepted.
//! INVARIANT FL-3: a retired device stays retired, and its key enrols nowhere in its organization again.
//! INVARIANT FL-4: by an enrolment token no more devices come to be than it says, however many ask at once.
//! INVARIANT FL-5: of two machines with one key the organization is told by an entry and an event; neither is shut out by it, and none
//! ends a token that the other one uses: whoever cannot renew any more goes on to the end of the token it has.
//! INVARIANT FL-10: an enrolment token ends with the session or the token of an account by which it was made, unless that was rotated.
//!
//! Absent on purpose: a shell, scripts, retrieval of files, screens, places, lists of processes, for ever; serial numbers and
//! hardware addresses; a history of heartbeats (the last one is kept); addresses from which devices call, beyond the last use of
//! their token; another way back for a token that expired than another enrolment (ADR 0104); bounds by hardware, of which the server knows
//! nothing. Not there yet: counts in lists.

mod begin_bypass;
mod bounds;
mod bypass;
mod bypass_store;
mod clones;
mod command;
mod command_result;
mod command_store;
mod count_coverage;
mod coverage;
mod coverage_store;
mod create_token;
mod credentials;
mod ends;
mod enrol;
mod enrolment;
pub mod fences;
mod gateway_identity;
mod get;
mod heartbeat;
mod held;
mod issue;
mod kept;
mod labels;
mod list;
mod list_bypasses;
mod list_tokens;
mod maintenance;
mod model;
mod newest;
mod own;
mod own_token;
mod owners;
mod presence;
mod renew;
mod report_coverage;
mod retire_own;
mod revoke_token;
mod rotate_key;
mod sight;
mod standing;
mod store;
mod taken;
mod tell;
mod token_store;
mod update;
mod verbs;
mod view;

pub use bypass::{Bypass, BypassId, live as live_bypass, of_device as bypass_of};
pub use credentials::DEVICE as DEVICE_KIND;
pub use kept::{Kept, KeptFrom, KeptKind, ToldBy, ToldOfDevice, WhatIsKept};
pub use model::DeviceId;
pub use newest::NewestBundle;
pub use owners::{
    Owned, are_seen as owners_are_seen, holders, of_account as owners_of_account, own as own_devices,
};
pub use sight::Sight;
pub use standing::{People, Standing, is_quarantined, people, quarantined, shown_to_voters, standing};
pub use verbs::DeviceRetired;
pub use view::DevicePath;

use provost_kernel::announcement::Subscriber;
use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::Role::{Auditor, Member, Operator, Viewer};
use provost_kernel::auth::{Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 5,
        name: "fleet",
        says: "Machines that are managed.",
        title: "Fleet",
        holds: "machines and their state",
    }],
    scopes: &[
        scope("fleet:read").everybody(),
        // What is approved or released goes on working when the session that did it is long over.
        scope("fleet:write").held_by(&[Operator]).lasting(),
        // What is begun by it lasts beyond the session, a day at most.
        scope("fleet:bypass")
            .says("Let a device work without enforcement for a time")
            .lasting(),
        scope("fleet:enrol")
            .says("Make tokens by which machines enrol")
            .lasting(),
        scope("fleet:enrol_self")
            .says("See one's own machines, enrol more, which stay when the access ends, and retire these")
            .held_by(&[Operator, Auditor, Viewer, Member])
            .lasting(),
    ],
    operations,
    schemes: &[&credentials::DeviceTokens, &credentials::EnrolmentTokens],
    fences: Some(&fences::FENCES),
    migrations: &migrations![
        "0034_fleet",
        "0035_devices",
        "0037_device_owners",
        "0038_device_commands",
        "0044_device_bounds",
        "0054_device_coverage",
        "0056_device_accounts",
        "0060_device_bypasses",
        "0062_owned_since"
    ],
    statements: &[
        store::STATEMENTS,
        bypass_store::STATEMENTS,
        command_store::STATEMENTS,
        coverage_store::STATEMENTS,
        enrolment::STATEMENTS,
        token_store::STATEMENTS,
        credentials::STATEMENTS,
        held::STATEMENTS,
        owners::STATEMENTS,
        taken::STATEMENTS,
        maintenance::STATEMENTS,
    ],
    rights: ends::RIGHTS,
    records: &[
        (
            "device_heartbeats",
            "what a device said last decides nothing about it",
        ),
        (
            "device_coverage",
            "what a device says of its clients decides nothing: it is shown and counted",
        ),
        (
            "device_coverage_levels",
            "what a device says of its clients decides nothing: it is shown and counted",
        ),
        (
            "device_commands",
            "what a device is told to do gives nobody a right: it changes no more than the device may do by itself",
        ),
    ],
    retakings: ends::RETAKINGS,
    jobs: || vec![credentials::LATE_USE, maintenance::HANDLER],
    timers: &[
        every(300, "fleet", |kernel, _| Box::pin(maintenance::sweep(kernel))),
        every(60, "bypasses", |kernel, _| Box::pin(bypass::sweep(kernel))),
    ],
    check: Check::Find(maintenance::broken_invariants),
    restore: Some(maintenance::end_every),
    prune: Some(maintenance::prune),
    on: &[
        &Subscriber(maintenance::principal_ended),
        &Subscriber(maintenance::account_narrowed),
        &Subscriber(maintenance::user_narrowed),
        &Subscriber(maintenance::token_revoked),
        &Subscriber(maintenance::sessions_ended),
    ],
    held: &[held::KIND],
    guides: &[provost_kernel::guide!("fleet", "Fleet: devices and enrolment")],
    floor: 4,
    ..Area::named("fleet", "Which machines belong to the organization")
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListDevices>(),
        Entry::of::<own::ListOwnDevices>(),
        Entry::of::<own_token::CreateOwnEnrolmentToken>(),
        Entry::of::<retire_own::RetireOwnDevice>(),
        Entry::of::<create_token::CreateEnrolmentToken>(),
        Entry::of::<list_tokens::ListEnrolmentTokens>(),
        Entry::of::<revoke_token::RevokeEnrolmentToken>(),
        Entry::of::<enrol::EnrolDevice>(),
        Entry::of::<get::GetDevice>(),
        Entry::of::<count_coverage::CountCoverage>(),
        Entry::of::<update::UpdateDevice>(),
        Entry::of::<gateway_identity::GetGatewayIdentity>(),
        Entry::of::<gateway_identity::PutGatewayIdentity>(),
        Entry::of::<gateway_identity::DeleteGatewayIdentity>(),
        Entry::of::<verbs::ApproveDevice>(),
        Entry::of::<verbs::QuarantineDevice>(),
        Entry::of::<verbs::ReleaseDevice>(),
        Entry::of::<verbs::RetireDevice>(),
        Entry::of::<begin_bypass::BeginBypass>(),
        Entry::of::<begin_bypass::EndBypass>(),
        Entry::of::<list_bypasses::ListBypasses>(),
        Entry::of::<tell::CreateCommand>(),
        Entry::of::<tell::ListCommands>(),
        Entry::of::<heartbeat::HeartbeatOperation>(),
        Entry::of::<report_coverage::ReportCoverage>(),
        Entry::of::<command_result::ReportResult>(),
        Entry::of::<renew::RenewDeviceToken>(),
        Entry::of::<rotate_key::RotateDeviceKey>(),
    ]
}
