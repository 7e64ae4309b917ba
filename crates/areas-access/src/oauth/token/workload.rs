//! The token of a workload for a session of a service account (RFC 8693, ADR 0095).
//!
//! ```text
//! client_id names the trust ─► iss ─► keys ─► signature, aud, time ─► claims ─► one unit: trust and account read again,
//!                                                                              token spent, session, audit
//! ```
//!
//! No client proves itself beside the token: the token is the proof. Whoever is refused learns that and nothing else, so that
//! the endpoint says of no trust whether it is there or what it asks for; the log has the claim.
//!
//! Keeps WO-3, WO-5, WO-6.

use super::super::foreign::hexadecimal;
use super::super::form::Form;
use super::super::state::Oauth;
use super::super::verifier::{own_grant, proof};
use super::FormRequest;
use super::assertion::bound;
use super::authenticate::Spendable;
use super::issue::{Access, SessionStart, TokenAnswer, access, begin_named, of_store, unit};
use super::scope::{audiences, granted};
use crate::mcp_sessions::{self, SessionActor};
use crate::workload_trusts::{self, TrustId, WorkloadTrust, unmet};
use provost_areas_identity::service_accounts;
use provost_kernel::auth::{OrganizationId, Permission, ScopeSet};
use provost_kernel::id::TypedId;
use provost_kernel::rate::Bucket;
use provost_kernel::{Kernel, OperationContext, Result as Stored, Timestamp};
use provost_oauth::access_token::Issuer;
use provost_oauth::error::Code;
use provost_oauth::subject_token::{GRANT_TYPE, SubjectTokenType};
use provost_oauth::workload_token::{self, Expected, WorkloadToken};
use provost_oauth::{Algorithm, Refusal, TokenError};
use serde_json::{Value, json};
use std::sync::Arc;

/// LIMIT: exchanges that a network may ask for; taken before anything is read or fetched for it.
const EXCHANGES: Bucket = Bucket {
    name: "workload-exchange",
    burst: 120,
    per_second_num: 120,
    per_second_den: 60,
};
/// LIMIT: exchanges of one issuer's tokens, whoever asks, whose key is not known: they wait for the issuer. Those with a known key
/// are not counted, so that nobody's forged tokens keep them out.
const UNKNOWN_KEYS: Bucket = Bucket {
    name: "workload-keys",
    burst: 60,
    per_second_num: 60,
    per_second_den: 60,
};
/// LIMIT: exchanges of one trust, so that its workloads leave the account's other trusts some of the sessions that it may begin in a
/// day; only tokens that the trust accepts are counted.
const OF_TRUST: Bucket = Bucket {
    name: "workload-trust",
    burst: 240,
    per_second_num: 60,
    per_second_den: 3600,
};

/// How long a token that was exchanged is answered again: an answer that was lost is asked for at once. Units: seconds.
const REPEAT_SECS: i64 = 30;

/// Returns the trust that an exchange names as its client.
pub fn trust(form: &Form, grant_type: &str) -> Option<TrustId> {
    let named = form.get("client_id").filter(|_| grant_type == GRANT_TYPE)?;
    provost_kernel::id::parse(TrustId::PREFIX, named).map(|_| TrustId::from_store(named.to_owned()))
}

/// A token that its trust accepts, and what is asked for with it.
struct Admitted {
    trust: WorkloadTrust,
    token: WorkloadToken,
    /// What makes the token the one in its organization.
    digest: String,
    /// What lets it serve once.
    once: Vec<Spendable>,
    scope: Option<String>,
    audiences: Vec<String>,
    proof: Option<Spendable>,
    jkt: Option<String>,
}

