//! Rotates the token of a service account (specification §4.3, D5.4, D5.5).
//!
//! INVARIANT SA-8: an account that rotates itself without `service_accounts:rotate` gives no longer life than it was
//! given.
//! INVARIANT SA-12: by rotating itself an account undoes no narrowing of its tokens and no end of its sessions; a
//! session of an account rotates nothing as the account itself.
//! INVARIANT SA-14: where `rights` is named for two people, an account that rotates itself gives itself no more than its token has and no
//! longer life than it was given, whatever scopes it holds: its program would have more without anybody's yes.
//! Keeps SA-1, SA-3, SA-7.

use super::create::{AccountAndToken, LifetimeSecs, NewToken, issue, narrower};
use super::model::{
    AccountPath, DEFAULT_LIFETIME_SECS, ScopeList, ServiceAccount, ServiceAccountId, Status, Token, TokenId,
    lifetime_secs, view,
};
use super::store::{self, TokenEnd};
use crate::service_accounts::fences;
use provost_areas_platform::announcements::AccountRotatesItself;
use provost_areas_platform::settings;
use provost_kernel::auth::Role::Admin;
use provost_kernel::auth::{ScopeSet, may_mint};
use provost_kernel::error::{Code, Error};
use provost_kernel::operation::{Access, Empty, Input, Meta, Method, Operation};
use provost_kernel::rate::Bucket;
use provost_kernel::second_person;
use provost_kernel::text::IntegerBetween;
use provost_kernel::{OperationContext, Result, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Rotations of one account.
const ROTATIONS_OF_ACCOUNT: Bucket = Bucket {
    name: "rotation",
    burst: 30,
    per_second_num: 30,
    per_second_den: 3600,
};
/// Rotations by one caller.
const ROTATIONS_BY_CALLER: Bucket = Bucket {
    name: "rotation-caller",
    burst: 600,
    per_second_num: 600,
    per_second_den: 3600,
};

pub struct RotateServiceAccountToken;

/// How to rotate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline, extend("not" = {
    "required": ["scopes", "allOfAccount"],
    "properties": { "scopes": { "type": "array" }, "allOfAccount": { "const": true } },
}))]
pub struct RotateBody {
    /// How long the old token still works, in seconds; the organization's default when absent.
    grace_period_seconds: Option<IntegerBetween<0, 604_800>>,
    /// The life of the new token, in seconds; the old one's when absent.
    expires_in_seconds: Option<LifetimeSecs>,
    /// What the new token may do, if that is to be less than the account. Absent: as the old one, which is what the
    /// account may do unless its list was narrowed.
    scopes: Option<ScopeList>,
    /// `true`: the new token may do what the account may, also where the old one was narrowed.
    #[serde(default)]
    all_of_account: bool,
}

