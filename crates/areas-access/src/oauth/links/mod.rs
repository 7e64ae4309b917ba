//! Identity links: which user of an organization a subject of an issuer is (D2.6).
//!
//! ```text
//! subject is seen ─► linked? ─► its user
//!                    not linked, the issuer vouches for a login name:
//!                      the user never had a link of this issuer        ─► linked by itself
//!                      it has one, had one within 90 days, or was      ─► linked by an admin, or by itself
//!                      renamed within 90 days                              where an admin allowed it since
//! ```
//!
//! INVARIANT IL-1: a user has one subject of an issuer; a second one, and the first one of a user who had another or
//! was renamed within 90 days, is linked by an admin, or once each where an admin allowed it since.
//! INVARIANT IL-2: what came by a link that was taken away has ended: sessions, codes, consents that are open.
//! INVARIANT IL-3: a link ends with its user.
//! INVARIANT IL-4: whoever links a subject, or allows it, holds all that its user may do.
//! INVARIANT IL-5: a link is followed for roles that its maker could give, no further than who renamed its user
//! since, or who released it: with another role what was allowed for the user ends, and the link is held, named in
//! the answer and the audit entry.
//!
//! Absent on purpose: which issuers there are; the operator's configuration says that.

mod allow;
mod create;
mod list;
mod model;
mod remove;
mod store;

pub(super) use create::may_be_role;
pub(super) use model::Reach;
pub use store::{
    STATEMENTS, close_first_link, get, import_applied, is_linked, link, link_of_itself, login_name_changed,
    principal_ended, role_given, sign_ins, tidy,
};

use provost_kernel::operation::Entry;

/// Returns the operations on links.
pub fn operations() -> Vec<Entry> {
    vec![
        Entry::of::<list::ListIdentityLinks>(),
        Entry::of::<create::CreateIdentityLink>(),
        Entry::of::<remove::RemoveIdentityLinks>(),
        Entry::of::<allow::AllowRelinking>(),
    ]
}