/// Exchanges a token.
///
/// Errors: `invalid_grant` whatever is wrong with the token or its trust; `invalid_request`, `invalid_target`,
/// `invalid_scope`, `invalid_dpop_proof`, `temporarily_unavailable`.
pub async fn serve(
    kernel: &Arc<Kernel>,
    oauth: &Arc<Oauth>,
    asked: &FormRequest,
    id: TrustId,
) -> Result<TokenAnswer, TokenError> {
    let network = asked.network.as_deref().unwrap_or_default();
    limit(kernel, &EXCHANGES, network)?;
    check_form(asked)?;
    let audiences = audiences(oauth, asked.form.all("resource"))?;
    let url = format!("{}{}", oauth.url, super::PATH);
    let proof = proof(&asked.headers, "POST", &url, None, oauth.now_secs());
    let proof = proof.map_err(|refusal| refusal.answer(Code::InvalidDpopProof))?;
    let text = asked.form.need("subject_token")?;
    let known = id.clone();
    let found = kernel
        .read_system(move |tx| workload_trusts::resolve(tx, known.as_str()))
        .await;
    let trust = found.map_err(of_store)?.ok_or_else(refused)?;
    if trust.suspended_at.is_some() {
        oauth
            .workloads
            .note_refusal(trust.id.as_str(), "", "its trust is suspended", oauth.now_secs());
        return Err(refused());
    }
    let token = verified(kernel, oauth, &trust, text).await?;
    let jkt = proof.as_ref().map(|proof| proof.thumbprint.clone());
    bound(token.confirmation.as_ref(), jkt.as_deref())?;
    limit(kernel, &OF_TRUST, trust.id.as_str())?;
    let (digest, once) = once(&trust, &token, text);
    let organization = OrganizationId::from_store(trust.organization_id.clone());
    let admitted = Admitted {
        trust,
        token,
        digest,
        once,
        scope: asked.form.get("scope").map(str::to_owned),
        audiences,
        proof: proof.as_ref().map(Spendable::of_proof),
        jkt,
    };
    let oauth = oauth.clone();
    let run = move |ctx: &mut OperationContext<'_>| issue(ctx, &oauth, &admitted);
    unit(kernel, organization, "oauth.workload.admitted", run).await
}

fn limit(kernel: &Kernel, bucket: &Bucket, key: &str) -> Result<(), TokenError> {
    let taken = kernel.limit(bucket, &[key]);
    taken
        .map(drop)
        .map_err(|limited| TokenError::new(Code::TemporarilyUnavailable, limited.message()))
}

/// What is answered whatever is wrong with a token or its trust.
fn refused() -> TokenError {
    TokenError::new(
        Code::InvalidGrant,
        "the workload's token is not accepted by this trust; the log of the server says which claim failed",
    )
}

fn check_form(asked: &FormRequest) -> Result<(), TokenError> {
    let form = &asked.form;
    let wrong = |sentence: &str| Err(TokenError::new(Code::InvalidRequest, sentence));
    if asked.headers.contains_key(http::header::AUTHORIZATION)
        || form.get("client_secret").is_some()
        || form.get("client_assertion").is_some()
    {
        return wrong("a workload proves itself with its own token, and with nothing beside it");
    }
    if form.get("actor_token").is_some() {
        return wrong("nobody acts for a workload");
    }
    let wanted = form.get("requested_token_type");
    if wanted.is_some_and(|wanted| wanted != SubjectTokenType::AccessToken.as_str()) {
        return wrong("requested_token_type must be an access token");
    }
    if !workload_token::TYPES.contains(&form.need("subject_token_type")?) {
        return wrong("subject_token_type must be that of a JWT or of an identity token");
    }
    if form.get("audience").is_some() {
        let sentence = "name the resource, not an audience";
        return Err(TokenError::new(Code::InvalidTarget, sentence));
    }
    Ok(())
}

