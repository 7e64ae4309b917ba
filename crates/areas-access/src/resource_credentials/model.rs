//! The words and rules of credentials, without storage and without secrets.
//!
//! Keeps RC-1: no type of this file that is answered or read from a row can hold a secret; what a caller writes is a
//! `Secret` in the body alone (D11.6).

use super::assignment::{AssignedBody, Assignees};
use super::authentication::{Authentication, AuthenticationBody, is_header_name};
use crate::resources::definition::{Breaches, SingleLine};
use crate::resources::model::{Protocol, ResourceId};
use crate::resources::ownership::Owner;
use provost_kernel::text::Name;
use provost_kernel::{Secret, Timestamp, id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

id!(CredentialId, "cred", "Names a credential of a resource.");

/// LIMIT: credentials of one resource (D11.5).
pub const MAX_PER_RESOURCE: i64 = 500;
/// LIMIT: characters of a secret; the longest in use are private keys of a few thousand.
const MAX_SECRET: usize = 65_536;

provost_kernel::word! {
    /// How a credential opens its resource (D11.2).
    #[schemars(extend("x-open" = true))]
    pub enum Kind {
        /// A user name and a password.
        UsernamePassword = "username_password",
        /// A token in `Authorization`.
        BearerToken = "bearer_token",
        /// A value in a header of its own.
        Header = "header",
        /// A token that AWS makes for a database user.
        AwsRdsIam = "aws_rds_iam",
        /// A token that a client secret buys.
        Oauth2ClientCredentials = "oauth2_client_credentials",
        /// A token that the caller's own token buys.
        Oauth2TokenExchange = "oauth2_token_exchange",
    }
}

impl Kind {
    /// Says whether it opens a resource of this protocol.
    pub const fn fits(self, protocol: Protocol) -> bool {
        match self {
            Self::UsernamePassword => !matches!(protocol, Protocol::Http),
            Self::AwsRdsIam => matches!(protocol, Protocol::Postgres | Protocol::Mysql),
            _ => matches!(protocol, Protocol::Http),
        }
    }

    /// Says whether it has a secret of its own.
    pub const fn keeps_secret(self) -> bool {
        !matches!(self, Self::AwsRdsIam | Self::Oauth2TokenExchange)
    }

    const fn has_username(self) -> bool {
        matches!(self, Self::UsernamePassword | Self::AwsRdsIam)
    }
}

/// A secret as a client writes it. It is never answered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, extend("minLength" = 1, "maxLength" = MAX_SECRET, "writeOnly" = true))]
pub struct SecretText(#[schemars(with = "String")] Secret<String>);

impl TryFrom<String> for SecretText {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = Secret::new(text);
        if (1..=MAX_SECRET).contains(&text.expose().chars().count()) {
            return Ok(Self(text));
        }
        Err("must have 1 to 65536 characters")
    }
}

impl SecretText {
    /// Returns the secret.
    pub fn secret(&self) -> &Secret<String> {
        &self.0
    }
}

/// Where a secret lies: here, or with a secret manager that the operator declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Mode {
    /// Here.
    Service,
    /// With a declared secret manager.
    External,
}

/// A path below what the operator gave an organization: segments of letters, digits, `.`, `_`, `-`, none of
/// which begins with a dot.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, extend(
    "minLength" = 1, "maxLength" = 512,
    "pattern" = "^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$",
))]
pub struct ExternalPath(String);

impl TryFrom<String> for ExternalPath {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let is_segment = |s: &str| !s.is_empty() && !s.starts_with('.') && s.bytes().all(is_inner);
        if text.len() <= 512 && text.split('/').all(is_segment) {
            return Ok(Self(text));
        }
        Err(
            "must be segments of letters, digits, '.', '_' and '-' with '/' between them, none beginning with a dot",
        )
    }
}

