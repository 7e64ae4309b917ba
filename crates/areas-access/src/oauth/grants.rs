//! What both halves of the authorization server share: codes, clients, and who a user is.
//!
//! Keeps OC-7.

use super::state::Oauth;
use super::token::of_store;
use super::{clients, command_line, links, store};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_areas_platform::settings;
use provost_kernel::auth::{OrganizationId, Role, ScopeSet};
use provost_kernel::db::Row;
use provost_kernel::error::{Error, Result};
use provost_kernel::text::name_key;
use provost_kernel::{Kernel, OperationContext, Secret, params};
use provost_oauth::TokenError;
use provost_oauth::client_document::Authentication;
use provost_oauth::error::Code as ErrorCode;
use std::sync::Arc;

/// How long a code can be used. Units: seconds.
pub const CODE_SECS: i64 = 60;

/// A program that may ask for tokens.
#[derive(Clone, Debug)]
pub struct Client {
    /// Its id: `ocl_…` of a registered one, the URL of its document, or that of [`command_line`].
    pub id: String,
    /// Its name; of a client that is known by its document, in its own words.
    pub name: String,
    /// Where it was registered; `None` for one that belongs to no organization.
    pub organization: Option<OrganizationId>,
    /// Where answers may be sent.
    pub redirect_uris: Vec<String>,
    /// The grants that it may use, in the words of RFC 7591.
    pub grant_types: Vec<String>,
    /// The most that it may be granted; `None` when nothing limits it.
    pub scopes: Option<ScopeSet>,
    /// How it proves itself.
    pub authentication: Authentication,
    /// The account that it is, for `client_credentials`.
    pub service_account_id: Option<String>,
}

impl Client {
    /// Says whether it may use a grant.
    pub fn may_use(&self, grant_type: &str) -> bool {
        self.grant_types.iter().any(|known| known == grant_type)
    }

    /// Says whether a URI is one of its redirect targets.
    pub fn redirects_to(&self, uri: &str) -> bool {
        self.redirect_uris
            .iter()
            .any(|known| provost_oauth::redirect::matches(known, uri))
    }
}

/// Resolves a client's id: a registered one, our own command line, or the URL of a metadata document, which is fetched in a turn
/// of the `network`.
///
/// Errors: `invalid_client` for one that is unknown, blocked, or whose document is not accepted;
/// `temporarily_unavailable`.
pub async fn client(
    kernel: &Arc<Kernel>,
    client_id: &str,
    network: Option<String>,
) -> std::result::Result<Client, TokenError> {
    let unknown = || TokenError::new(ErrorCode::InvalidClient, "the client is not known here");
    let oauth = Oauth::of(kernel).map_err(of_store)?.clone();
    if oauth.settings.keeps_out(client_id) {
        return Err(unknown());
    }
    if client_id == command_line::ID {
        return Ok(command_line::client());
    }
    if client_id.starts_with("https://") {
        if !oauth.settings.client_documents {
            return Err(unknown());
        }
        return oauth.client_at(client_id, network).await;
    }
    let id = client_id.to_owned();
    let found = kernel.read_system(move |tx| clients::resolve(tx, &id)).await;
    found.map_err(of_store)?.ok_or_else(unknown)
}

/// What a code stands for.
#[derive(Clone, Debug)]
pub struct Code {
    /// The client that it is made for.
    pub client: Client,
    /// Where it is sent, exactly as the request named it.
    pub redirect_uri: String,
    /// The challenge of PKCE, S256.
    pub challenge: String,
    /// What was consented to.
    pub scopes: ScopeSet,
    /// The resources that the token is to be for; see [`super::audiences`].
    pub audiences: Vec<String>,
    /// Who consented.
    pub user_id: String,
    /// Its name.
    pub user_display: String,
    /// The key that the client must prove to hold (`dpop_jkt`).
    pub jkt: Option<String>,
}

/// Draws the text of a code.
pub fn draw_code(kernel: &Kernel) -> Secret<String> {
    let mut bytes = zeroize::Zeroizing::new([0; 32]);
    kernel.rng().fill(bytes.as_mut_slice());
    Secret::new(URL_SAFE_NO_PAD.encode(bytes.as_slice()))
}

/// What became of a code that was to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeOutcome {
    /// It was made.
    New,
    /// It was made before, for the same, and can still be used.
    Same,
    /// It was made before, and stands for something else, was used, or has run out.
    Other,
}

/// Makes a code of the unit's organization; it can be used for 60 seconds, once.
pub fn make_code(ctx: &mut OperationContext<'_>, text: &Secret<String>, code: &Code) -> Result<CodeOutcome> {
    let (org, now) = (ctx.org(), ctx.now());
    let added = ctx.execute(
        &store::ADD_CODE,
        params![
            org,
            code_digest(text.expose()).as_slice(),
            code.client.id.as_str(),
            code.client.name.as_str(),
            code.redirect_uri.as_str(),
            code.challenge.as_str(),
            store::joined(code.scopes),
            code.audiences.join(" "),
            code.user_id.as_str(),
            code.user_display.as_str(),
            code.jkt.as_deref(),
            now,
            now.plus_secs(CODE_SECS),
        ],
    )?;
    if added == 1 {
        return Ok(CodeOutcome::New);
    }
    let digest = code_digest(text.expose());
    let known = ctx.query_opt(&store::CODE, params![digest.as_slice()], store::code)?;
    let is_same = known.is_some_and(|known| {
        known.organization == *ctx.organization()
            && known.client_id == code.client.id
            && known.redirect_uri == code.redirect_uri
            && known.challenge == code.challenge
            && known.scopes == code.scopes
            && known.audiences == code.audiences
            && known.user_id == code.user_id
            && known.jkt == code.jkt
            && known.used_at.is_none()
            && ctx.latest() < known.expires_at
    });
    Ok(if is_same {
        CodeOutcome::Same
    } else {
        CodeOutcome::Other
    })
}