/// Verifies a token against its trust.
///
/// INVARIANT WO-5: a token is accepted by the trust that is named alone: signed by its issuer, for the one audience, in its
/// time, with every claim, and not issued before the trust was let in again.
async fn verified(
    kernel: &Kernel,
    oauth: &Oauth,
    trust: &WorkloadTrust,
    text: &str,
) -> Result<WorkloadToken, TokenError> {
    let now = oauth.now_secs();
    let no = |claim: &str, sentence: &str| {
        oauth
            .workloads
            .note_refusal(trust.id.as_str(), claim, sentence, now);
        refused()
    };
    let told = |refusal: Refusal| no(refusal.claim(), &refusal.to_string());
    // Nothing is fetched for a token that says itself that it is another's.
    let peeked = workload_token::peek(text).map_err(told)?;
    if peeked.issuer != trust.issuer {
        return Err(told(Refusal::Issuer));
    }
    let issuer = if let Some(jwks) = &trust.jwks {
        Issuer {
            url: trust.issuer.clone(),
            algorithms: Algorithm::ALL.to_vec(),
            keys: Arc::new(jwks.parse().map_err(told)?),
        }
    } else {
        let known = oauth.workloads.issuer(&trust.issuer);
        if !known.knows(oauth.clock.as_ref(), &peeked) {
            limit(kernel, &UNKNOWN_KEYS, &trust.issuer)?;
        }
        let fetcher = || oauth.fetcher().cloned();
        let issuer = known.with_keys(fetcher, &oauth.clock, &peeked).await;
        issuer.map_err(of_store)?
    };
    let expected = Expected {
        audience: trust.audience.as_deref().unwrap_or(&oauth.url),
        is_own_name: trust.audience.is_none(),
        max_age_secs: trust.max_token_age_secs,
    };
    let token = workload_token::verify(text, &issuer, expected, oauth.now_secs()).map_err(told)?;
    // A whole second is compared: one that was issued in the second itself may have been issued before.
    let at = token.issued_at.saturating_mul(1000);
    if trust.tokens_from.is_some_and(|from| at <= from.as_ms()) {
        return Err(no("iat", "it was issued before its trust was let in again"));
    }
    match unmet(&trust.claims, &token.claims) {
        None => Ok(token),
        Some(rule) => Err(no(&rule.claim, "it is not what the trust asks for")),
    }
}

/// Returns what makes a token the one, its id or else what was signed (a signature can have more than one form), and what is
/// spent of it. In its organization every token serves once, wherever the keys are from. Where the issuer's own keys say so it
/// serves once for all organizations; keys that an organization gave itself sign nothing that is another organization's.
fn once(trust: &WorkloadTrust, token: &WorkloadToken, text: &str) -> (String, Vec<Spendable>) {
    let signed = text.rsplit_once('.').map_or(text, |(signed, _)| signed);
    let of = |whose: &str| match token.id.as_deref() {
        Some(id) => hexadecimal(&["id", whose, &trust.issuer, id]),
        None => hexadecimal(&["token", whose, &trust.issuer, signed]),
    };
    let spendable = |digest: &str| Spendable::of("workload", &trust.issuer, digest, token.expires_at);
    let digest = of(&trust.organization_id);
    let mut once = vec![spendable(&digest)];
    if trust.jwks.is_none() {
        once.push(spendable(&of("")));
    }
    (digest, once)
}

