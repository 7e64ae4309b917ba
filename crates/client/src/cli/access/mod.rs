//! Who one is at a server, and whether it can be reached: `whoami`, `status`, `login`, `logout`, `doctor`, `token rotate`.
//!
//! INVARIANT CL-6: a token is stored only after its server has said whose it is, and only where its owner alone can read it; one
//! that took the place of another is on the disk before the command says that it is done.

mod doctor;
mod doctor_machine;
mod identity;
mod login;
mod logout;
mod own_enrolment;
mod own_machines;
mod rotate_token;
mod rotation_note;
mod status;
mod whoami;

pub use own_enrolment::{EnrolmentWish, OwnEnrolment};
pub(super) use status::ask;

use super::own::HandCommand;

/// Returns the commands.
pub fn own() -> [HandCommand; 6] {
    [
        whoami::COMMAND,
        status::COMMAND,
        login::COMMAND,
        logout::COMMAND,
        doctor::COMMAND,
        rotate_token::COMMAND,
    ]
}
