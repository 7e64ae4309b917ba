//! What is announced is heard or refused.

use super::SessionsEnded;
use crate::audit::testing::on_every_store;
use provost_kernel::auth::OrganizationId;
use provost_kernel::{Code, Timestamp};

#[test]
fn an_announcement_that_nobody_could_hear_is_refused() {
    on_every_store("unheard", |world| {
        let announce = |ctx: &mut provost_kernel::OperationContext<'_>| {
            ctx.announce(&SessionsEnded {
                at: Timestamp::EPOCH,
                reason: "test".into(),
            })
        };
        let organization = OrganizationId::parse("acme").unwrap();
        let refused = world.run(world.kernel.system(organization, None, announce));
        assert_eq!(refused.unwrap_err().code(), Code::Internal);
    });
}