fn issue(
    ctx: &mut OperationContext<'_>,
    oauth: &Oauth,
    asked: &Admitted,
) -> Stored<Result<TokenAnswer, TokenError>> {
    let id = &asked.trust.id;
    ctx.target(&workload_trusts::fences::TRUST, id.as_str());
    let no = |claim: &str, sentence: &str| {
        oauth
            .workloads
            .note_refusal(id.as_str(), claim, sentence, oauth.now_secs());
        Ok(Err(refused()))
    };
    if let Some(proof) = &asked.proof
        && !proof.spend(ctx)?
    {
        let refusal = TokenError::new(Code::InvalidDpopProof, "the proof was used before");
        return Ok(Err(refusal));
    }
    // What was verified was verified against the trust as it was read: another one since is asked anew.
    let is_same = workload_trusts::find(ctx, id)?.is_some_and(|now| {
        now.updated_at == asked.trust.updated_at
            && now.tokens_from == asked.trust.tokens_from
            && now.suspended_at.is_none()
    });
    if !is_same {
        return no("", "its trust was changed meanwhile");
    }
    let (org, trust) = (ctx.org(), &asked.trust);
    let account = service_accounts::principal(&mut ctx.tx(), org, &trust.service_account_id)?;
    let Some(account) = account.filter(|account| account.enabled) else {
        return no("", "its account is gone or disabled");
    };
    let all = trust.scopes.to_list().join(" ");
    let of_account = Permission::effective(account.role, account.scopes, None).scopes;
    // INVARIANT WO-3: nothing with which something can be made that outlives the session.
    let limits = [
        trust.scopes,
        of_account,
        ScopeSet::all().without(ScopeSet::lasting()),
    ];
    let scopes = match granted(Some(asked.scope.as_deref().unwrap_or(&all)), &limits) {
        Ok(scopes) => scopes.without(ScopeSet::lasting()),
        Err(refusal) => return Ok(Err(refusal)),
    };
    let exp = Timestamp::from_ms(asked.token.expires_at.saturating_mul(1000));
    if exp <= ctx.latest() {
        return no("exp", "the token is expired");
    }
    let name = session_name(asked);
    let until = exp.min(ctx.now().plus_secs(trust.lifetime_secs));
    // INVARIANT WO-5: once, apart from a lost answer within 30 seconds.
    let mut is_first = true;
    for once in &asked.once {
        is_first &= once.spend(ctx)?;
    }
    let (scopes, until) = if is_first {
        let beginning = SessionStart {
            actor: SessionActor::ServiceAccount {
                id: trust.service_account_id.clone(),
                display: account.display,
            },
            client_id: id.as_str().to_owned(),
            client_display: Some(trust.name.clone()),
            scopes,
            secs: trust.lifetime_secs,
        };
        begin_named(ctx, &name, until, beginning)?;
        (scopes, until)
    } else if let Some(session) = repeated(ctx, &name, id)? {
        ctx.target(&mcp_sessions::fences::SESSION, session.id.as_str());
        ctx.change("/repeated", Value::Null, true);
        (scopes.and(session.scopes), session.expires_at)
    } else {
        return no(
            "jti",
            "the token was exchanged before; a workload asks for another one",
        );
    };
    let secs = (until.as_ms() - ctx.now().as_ms()).div_euclid(1000);
    if scopes == ScopeSet::default() || secs < 1 {
        return no("exp", "the token is expired");
    }
    note(ctx, asked);
    let new = Access {
        subject: &trust.service_account_id,
        client_id: id.as_str(),
        scopes,
        audiences: &asked.audiences,
        session: &name,
        jkt: asked.jkt.clone(),
        actor: None,
        secs,
    };
    let mut issued = access(ctx, oauth, new)?;
    issued.is_exchanged = true;
    Ok(Ok(issued))
}

/// Returns the name of the session: of the token, the key that is proved and the audiences, so that what is asked again is
/// answered only when the same is asked.
fn session_name(asked: &Admitted) -> String {
    let mut audiences: Vec<&str> = asked.audiences.iter().map(String::as_str).collect();
    audiences.sort_unstable();
    let mut of = vec![asked.digest.as_str(), asked.jkt.as_deref().unwrap_or_default()];
    of.extend(audiences);
    format!("workload-{}", hexadecimal(&of))
}

/// Returns the session that a token began a moment ago under the same trust, if it stands.
fn repeated(
    ctx: &mut OperationContext<'_>,
    name: &str,
    trust: &TrustId,
) -> Stored<Option<mcp_sessions::Session>> {
    let known = mcp_sessions::standing(ctx, &own_grant(name))?;
    let session = known.filter(|(_, stands)| *stands).map(|(session, _)| session);
    let latest = ctx.latest();
    Ok(session.filter(|session| {
        session.mcp_client_id.as_deref() == Some(trust.as_str())
            && latest < session.issued_at.plus_secs(REPEAT_SECS)
            && latest < session.expires_at
    }))
}

/// Notes in the audit entry which workload it was: the trust, the issuer, the subject and the claims that were asked for.
fn note(ctx: &mut OperationContext<'_>, asked: &Admitted) {
    let trust = &asked.trust;
    ctx.change("/workloadTrustId", Value::Null, trust.id.as_str());
    ctx.change("/issuer", Value::Null, trust.issuer.as_str());
    ctx.change("/subject", Value::Null, asked.token.subject.as_str());
    let keys = if trust.jwks.is_some() { "trust" } else { "issuer" };
    ctx.change("/keysOf", Value::Null, keys);
    let matched = trust.claims.iter().filter_map(|rule| {
        let said = asked.token.text(&rule.claim)?;
        Some((rule.claim.clone(), json!(said)))
    });
    ctx.change("/claims", Value::Null, Value::Object(matched.collect()));
}