impl ExternalPath {
    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a credential is made of; a write replaces all of it but a secret that is left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CredentialBody {
    /// What people call it.
    pub name: Name,
    /// How it opens the resource; must fit its protocol.
    pub kind: Kind,
    /// Whether it serves whoever has no other credential of the resource; one at most does.
    #[serde(default)]
    pub default: bool,
    /// Whom it is for.
    #[serde(default)]
    pub assigned_to: Option<AssignedBody>,
    /// For `username_password` and `aws_rds_iam`.
    pub username: Option<SingleLine<1, 256>>,
    /// For `header`.
    pub header_name: Option<SingleLine<1, 256>>,
    /// For `aws_rds_iam` and the two OAuth kinds.
    pub authentication: Option<AuthenticationBody>,
    /// Never answered. Left out, the stored one stays; given, it takes its place.
    pub secret: Option<SecretText>,
    /// `external`: the secret stays with a secret manager and is only named here.
    pub management_mode: Option<Mode>,
    /// The declared secret manager; with `external` alone.
    pub manager_instance: Option<SingleLine<1, 128>>,
    /// The secret's path there; with `external` alone.
    pub external_path: Option<ExternalPath>,
    /// The member of the secret there, `value` when absent; with `external` and a vault alone.
    pub external_field: Option<SingleLine<1, 256>>,
}

/// What a definition is judged against.
pub struct Surroundings<'a> {
    /// What the resource speaks.
    pub protocol: Protocol,
    /// A secret of the same kind is stored here already.
    pub has_secret: bool,
    /// The caller sent the labels of a Terraform manager.
    pub by_terraform: bool,
    /// What the named secret manager is, if the organization may use one of this name.
    pub manager: Option<&'a str>,
}

impl CredentialBody {
    /// Says whether the secret lies elsewhere.
    pub fn is_external(&self) -> bool {
        self.management_mode == Some(Mode::External)
    }

    /// Returns what the schema cannot say.
    pub fn breaches(&self, around: &Surroundings<'_>) -> Breaches {
        let mut breaches = Breaches::default();
        let kind = self.kind;
        breaches.unless(
            kind.fits(around.protocol),
            "/kind",
            "does not fit the protocol of the resource",
        );
        belongs(
            &mut breaches,
            "/username",
            self.username.is_some(),
            kind.has_username(),
        );
        let has_header = self.header_name.is_some();
        belongs(&mut breaches, "/headerName", has_header, kind == Kind::Header);
        if let Some(name) = &self.header_name {
            breaches.unless(
                is_header_name(name.as_str()),
                "/headerName",
                "must be the name of a header that a client may set",
            );
        }
        let authentication = self.authentication.as_ref();
        AuthenticationBody::judge(authentication, kind, &mut breaches);
        self.judge_secret(around, &mut breaches);
        breaches
    }

    fn judge_secret(&self, around: &Surroundings<'_>, breaches: &mut Breaches) {
        if !self.is_external() {
            let of_external = "belongs to the management mode external";
            breaches.unless(self.manager_instance.is_none(), "/managerInstance", of_external);
            breaches.unless(self.external_path.is_none(), "/externalPath", of_external);
            breaches.unless(self.external_field.is_none(), "/externalField", of_external);
            let has_secret = self.secret.is_some();
            if self.kind.keeps_secret() {
                breaches.unless(has_secret || around.has_secret, "/secret", "is required");
            } else {
                breaches.unless(!has_secret, "/secret", "does not belong to this kind");
            }
            return;
        }
        breaches.unless(
            !around.by_terraform,
            "/managementMode",
            "cannot be external for a Terraform manager",
        );
        breaches.unless(
            self.kind.keeps_secret(),
            "/managementMode",
            "cannot be external for a kind that has no secret",
        );
        breaches.unless(self.external_path.is_some(), "/externalPath", "is required");
        breaches.unless(
            around.manager.is_some(),
            "/managerInstance",
            "names no secret manager that this organization may use",
        );
        breaches.unless(
            self.external_field.is_none() || around.manager != Some("file"),
            "/externalField",
            "is of no use with files",
        );
    }
}

fn belongs(breaches: &mut Breaches, path: &'static str, is_there: bool, is_wanted: bool) {
    breaches.unless(is_there || !is_wanted, path, "is required for this kind");
    breaches.unless(!is_there || is_wanted, path, "does not belong to this kind");
}

/// Who manages a credential and where its secret lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Management {
    /// The secret is here.
    Here(Owner),
    /// The secret is with a secret manager.
    External {
        /// What the manager is: `vault` or `file`.
        manager: String,
        /// The manager's declared name.
        instance: String,
        /// The path below the organization's prefix.
        path: String,
        /// The member of the secret there.
        field: Option<String>,
    },
}