impl Operation for RotateServiceAccountToken {
    const META: Meta = Meta::write(
        "rotateHeadlessServiceAccountToken",
        Method::Post,
        "/service-accounts/{serviceAccountId}/tokens",
        "service_accounts",
    )
    .rule(Access::ScopedOrSelf {
        scope: "service_accounts:rotate",
        roles: &[Admin],
        self_scope: "service_accounts:rotate_self",
        parameter: "serviceAccountId",
    })
    .command("service-accounts", "rotate")
    .example(r#"{"gracePeriodSeconds": 3600}"#)
    .reveals_secret()
    .of_two(&["rights"])
    .says(
        "Rotate the token of a service account",
        "The answer shows the new token once; a retry with the same idempotency key shows it again until it was used, at most 24 hours. The old token ends at once unless a grace period is given. The new token keeps name, lifetime and narrowed scopes of the old one; an account that rotates itself without service_accounts:rotate gives no longer life than it was given.",
    );
    type Path = AccountPath;
    type Query = Empty;
    type Body = RotateBody;
    type Output = AccountAndToken;

    fn validate(input: &Input<Self>) -> Result<()> {
        if input.body.all_of_account && input.body.scopes.is_some() {
            return Err(Error::invalid(
                "/allOfAccount",
                "cannot be given together with scopes",
            ));
        }
        Ok(())
    }

    /// Whose token it becomes, and what that can do.
    fn standing(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<Value> {
        standing(ctx, &input.path.service_account_id)
    }

    fn call(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<AccountAndToken> {
        let id = &input.path.service_account_id;
        ctx.target(&fences::ACCOUNT, id.as_str());
        let (mut account, mut tokens) = store::get(ctx, id)?;
        let last = newest(&tokens, ctx.now());
        let scopes = scopes(&account, last, &input.body)?;
        let hand = Hand::of(ctx, id)?;
        check_escalation(ctx, hand, &account, scopes)?;
        let scopes = within_own(ctx, hand, (&account, &tokens), last, &input.body, scopes)?;
        let asked = input.body.expires_in_seconds.map(IntegerBetween::get);
        let ceiling = own_ceiling(ctx, hand, &account, &tokens, last);
        check_lifetime(asked, ceiling)?;
        let (org, actor) = (ctx.org(), ctx.actor());
        ctx.limit(&ROTATIONS_OF_ACCOUNT, &[org, id.as_str()])?;
        ctx.limit(&ROTATIONS_BY_CALLER, &[org, &actor.id])?;
        if account.status == Status::Disabled {
            return Err(Error::new(
                Code::Disabled,
                "the service account is disabled; enable it first",
            ));
        }
        let settings = settings::load(ctx)?;
        let lifetime = lifetime_secs(asked, last, settings.tokens.max_lifetime_seconds)?;
        let lifetime = ceiling.map_or(lifetime, |ceiling| lifetime.min(ceiling));
        keep_governing(ctx, &account, &tokens, scopes)?;
        let name = last.map_or_else(|| "default".to_owned(), |t| t.name.clone());
        let grace_secs = input
            .body
            .grace_period_seconds
            .map_or(settings.tokens.default_grace_seconds, IntegerBetween::get);
        let wanted = NewToken {
            name: &name,
            scopes,
            lifetime_secs: lifetime,
            // What a token gives itself for less does not bind the next one: an admin's word does.
            lifetime_ceiling_secs: ceiling
                .or(asked)
                .or_else(|| last.map(Token::ceiling_secs))
                .unwrap_or(lifetime),
        };
        let (token, issued) = issue(ctx, id, &wanted, settings.tokens.secret_replay_seconds)?;
        supersede(ctx, &mut tokens, &token.id, grace_secs)?;
        // Which of them have expired, only an undoubted clock can say (CK-1).
        if tokens.len() > 20 && ctx.services().doubt().is_none() {
            let now = ctx.now();
            ctx.queue(&store::HIDE, provost_kernel::params![org, id.as_str(), now])?;
        }
        account.updated_at = account.changed_at(ctx.now());
        store::save(ctx, &account, false)?;
        ctx.emit(&fences::TOKEN_ROTATED, &fences::OfToken::of(id, &token.id));
        tokens.push(token);
        Ok(AccountAndToken {
            service_account: view(account, tokens, ctx.now()),
            token: issued,
            warnings: Vec::new(),
        })
    }

    fn recheck(ctx: &mut OperationContext<'_>, input: &Input<Self>) -> Result<()> {
        let (account, tokens) = store::get(ctx, &input.path.service_account_id)?;
        let scopes = newest(&tokens, ctx.now()).and_then(|t| t.scopes);
        let hand = Hand::of(ctx, &account.id)?;
        check_escalation(ctx, hand, &account, scopes)
    }
}

/// Returns who an account is, for who says yes to something about it.
pub(super) fn standing(ctx: &mut OperationContext<'_>, id: &ServiceAccountId) -> Result<Value> {
    let (account, _) = store::get(ctx, id)?;
    let scopes = account.scopes.map(ScopeSet::to_list);
    Ok(json!({
        "name": account.name, "permissionRole": account.role, "scopes": scopes,
        "ownerConsoleUserId": account.owner_console_user_id,
    }))
}

/// The same of an account that a request names; null where there is none.
pub fn shown_to_voters(ctx: &mut OperationContext<'_>, id: &str) -> Result<Value> {
    match standing(ctx, &ServiceAccountId::from_text(id)) {
        Err(error) if error.code() == Code::NotFound => Ok(Value::Null),
        found => found,
    }
}

/// Returns the list that the new token is narrowed to: as asked, else as the one whose place it takes (ADR 0043).
fn scopes(account: &ServiceAccount, last: Option<&Token>, body: &RotateBody) -> Result<Option<ScopeSet>> {
    if body.scopes.is_some() {
        return narrower(account, body.scopes.as_ref(), "/scopes");
    }
    if body.all_of_account {
        return Ok(None);
    }
    Ok(last.and_then(|t| t.scopes))
}

/// Returns the list of a token that an account gives itself: never more than the token that it comes with, nor than the one
/// whose place is taken. One in grace was given before its successor was narrowed, and the narrowing holds for it too.
///
/// INVARIANT SA-12: by rotating itself an account undoes no narrowing of its tokens.
///
/// Errors: `EscalationForbidden` for a list, or for all of the account, that goes beyond them; `TokenRevoked` for a token
/// of which a session was revoked.
fn within_own(
    ctx: &mut OperationContext<'_>,
    hand: Hand,
    (account, tokens): (&ServiceAccount, &[Token]),
    last: Option<&Token>,
    body: &RotateBody,
    scopes: Option<ScopeSet>,
) -> Result<Option<ScopeSet>> {
    if ctx.actor().id != account.id.as_str() {
        return Ok(scopes);
    }
    let used = ctx.actor().token.as_ref().map(|token| token.id.clone());
    let own = tokens
        .iter()
        .find(|token| Some(token.id.as_str()) == used.as_deref());
    let is_successor = own.is_none_or(|own| own.superseded_by_id.is_none());
    if hand.rotates_others && is_successor {
        return Ok(scopes);
    }
    if let Some(own) = own {
        // INVARIANT SA-12: who ended a session of the token refuses here.
        ctx.announce(&AccountRotatesItself {
            token_id: own.id.as_str().to_owned(),
        })?;
    }
    let lists = [own, last].into_iter().flatten().filter_map(|token| token.scopes);
    let Some(bound) = lists.reduce(ScopeSet::and) else {
        return Ok(scopes);
    };
    if body.scopes.is_none() && !body.all_of_account {
        return Ok(Some(scopes.map_or(bound, |scopes| scopes.and(bound))));
    }
    if scopes.is_some_and(|scopes| bound.covers(scopes)) {
        return Ok(scopes);
    }
    let message = "the account gives itself no more than its token and the one that took its place were narrowed to; more \
                   is given by somebody with the scope service_accounts:rotate";
    Err(Error::new(Code::EscalationForbidden, message))
}

/// What the caller may do with an account beside what the account does with itself.
#[derive(Clone, Copy)]
struct Hand {
    /// They rotate others, and give more than was given.
    rotates_others: bool,
    /// They rotate whatever others can do.
    rotates_any: bool,
}

impl Hand {
    /// Returns what the caller may do with this account.
    ///
    /// Keeps SA-14.
    fn of(ctx: &mut OperationContext<'_>, account: &ServiceAccountId) -> Result<Self> {
        let permission = ctx.actor().permission;
        let may = |scope| permission.role == Admin && permission.scopes.has(scope);
        let (rotates_others, rotates_any) =
            (may("service_accounts:rotate"), may("service_accounts:rotate_any"));
        let is_itself = ctx.actor().id == account.as_str();
        let is_bound =
            is_itself && (rotates_others || rotates_any) && second_person::is_named(ctx, "rights")?;
        Ok(Self {
            rotates_others: rotates_others && !is_bound,
            rotates_any: rotates_any && !is_bound,
        })
    }
}

/// Returns the longest life that the caller may give, if the account rotates itself without the right to rotate others.
/// Units: seconds.
///
/// A token in grace rotates its account too: it gives neither more than it was given nor more than its successor was.
fn own_ceiling(
    ctx: &OperationContext<'_>,
    hand: Hand,
    account: &ServiceAccount,
    tokens: &[Token],
    last: Option<&Token>,
) -> Option<i64> {
    let actor = ctx.actor();
    if hand.rotates_others {
        return None;
    }
    debug_assert_eq!(
        actor.id,
        account.id.as_str(),
        "who may not rotate others rotates themselves"
    );
    let used = actor.token.as_ref().map(|t| t.id.as_str());
    let own = tokens.iter().find(|t| Some(t.id.as_str()) == used);
    let ceilings = [own, last].into_iter().flatten().map(Token::ceiling_secs);
    Some(ceilings.min().unwrap_or(DEFAULT_LIFETIME_SECS))
}

/// Refuses a life beyond the one that somebody else gave.
///
/// Errors: `EscalationForbidden`.
fn check_lifetime(asked: Option<i64>, ceiling: Option<i64>) -> Result<()> {
    let Some((asked, ceiling)) = asked.zip(ceiling) else {
        return Ok(());
    };
    if asked <= ceiling {
        return Ok(());
    }
    let message = format!(
        "a token that rotates itself lives {ceiling} seconds at most, as it was given; more is given by somebody with \
         the scope service_accounts:rotate"
    );
    Err(Error::new(Code::EscalationForbidden, message))
}

/// Refuses to narrow the last token with which somebody could repair the organization (SA-4).
fn keep_governing(
    ctx: &mut OperationContext<'_>,
    account: &ServiceAccount,
    tokens: &[Token],
    scopes: Option<ScopeSet>,
) -> Result<()> {
    let now = ctx.now();
    let governs_still = account.permission(scopes).scopes.has("service_accounts:write");
    if governs_still || !tokens.iter().any(|t| t.governs(now)) {
        return Ok(());
    }
    store::keep_a_governor(ctx, account)
}

/// The token whose name, scopes and lifetime the next one keeps.
///
/// The current one, if there is one, whatever the clock said when the others were made.
fn newest(tokens: &[Token], now: Timestamp) -> Option<&Token> {
    tokens.iter().max_by_key(|t| {
        (
            t.is_current(now),
            t.superseded_by_id.is_none(),
            t.created_at,
            t.id.as_str().to_owned(),
        )
    })
}

/// Whoever rotates a token holds it (decision I), and whoever rotates somebody else's account is that account from then on,
/// whatever list the token has: what it made and claimed is theirs (SA-10).
fn check_escalation(
    ctx: &OperationContext<'_>,
    hand: Hand,
    account: &ServiceAccount,
    scopes: Option<ScopeSet>,
) -> Result<()> {
    let caller = ctx.actor().permission;
    if hand.rotates_any {
        return Ok(());
    }
    if !ctx.actor().is_itself(account.id.as_str()) {
        account.may_be_held_by(caller)?;
    }
    may_mint(caller, account.permission(scopes))
}

/// Ends every earlier token: the current one at once or after its grace, one that was in grace at once (D5.2).
fn supersede(
    ctx: &mut OperationContext<'_>,
    tokens: &mut [Token],
    successor: &TokenId,
    grace_secs: i64,
) -> Result<()> {
    let now = ctx.now();
    let caller = ctx.actor().token.as_ref().map(|t| t.id.clone());
    for token in tokens.iter_mut().filter(|t| t.is_usable(now)) {
        let was_in_grace = token.superseded_by_id.is_some();
        if grace_secs > 0 && !was_in_grace {
            let until: Timestamp = token.expires_at.min(now.plus_secs(grace_secs));
            store::grace(ctx, token, until, successor)?;
            continue;
        }
        let by_itself = caller.as_deref() == Some(token.id.as_str());
        let successor = (by_itself || !was_in_grace).then_some(successor);
        store::revoke(
            ctx,
            token,
            &TokenEnd {
                reason: "rotated",
                successor,
                by_itself,
            },
        )?;
    }
    Ok(())
}
