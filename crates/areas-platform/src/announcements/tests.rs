//! What is announced is heard or refused.

use super::{Departure, PrincipalEnded, SessionsEnded, SubjectKind};
use crate::audit::testing::{World, on_every_store};
use provost_kernel::announcement::Announcement;
use provost_kernel::auth::OrganizationId;
use provost_kernel::kernel::Extras;
use provost_kernel::{Code, Timestamp};

/// Returns what becomes of a unit that announces something.
fn announced(world: &World, announcement: impl Announcement + Send + Sync) -> Result<(), Code> {
    let organization = OrganizationId::parse("acme").unwrap();
    let run = world
        .kernel
        .system(organization, None, move |ctx| ctx.announce(&announcement));
    world.run(run).map_err(|refused| refused.code())
}

fn sessions_ended() -> SessionsEnded {
    SessionsEnded {
        at: Timestamp::EPOCH,
        reason: "test".into(),
    }
}

#[test]
fn an_announcement_of_a_program_without_areas_is_refused() {
    on_every_store("unheard", |world| {
        assert_eq!(announced(world, sessions_ended()), Ok(()));
        world.restart_with(Extras::default());
        assert_eq!(announced(world, sessions_ended()), Err(Code::Internal));
    });
}

#[test]
fn what_somebody_has_to_act_on_is_refused_where_nobody_listens() {
    on_every_store("undecided", |world| {
        let ended = PrincipalEnded {
            kind: SubjectKind::User,
            id: "usr_1".into(),
            how: Departure::Deleted,
        };
        assert_eq!(announced(world, ended), Err(Code::Internal));
    });
}
