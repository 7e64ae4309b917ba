//! `POST …/devices/own/enrolment-tokens`
//!
//! A person who signed in enrols a machine of their own: with this token, which is theirs alone and lasts for minutes, the machine
//! enrols as any other does. Whatever holds of enrolment tokens holds of it.

use super::bounds::Bounds;
use super::create_token::{Created, Wanted, create};
use super::model::{MOST_OWNED, Mode, Owner, Reach};
use super::{enrolment, owners};
use provost_areas_platform::settings::{self, SelfEnrol};
use provost_kernel::auth::Role;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::Name;
use provost_kernel::{OperationContext, Result};
use schemars::JsonSchema;
use serde::Deserialize;

pub struct CreateOwnEnrolmentToken;

/// The kind of the principal that a person is by a session.
const PERSON: &str = "console_user";
/// The life of such a token: a machine that somebody sits at enrols at once. Units: seconds.
const LIFE_SECS: i64 = 900;

/// LIMIT: such tokens that one maker makes within an hour, used ones too. Ours: nobody sits at more machines, and an account that makes
/// devices without end would fill the organization. It is counted in the store, so that it holds where limits of requests are off.
const MOST_AN_HOUR: i64 = 32;
const HOUR_SECS: i64 = 3600;

/// What such a token is called.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct OwnTokenBody {
    /// What people call it, for example the machine.
    name: Name,
}

impl Operation for CreateOwnEnrolmentToken {
    const META: Meta = Meta::write(
        "createHeadlessOwnEnrolmentToken",
        Method::Post,
        "/devices/own/enrolment-tokens",
        "fleet",
    )
    .access("fleet:enrol_self", &Role::ALL)
    .command("devices", "enrol-own")
    .example(r#"{"name": "my laptop"}"#)
    .status(201)
    .reveals_secret()
    .says(
        "Create an enrolment token for a machine of one's own",
        "One machine enrols by it, within fifteen minutes, and is the caller's. Nobody makes one unless the settings say so \
         (fleet.enrolment.selfEnrol). An account owns no machine: what it enrols waits for the approval of an admin. Gateways take the \
         machine for its owner only as far as the session of the caller goes, and on when that has ended, until the caller or an admin \
         retires it.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = OwnTokenBody;
    type Output = Created;

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Created> {
        may_enrol(ctx)?;
        let (maker, since) = (ctx.actor().id.clone(), ctx.now().plus_secs(-HOUR_SECS));
        if enrolment::made_since(ctx, &maker, since)? >= MOST_AN_HOUR {
            let message = "you made 32 enrolment tokens within an hour; go on in an hour, or have an admin make one of many uses";
            return Err(Error::new(Code::Conflict, message));
        }
        let owner = owner(ctx)?;
        let wanted = Wanted {
            name: input.body.name.as_str(),
            mode: Mode::User,
            max_uses: 1,
            require_approval: owner.is_none(),
            lifetime_secs: LIFE_SECS,
            labels: Vec::new(),
            bounds: Bounds::default(),
            owner,
            is_own: true,
        };
        create(ctx, wanted)
    }
}

/// Refuses machines of one's own where the settings say so.
///
/// Errors: `Conflict`.
pub fn may_enrol(ctx: &mut OperationContext<'_>) -> Result<()> {
    if settings::load(ctx)?.fleet.enrolment.self_enrol != SelfEnrol::Off {
        return Ok(());
    }
    let message = "people enrol no machines of their own here; an admin makes an enrolment token, or sets fleet.enrolment.selfEnrol";
    Err(Error::new(Code::Conflict, message))
}

/// Returns whose machine it will be: a person's, by their own word.
///
/// Keeps FL-7: the word of a session is worth what the session can do, so that a narrow one makes no device that is taken for all that
/// its person can do.
///
/// Errors: `Conflict` where the caller owns too many, or made too many that nobody owns.
fn owner(ctx: &mut OperationContext<'_>) -> Result<Option<Owner>> {
    if ctx.actor().kind != PERSON {
        return may_make_more(ctx).map(|()| None);
    }
    let user_id = ctx.actor().id.clone();
    if owners::count(ctx, &user_id)? >= MOST_OWNED {
        return Err(owners::too_many());
    }
    let reach = Reach(ctx.actor().permission);
    Ok(Some(Owner { user_id, reach }))
}

/// Refuses one more device of a maker who owns none: nothing else bounds how many of theirs wait for an admin. What is on its way counts:
/// each of these tokens makes one.
///
/// Errors: `Conflict`.
fn may_make_more(ctx: &mut OperationContext<'_>) -> Result<()> {
    let maker = ctx.actor().id.clone();
    let waiting = enrolment::made_by(ctx, &maker)?.len();
    if waiting + enrolment::living_of(ctx, &maker, MOST_OWNED)? < MOST_OWNED {
        return Ok(());
    }
    let message = "you enrolled 32 devices that are not retired, or are about to; have an admin retire some, or make a token of many uses";
    Err(Error::new(Code::Conflict, message))
}