/// Returns the stored form of a code: 256 random bits need no key.
pub(super) fn code_digest(code: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, code.as_bytes()).as_ref());
    bytes
}

/// A directory user, as far as tokens are concerned.
#[derive(Clone, Debug)]
pub struct User {
    /// Its id.
    pub id: String,
    /// Its name, for people.
    pub display: String,
    /// The role that somebody gave it.
    pub role: Option<Role>,
    /// The role in which it acts: that one, or the one of everybody who has none (ADR 0111). Without one it may do nothing.
    pub acting_role: Option<Role>,
    /// Whether it is not suspended.
    pub is_active: bool,
}

/// The login name that an issuer vouches for: it says `email_verified`, and the operator declared it authoritative for the
/// directory (OC-7).
#[derive(Clone, Debug)]
pub struct VerifiedLogin {
    /// The directory.
    pub directory_id: String,
    /// The login name in it.
    pub login_name: String,
}

/// Whom a subject of an issuer is here.
#[derive(Clone, Debug)]
pub enum RecognizedUser {
    /// A user; suspended ones included.
    User(User),
    /// Nobody whom this server knows.
    Stranger,
    /// Somebody comes under the login name of a user whom an admin has to link first (IL-1).
    Withheld,
}

impl RecognizedUser {
    /// Returns the user.
    pub fn user(self) -> Option<User> {
        match self {
            Self::User(user) => Some(user),
            Self::Stranger | Self::Withheld => None,
        }
    }
}

/// Says which user of the unit's organization a subject of an issuer is. One that is seen for the first time is linked by
/// `login` to the active user of that name; so is one whose user is gone.
///
/// INVARIANT IL-1: a user who has, or had within 90 days, another subject of the issuer, or whose login name was changed
/// within them, is not linked by that name alone.
pub fn recognize(
    ctx: &mut OperationContext<'_>,
    issuer: &str,
    subject: &str,
    login: Option<&VerifiedLogin>,
) -> Result<RecognizedUser> {
    let org = ctx.org();
    if let Some(link) = links::get(ctx, issuer, subject)? {
        let known = user(ctx, link.user_id.as_str())?;
        // INVARIANT RH-1, IL-5: a link that is held is not followed, and nobody takes its place.
        let is_held = !link.is_followed(known.as_ref().and_then(|user| user.role));
        if is_held || known.is_some() {
            return Ok(known.map_or(RecognizedUser::Stranger, |user| {
                RecognizedUser::User(User {
                    is_active: user.is_active && !is_held,
                    ..user
                })
            }));
        }
    }
    let Some(login) = login else {
        return Ok(RecognizedUser::Stranger);
    };
    let named = params![org, name_key(&login.login_name), login.directory_id.as_str()];
    let found = ctx.query_opt(&store::USER_NAMED, named, read_user)?;
    let Some(user) = found.filter(|user| user.is_active) else {
        return Ok(RecognizedUser::Stranger);
    };
    let Some(reach) = links::link_of_itself(ctx, issuer, &user)? else {
        return Ok(RecognizedUser::Withheld);
    };
    links::link(ctx, issuer, subject, &user.id, &reach)?;
    Ok(RecognizedUser::User(acting(ctx, user)?))
}

/// Returns a user of the unit's organization, suspended ones included.
pub fn user(ctx: &mut OperationContext<'_>, id: &str) -> Result<Option<User>> {
    let org = ctx.org();
    let found = ctx.query_opt(&store::USER, params![org, id], read_user)?;
    found.map(|user| acting(ctx, user)).transpose()
}

/// Returns a user with the role in which it acts. Links are followed by the role that was given: what everybody has by a setting
/// is behind no word of whoever made a link.
fn acting(ctx: &mut OperationContext<'_>, user: User) -> Result<User> {
    if user.role.is_some() {
        return Ok(user);
    }
    let acting_role = settings::load(ctx)?.directory.default_role.role();
    Ok(User { acting_role, ..user })
}

fn read_user(row: &Row<'_>) -> Result<User> {
    let role = row.get::<Option<String>>(3)?;
    let role = role.map(|word| {
        Role::parse(&word).ok_or_else(|| Error::internal("directory_users.permission_role is not a role"))
    });
    let (display, role) = (row.get::<Option<String>>(1)?, role.transpose()?);
    Ok(User {
        id: row.get(0)?,
        display: display.map_or_else(|| row.get(2), Ok)?,
        role,
        acting_role: role,
        is_active: row.str(4)? == "active",
    })
}
