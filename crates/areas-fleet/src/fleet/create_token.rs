//! `POST …/devices/enrolment-tokens`

use super::bounds::{Bounds, MOST_NETWORKS, MOST_PLATFORMS, Several};
use super::enrolment::{self, EnrolmentToken};
use super::labels::Labels;
use super::model::{MOST_TOKENS, Mode, Owner, Platform};
use super::{credentials, fences, owners};
use provost_areas_identity::directory::{self, model::UserId};
use provost_areas_platform::settings::{self, ActOfTwo};
use provost_kernel::auth::Role::Admin;
use provost_kernel::context::SecretPlaceholder;
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Empty, Input, Meta, Method, Operation};
use provost_kernel::text::{IntegerBetween, LongName, Name};
use provost_kernel::{OperationContext, Result, token};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub struct CreateEnrolmentToken;

/// What an enrolment token is made of.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CreateBody {
    /// What people call it.
    name: Name,
    /// For whom the agents work that enrol by it; `system` when absent.
    mode: Option<Mode>,
    /// How many devices may enrol by it; 1 when absent. More than one need `requireApproval`.
    max_uses: Option<IntegerBetween<1, 100_000>>,
    /// `true`: an admin approves each device before it is active.
    #[serde(default)]
    require_approval: bool,
    /// Its life, in seconds; 3600 when absent.
    expires_in_seconds: Option<IntegerBetween<300, 7_776_000>>,
    /// The labels that each device gets that enrols by it; whoever may change the device changes them afterwards.
    labels: Option<Labels>,
    /// What the machines run that enrol by it, by their own word; anything when absent.
    platforms: Option<Several<Platform, MOST_PLATFORMS>>,
    /// From where machines enrol by it, as addresses and ranges; from anywhere when absent.
    networks: Option<Several<Name, MOST_NETWORKS>>,
    /// How the names of the machines begin, by their own word; with anything when absent.
    name_prefix: Option<Name>,
    /// Whose machine it enrols, with one use alone. Whoever names a user holds `llm_gateway:write` and all that this user can do.
    owner_user_id: Option<LongName>,
}

/// An enrolment token, and its secret once.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Created {
    enrolment_token: EnrolmentToken,
    token: SecretPlaceholder,
}

impl Operation for CreateEnrolmentToken {
    const META: Meta = Meta::write(
        "createHeadlessEnrolmentToken",
        Method::Post,
        "/devices/enrolment-tokens",
        "fleet",
    )
    .access("fleet:enrol", &[Admin])
    .command("enrolment-tokens", "create")
    .example(r#"{"name": "Anna's laptop", "expiresInSeconds": 3600}"#)
    .status(201)
    .reveals_secret()
    .of_two(&["devices", "rights"])
    .says(
        "Create an enrolment token",
        "Whoever has the token and a key of their own makes a device of it. The token is shown once. A reusable one makes no \
         device active by itself: an admin approves each. Networks keep others away; platforms and names are a machine's own word. \
         Nobody has more than 100 tokens that still make devices.",
    );
    type Path = Empty;
    type Query = Empty;
    type Body = CreateBody;
    type Output = Created;

    /// Where each device needs an approval, that is what lets it in. An owner is whom gateways take it for, approved or not.
    fn is_of_two(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<bool> {
        let named = settings::load(ctx)?.approvals.require_for;
        let lets_in = !input.body.require_approval && named.contains(&ActOfTwo::Devices);
        let gives = input.body.owner_user_id.is_some() && named.contains(&ActOfTwo::Rights);
        Ok(lets_in || gives)
    }

    /// Whose machine it enrols: a user of another role is another yes.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        match &input.body.owner_user_id {
            Some(user) => directory::who_they_are(ctx, &[UserId::from_text(user.as_str())]),
            None => Ok(Value::Null),
        }
    }