impl Management {
    /// Returns the word on the wire.
    pub const fn mode(&self) -> &'static str {
        match self {
            Self::Here(owner) => owner.mode(),
            Self::External { .. } => "external",
        }
    }

    /// Returns whose the record is; an external one is the service's.
    pub fn owner(&self) -> &Owner {
        match self {
            Self::Here(owner) => owner,
            Self::External { .. } => &Owner::Service,
        }
    }

    /// Returns `managerId` and `managerInstance`.
    pub fn labels(&self) -> [Option<&str>; 2] {
        match self {
            Self::Here(owner) => {
                let [manager, instance, _] = owner.columns();
                [manager, instance]
            }
            Self::External {
                manager, instance, ..
            } => [Some(manager), Some(instance)],
        }
    }

    /// Returns path and member of an external secret.
    pub fn place(&self) -> [Option<&str>; 2] {
        match self {
            Self::Here(_) => [None, None],
            Self::External { path, field, .. } => [Some(path), field.as_deref()],
        }
    }
}

/// A credential as it is stored, without its secret.
#[derive(Clone, Debug)]
pub struct Credential {
    /// Its id.
    pub id: CredentialId,
    /// The resource that it opens.
    pub resource_id: ResourceId,
    /// Its name.
    pub name: String,
    /// How it opens the resource.
    pub kind: Kind,
    /// Whether it serves whoever has no other.
    pub is_default: bool,
    /// Whom it is for.
    pub assigned: Assignees,
    /// The user.
    pub username: Option<String>,
    /// The header.
    pub header_name: Option<String>,
    /// Where and how a token is had.
    pub authentication: Option<Authentication>,
    /// Who manages it.
    pub management: Management,
    /// How many secrets it has had; 0 when none is stored here.
    pub secret_version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Its last use, to the minute.
    pub last_used_at: Option<Timestamp>,
    /// When the secret that it stands for last became another one (RC-8).
    pub rotated_at: Option<Timestamp>,
}

impl Credential {
    /// Says whether a secret of it is stored here.
    pub fn has_secret(&self) -> bool {
        self.kind.keeps_secret() && matches!(self.management, Management::Here(_))
    }

    /// Replaces everything that a body holds, beside assignments, management and secret.
    pub fn apply(&mut self, body: &CredentialBody) {
        body.name.as_str().clone_into(&mut self.name);
        self.kind = body.kind;
        self.is_default = body.default;
        self.username = body.username.as_ref().map(|text| text.as_str().to_owned());
        self.header_name = body.header_name.as_ref().map(|text| text.as_str().to_owned());
        self.authentication = body.authentication.as_ref().map(AuthenticationBody::stored);
    }
}

/// A credential as its readers see it (specification §2.6).
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ResourceCredential")]
pub struct CredentialView {
    id: CredentialId,
    organization_id: String,
    resource_id: ResourceId,
    name: String,
    kind: Kind,
    default: bool,
    assigned_to: Assignees,
    /// `service`, `terraform` or `external`.
    management_mode: &'static str,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    manager_instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotated_at: Option<Timestamp>,
}

/// Returns what a reader sees.
pub fn view(organization: &str, credential: Credential) -> CredentialView {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let [manager_id, manager_instance] = credential.management.labels().map(owned);
    let [external_path, external_field] = credential.management.place().map(owned);
    CredentialView {
        management_mode: credential.management.mode(),
        manager_id,
        manager_instance,
        external_path,
        external_field,
        id: credential.id,
        organization_id: organization.to_owned(),
        resource_id: credential.resource_id,
        name: credential.name,
        kind: credential.kind,
        default: credential.is_default,
        assigned_to: credential.assigned,
        created_at: credential.created_at,
        updated_at: credential.updated_at,
        username: credential.username,
        header_name: credential.header_name,
        authentication: credential.authentication,
        last_used_at: credential.last_used_at,
        rotated_at: credential.rotated_at,
    }
}

/// The path of operations on one credential.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct CredentialPath {
    /// The resource.
    pub resource_id: ResourceId,
    /// The credential.
    pub credential_id: CredentialId,
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
