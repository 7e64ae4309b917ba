//! Service accounts and their tokens (specification §2.2 to §2.4, §4.3, §4.6; D5).
//!
//! ```text
//! account  active ⇄ disabled        * → deleted (soft; removed after 30 days)
//! token    current → superseded in grace → revoked | expired
//!          current → revoked | expired
//! ```
//!
//! INVARIANT SA-1: an account has at most one current token and at most one superseded token in grace (D5.2).
//! INVARIANT SA-2: a token's secret stands in one answer and in no row; rows hold its MAC (D2.3).
//! INVARIANT SA-3: nobody creates, rotates, enables, re-roles, renames or hands to another owner what could do more
//! than they hold.
//! INVARIANT SA-4: the last usable credential of the last governing admin stays (D3.3, D5.7).
//! INVARIANT SA-5: a deleted account is listed nowhere and all its tokens are revoked.
//! INVARIANT SA-6: names are unique among the accounts that are not deleted, by their folded form (D5.9), and no
//! group nor user has a name when it is given to an account (D6.6).
//!
//! Absent on purpose: several current tokens; undoing a deletion; a token's own scopes beyond its account's.

mod behind;
mod create;
mod credentials;
mod delete;
mod ends;
pub mod fences;
mod get;
mod held;
mod list;
mod maintenance;
pub mod model;
mod revoke_token;
mod rotate;
mod status;
mod store;
mod update;
mod worker;

pub use behind::{Doors, owner_of, people_behind};
pub use credentials::{AccountTokens, FORM};
pub use held::is_held;
use maintenance::{broken_invariants, revoke_every_token};
pub use model::{Rights, ScopeList, may_be_held};
pub use rotate::shown_to_voters;
pub use store::{Principal, owned_by, principal};
pub(crate) use store::{accounts_of_ids, accounts_of_name, accounts_of_names};
pub use worker::warn_of_expiry;

use provost_kernel::area::{Area, Check, every};
use provost_kernel::auth::{Role, Toolset, scope};
use provost_kernel::migrations;
use provost_kernel::operation::Entry;

/// The area.
pub static AREA: Area = Area {
    toolsets: &[Toolset {
        place: 14,
        name: "service_accounts",
        says: "Accounts of programs, and their tokens.",
        title: "Service accounts",
        holds: "service accounts",
    }],
    scopes: &[
        scope("service_accounts:read").held_by(&[Role::Auditor]),
        scope("service_accounts:write").lasting(),
        scope("service_accounts:rotate")
            .says("Replace tokens of service accounts and receive the new ones")
            .lasting(),
        scope("service_accounts:rotate_any")
            .says("Replace tokens of any service account, also of those that may do more than you")
            .lasting(),
        scope("service_accounts:rotate_self")
            .says("Replace the token of the account that is used")
            .everybody()
            .lasting(),
    ],
    schemes: &[&AccountTokens],
    operations,
    fences: Some(&fences::FENCES),
    migrations: &migrations!["0002_service_accounts", "0018_token_scopes", "0021_former_rights"],
    statements: &[
        store::STATEMENTS,
        held::STATEMENTS,
        maintenance::STATEMENTS,
        behind::STATEMENTS,
    ],
    rights: ends::RIGHTS,
    retakings: ends::RETAKINGS,
    testimonies: &[&fences::ACCOUNTS],
    jobs: || vec![worker::HANDLER],
    timers: &[every(60, "expiry", |kernel, _| {
        Box::pin(async move { warn_of_expiry(&kernel).await.map(drop) })
    })],
    check: Check::Find(broken_invariants),
    restore: Some(revoke_every_token),
    held: &[held::KIND],
    guides: &[provost_kernel::guide!(
        "service-accounts",
        "Service accounts and tokens"
    )],
    floor: 2,
    ..Area::named("service_accounts", "Service accounts and their tokens")
};

fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListServiceAccounts>(),
        Entry::of::<create::CreateServiceAccount>(),
        Entry::of::<get::GetServiceAccount>(),
        Entry::of::<update::UpdateServiceAccount>(),
        Entry::of::<delete::DeleteServiceAccount>(),
        Entry::of::<status::DisableServiceAccount>(),
        Entry::of::<status::EnableServiceAccount>(),
        Entry::of::<rotate::RotateServiceAccountToken>(),
        Entry::of::<revoke_token::RevokeServiceAccountToken>(),
    ]
}

/// Makes an organization's first account in the unit that makes the organization, and the account that
/// recovers a locked-out organization (D3.3). Returns the account's id and its token.
pub use create::issue_admin;
pub use store::{EndingTokens, ending_first_admins, ending_tokens};

/// The name of the account that an organization begins with.
pub const FIRST_ADMIN: &str = "first-admin";