    fn gains(_cx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Vec<String>> {
        let owner = input.body.owner_user_id.as_ref();
        Ok(owner.map(|user| user.as_str().to_owned()).into_iter().collect())
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Created> {
        let body = &input.body;
        let max_uses = body.max_uses.map_or(1, IntegerBetween::get);
        if max_uses > 1 && !body.require_approval {
            // An MDM payload is readable by whoever holds the laptop: a reusable secret alone makes no devices.
            let message = "a token of more than one use needs requireApproval";
            return Err(Error::unfit("/requireApproval", message));
        }
        let owner = match &body.owner_user_id {
            Some(_) if max_uses > 1 => {
                let message = "a token of more than one use enrols machines of several people; name each owner at the device";
                return Err(Error::unfit("/ownerUserId", message));
            }
            Some(user) => Some(owners::of_token(ctx, user.as_str())?),
            None => None,
        };
        let wanted = Wanted {
            name: body.name.as_str(),
            mode: body.mode.unwrap_or(Mode::System),
            max_uses,
            require_approval: body.require_approval,
            lifetime_secs: body.expires_in_seconds.map_or(3600, IntegerBetween::get),
            labels: body.labels.as_ref().map(Labels::to_list).unwrap_or_default(),
            bounds: Bounds::asked(
                body.platforms.as_ref(),
                body.networks.as_ref(),
                body.name_prefix.as_ref(),
            )?,
            owner,
            is_own: false,
        };
        create(ctx, wanted)
    }
}

/// What an enrolment token is to be.
pub struct Wanted<'a> {
    pub name: &'a str,
    pub mode: Mode,
    pub max_uses: i64,
    pub require_approval: bool,
    /// Units: seconds.
    pub lifetime_secs: i64,
    /// The labels of its devices.
    pub labels: Vec<String>,
    /// Which machines it enrols.
    pub bounds: Bounds,
    /// Whose machine it enrols.
    pub owner: Option<Owner>,
    /// Whether the caller makes it for a machine of their own.
    pub is_own: bool,
}

/// Makes an enrolment token.
///
/// Errors: `Conflict` where the caller has too many.
pub fn create(ctx: &mut OperationContext<'_>, wanted: Wanted<'_>) -> Result<Created> {
    let maker = ctx.actor().id.clone();
    if enrolment::made_by(ctx, &maker)?.len() >= MOST_TOKENS {
        let message =
            "you have 100 enrolment tokens that still make devices; revoke some, or make one of many uses";
        return Err(Error::new(Code::Conflict, message));
    }
    let minted = token::mint(credentials::ENROLMENT_FORM, ctx.rng());
    let enrolment_token = EnrolmentToken {
        id: ctx.new_id(),
        seq: 0,
        name: wanted.name.to_owned(),
        token_prefix: minted.prefix.clone(),
        mode: wanted.mode,
        max_uses: wanted.max_uses,
        uses: 0,
        require_approval: wanted.require_approval,
        labels: wanted.labels,
        bounds: wanted.bounds,
        created_by: maker,
        created_at: ctx.now(),
        expires_at: ctx.now().plus_secs(wanted.lifetime_secs),
        revoked_at: None,
        revoke_reason: None,
        made_with: if wanted.is_own {
            enrolment::application(ctx)?
        } else {
            None
        },
        is_own: wanted.is_own,
        owner: wanted.owner,
    };
    let id = enrolment_token.id.clone();
    ctx.target(&fences::ENROLMENT_TOKEN, id.as_str());
    enrolment::insert(ctx, &enrolment_token, &minted)?;
    ctx.change("/name", Value::Null, wanted.name);
    ctx.change("/maxUses", Value::Null, wanted.max_uses);
    ctx.change("/requireApproval", Value::Null, wanted.require_approval);
    if !enrolment_token.labels.is_empty() {
        ctx.change("/labels", Value::Null, json!(enrolment_token.labels));
    }
    if let Some(owner) = enrolment_token.owner.as_ref().filter(|_| !wanted.is_own) {
        ctx.change("/ownerUserId", Value::Null, owner.user_id.as_str());
    }
    if let Some(bounds) = enrolment_token.bounds.stored()? {
        ctx.change("/bounds", Value::Null, bounds);
    }
    let of = fences::OfEnrolmentToken {
        enrolment_token_id: id.clone(),
    };
    ctx.emit(&fences::TOKEN_CREATED, &of);
    let replay_secs = settings::load(ctx)?.tokens.secret_replay_seconds;
    let replay_secs = replay_secs.min(wanted.lifetime_secs);
    Ok(Created {
        enrolment_token,
        token: ctx.reveal(id.as_str(), minted.token, replay_secs),
    })
}
