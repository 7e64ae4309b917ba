//! Devices: the machines that people work on, each an identity of its own.
//!
//! ```text
//! enrolment token   made by an admin, used 1 … n times, ends by time, by revocation, and with whoever made it
//! device            pending ─► active ⇄ quarantined      each of them ─► retired, for ever
//!                   pending: enrolled, and not heard of or not approved yet; a day without a call retires it
//! request           Bearer prov_dvt_… and a proof of the device's key, made for this request and this token
//! token             thirty days; from the fifteenth on renewed by itself, and for ten minutes good beside its successor
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
//! INVARIANT FL-5: of two machines with one key the organization is told by an entry and an event; neither is shut out by it.
//!
//! Absent on purpose: a shell, scripts, retrieval of files, screens, places, lists of processes, for ever; serial numbers and
//! hardware addresses; a history of heartbeats (the last one is kept); addresses from which devices call, beyond the last use of
//! their token; another way back for a token that expired than another enrolment (ADR 0104). Not there yet: rotation of keys,
//! labels and owners that an enrolment token gives, its bounds by hardware and networks, counts in lists, commands, settings, the role `member`, enrolment by sign-in.

mod clones;
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
mod labels;
mod list;
mod list_tokens;
mod maintenance;
mod model;
mod own;
mod owners;
mod presence;
mod renew;
mod revoke_token;
mod standing;
mod store;
mod taken;
mod token_store;
mod update;
mod verbs;
mod view;

pub use credentials::DEVICE as DEVICE_KIND;
pub use model::DeviceId;
pub use owners::are_seen as owners_are_seen;
pub use standing::{Described, Standing, described, standing};
pub use verbs::DeviceRetired;
pub use view::DevicePath;

use provost_kernel::announcement::Subscriber;
use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::Role::Operator;
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
        scope("fleet:write").held_by(&[Operator]),
        scope("fleet:enrol")
            .says("Make tokens by which machines enrol")
            .lasting(),
    ],
    operations,
    schemes: &[&credentials::DeviceTokens, &credentials::EnrolmentTokens],
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0034_fleet", "0035_devices", "0037_device_owners"],
    statements: &[
        store::STATEMENTS,
        enrolment::STATEMENTS,
        token_store::STATEMENTS,
        credentials::STATEMENTS,
        held::STATEMENTS,
        owners::STATEMENTS,
        taken::STATEMENTS,
        maintenance::STATEMENTS,
    ],
    rights: ends::RIGHTS,
    records: &[(
        "device_heartbeats",
        "what a device said last decides nothing about it",
    )],
    retakings: ends::RETAKINGS,
    timers: &[every(300, "fleet", |kernel, _| {
        Box::pin(maintenance::sweep(kernel))
    })],
    check: Check::Find(maintenance::broken_invariants),
    restore: Some(maintenance::end_every),
    prune: Some(maintenance::prune),
    on: &[
        &Subscriber(maintenance::principal_ended),
        &Subscriber(maintenance::account_narrowed),
        &Subscriber(maintenance::user_narrowed),
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
        Entry::of::<create_token::CreateEnrolmentToken>(),
        Entry::of::<list_tokens::ListEnrolmentTokens>(),
        Entry::of::<revoke_token::RevokeEnrolmentToken>(),
        Entry::of::<enrol::EnrolDevice>(),
        Entry::of::<get::GetDevice>(),
        Entry::of::<update::UpdateDevice>(),
        Entry::of::<gateway_identity::GetGatewayIdentity>(),
        Entry::of::<gateway_identity::PutGatewayIdentity>(),
        Entry::of::<gateway_identity::DeleteGatewayIdentity>(),
        Entry::of::<verbs::ApproveDevice>(),
        Entry::of::<verbs::QuarantineDevice>(),
        Entry::of::<verbs::ReleaseDevice>(),
        Entry::of::<verbs::RetireDevice>(),
        Entry::of::<heartbeat::HeartbeatOperation>(),
        Entry::of::<renew::RenewDeviceToken>(),
    ]
}
