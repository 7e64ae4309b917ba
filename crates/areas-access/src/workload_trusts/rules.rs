//! Which claims a token must have, and whether rules name one workload. Pure.
//!
//! A rule is met by what a claim says, and by nothing else: exactly, or by its beginning up to a boundary (`/` or `:`), behind
//! which there has to be more. There is no other pattern, no alternative and no negation, so that nobody reads less in a rule
//! than it lets in.
//!
//! INVARIANT WO-1: the rules of a trust name one repository, project or Kubernetes service account, or its maker said that
//! every repository of an owner is meant.

use crate::resources::definition::{AtMost, SingleLine};
use provost_kernel::error::{Error, Result};
use provost_oauth::json::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

provost_kernel::word! {
    /// Whose tokens are trusted: it decides which claims name a workload.
    pub enum Kind {
        /// GitHub Actions, at github.com or on a server of one's own.
        Github = "github",
        /// GitLab CI/CD, at gitlab.com or on a server of one's own.
        Gitlab = "gitlab",
        /// Service accounts of a Kubernetes cluster.
        Kubernetes = "kubernetes",
    }
}

provost_kernel::word! {
    /// How the text of a claim is compared.
    #[derive(Default)]
    pub enum Comparison {
        /// It is the value.
        #[default]
        Exact = "exact",
        /// It begins with the value, which ends with `/` or `:`, and goes on.
        Prefix = "prefix",
    }
}

/// One claim that a token must have.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct ClaimInput {
    /// The claim: a member of the token that is a text.
    claim: SingleLine<1, 64>,
    /// What it says.
    value: SingleLine<1, 512>,
    /// Whether all of it is the value, or its beginning.
    #[serde(default)]
    matches: Comparison,
}

/// LIMIT: rules of a trust.
pub type ClaimInputs = AtMost<ClaimInput, 16>;

/// A rule as it is stored and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimRule {
    /// The claim.
    pub claim: String,
    /// What it says.
    pub value: String,
    /// How that is compared.
    pub matches: Comparison,
}

impl ClaimRule {
    /// Returns the rules that somebody sent.
    pub fn of(sent: &ClaimInputs) -> Vec<Self> {
        let rule = |input: &ClaimInput| Self {
            claim: input.claim.as_str().to_owned(),
            value: input.value.as_str().to_owned(),
            matches: input.matches,
        };
        sent.iter().map(rule).collect()
    }

    /// Says whether a claim is as the rule has it. What is no text is not.
    pub fn is_met_by(&self, claims: &Object) -> bool {
        let Some(Value::String(said)) = claims.get(&self.claim) else {
            return false;
        };
        match self.matches {
            Comparison::Exact => *said == self.value,
            Comparison::Prefix => said
                .strip_prefix(&self.value)
                .is_some_and(|rest| !rest.is_empty()),
        }
    }

    fn is_exact(&self, claim: &str) -> bool {
        self.claim == claim && self.matches == Comparison::Exact
    }
}

/// Returns the first rule that the claims of a token do not meet.
pub fn unmet<'a>(rules: &'a [ClaimRule], claims: &Object) -> Option<&'a ClaimRule> {
    rules.iter().find(|rule| !rule.is_met_by(claims))
}

/// Whom rules name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// One repository, project or service account of a cluster.
    Workload,
    /// Whatever belongs to one owner.
    Owner,
    /// Nobody in particular.
    Nobody,
}

/// Returns whom the rules of a kind name.
pub fn named(kind: Kind, rules: &[ClaimRule]) -> Named {
    let owners: &[&str] = match kind {
        Kind::Github => &["repository_owner", "repository_owner_id"],
        Kind::Gitlab => &["namespace_path", "namespace_id"],
        Kind::Kubernetes => &[],
    };
    let is_workload = |rule: &ClaimRule| match kind {
        Kind::Github => is_repository(rule),
        Kind::Gitlab => is_project(rule),
        Kind::Kubernetes => is_cluster_account(rule),
    };
    if rules.iter().any(is_workload) {
        Named::Workload
    } else if rules.iter().any(|rule| is_full(rule, owners)) {
        Named::Owner
    } else {
        Named::Nobody
    }
}

fn is_full(rule: &ClaimRule, claims: &[&str]) -> bool {
    claims.iter().any(|claim| rule.is_exact(claim))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `OWNER/REPOSITORY`, each of the two one word.
fn is_pair(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && !word.contains(['/', ':']);
    text.split_once('/')
        .is_some_and(|(owner, name)| is_word(owner) && is_word(name))
}

/// `GROUP/PROJECT`, with as many groups between them as there are.
fn is_path(text: &str) -> bool {
    text.contains('/')
        && text
            .split('/')
            .all(|word| !word.is_empty() && !word.contains(':'))
}

/// What stands between `lead` and the next colon, which has to be there.
fn between<'a>(text: &'a str, lead: &str) -> Option<&'a str> {
    text.strip_prefix(lead)?.split_once(':').map(|(name, _)| name)
}

fn is_repository(rule: &ClaimRule) -> bool {
    rule.is_exact("repository") && is_pair(&rule.value)
        || rule.is_exact("repository_id") && is_number(&rule.value)
        || rule.claim == "sub" && between(&rule.value, "repo:").is_some_and(is_pair)
}

fn is_project(rule: &ClaimRule) -> bool {
    rule.is_exact("project_path") && is_path(&rule.value)
        || rule.is_exact("project_id") && is_number(&rule.value)
        || rule.claim == "sub" && between(&rule.value, "project_path:").is_some_and(is_path)
}

fn is_cluster_account(rule: &ClaimRule) -> bool {
    let account = rule
        .is_exact("sub")
        .then(|| rule.value.strip_prefix("system:serviceaccount:"))
        .flatten();
    let names: Vec<&str> = account.map(|rest| rest.split(':').collect()).unwrap_or_default();
    names.len() == 2 && names.iter().all(|name| !name.is_empty())
}

/// Claims that are judged by themselves: a rule of them would promise something else.
const JUDGED: [&str; 6] = ["iss", "aud", "exp", "nbf", "iat", "jti"];

/// Checks rules, and that they name a workload (WO-1).
///
/// Errors: `InvalidDefinition`, naming the member.
pub fn check(kind: Kind, rules: &[ClaimRule], whole_owner: bool) -> Result<()> {
    for (place, rule) in rules.iter().enumerate() {
        check_one(place, rule)?;
        if rules[..place].iter().any(|known| known.claim == rule.claim) {
            let message = "stands in another rule already; a token has to meet all of them, and alternatives are trusts of \
                           their own";
            return wrong(&format!("/claims/{place}/claim"), message);
        }
    }
    match (named(kind, rules), whole_owner) {
        (Named::Workload, false) | (Named::Owner, true) => Ok(()),
        (Named::Workload, true) => wrong("/wholeOwner", "is for rules that name no repository or project"),
        (Named::Owner, false) => wrong(
            "/claims",
            "let every repository of the owner act as the account, one that somebody makes tomorrow included; name a \
             repository or project, or say wholeOwner: true if all of them are meant",
        ),
        (Named::Nobody, _) => wrong("/claims", needed(kind)),
    }
}

fn needed(kind: Kind) -> &'static str {
    match kind {
        Kind::Github => {
            "must name one repository: repository (OWNER/NAME) or repository_id with its exact value, or sub from \
             repo:OWNER/NAME: on; other claims narrow that"
        }
        Kind::Gitlab => {
            "must name one project: project_path (GROUP/PROJECT) or project_id with its exact value, or sub from \
             project_path:GROUP/PROJECT: on; other claims narrow that"
        }
        Kind::Kubernetes => {
            "must name one account of the cluster: sub, exactly system:serviceaccount:NAMESPACE:NAME"
        }
    }
}

fn check_one(place: usize, rule: &ClaimRule) -> Result<()> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    if !rule.claim.bytes().all(is_name) {
        return wrong(&format!("/claims/{place}/claim"), "is no name of a claim");
    }
    if JUDGED.contains(&rule.claim.as_str()) {
        let message = "is judged by issuer, audience, lifetimeSeconds and maxTokenAgeSeconds, and by no rule";
        return wrong(&format!("/claims/{place}/claim"), message);
    }
    let value = format!("/claims/{place}/value");
    if rule.value.contains('*') {
        let message = "has a star, which would stand for itself; give the beginning up to a / or : with matches: prefix";
        return wrong(&value, message);
    }
    let ends_well = rule.value.len() > 1 && rule.value.ends_with(['/', ':']);
    if rule.matches == Comparison::Prefix && !ends_well {
        return wrong(
            &value,
            "must end with / or : where it is a prefix, and have something before it",
        );
    }
    Ok(())
}

/// Refuses a member.
pub fn wrong<T>(path: &str, message: &str) -> Result<T> {
    Err(Error::unfit(path, message))
}

/// Something of a trust that its author should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "WorkloadTrustWarning")]
pub struct Warning {
    /// `any_ref`, `name_only`, `whole_owner`, `shared_audience`, `own_keys`. Open.
    pub code: &'static str,
    /// The same in words.
    pub message: &'static str,
}

/// Says what rules let in that somebody may not expect.
pub fn warnings(kind: Kind, rules: &[ClaimRule], audience: Option<&str>, has_own_keys: bool) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut add = |code, message| found.push(Warning { code, message });
    let is_of_code = kind != Kind::Kubernetes;
    if is_of_code && !rules.iter().any(|rule| narrows(kind, rule)) {
        add(
            "any_ref",
            "every branch, tag and pull request that the issuer signs for can act as the account; add sub, ref or environment",
        );
    }
    let numbers = [
        "repository_id",
        "repository_owner_id",
        "project_id",
        "namespace_id",
    ];
    if is_of_code && !rules.iter().any(|rule| is_full(rule, &numbers)) {
        add(
            "name_only",
            "a name can come to belong to somebody else when it is given up or moved; add the number (repository_id, \
             project_id)",
        );
    }
    if named(kind, rules) == Named::Owner {
        add(
            "whole_owner",
            "whoever can make a repository of the owner can act as the account",
        );
    }
    if audience.is_some() {
        add(
            "shared_audience",
            "another server that is sent tokens with this audience can use them here; without audience it is this server's URL",
        );
    }
    if has_own_keys {
        add(
            "own_keys",
            "whoever holds one of these keys signs tokens that are accepted, whatever the issuer does with its keys; change \
             them here when the issuer changes its own",
        );
    }
    found
}

/// Says whether a rule names more than the repository, project or owner.
fn narrows(kind: Kind, rule: &ClaimRule) -> bool {
    let identity = [
        "repository",
        "repository_id",
        "repository_owner",
        "repository_owner_id",
        "project_path",
        "project_id",
        "namespace_path",
        "namespace_id",
    ];
    if rule.claim != "sub" {
        return !identity.contains(&rule.claim.as_str());
    }
    let lead = if kind == Kind::Github {
        "repo:"
    } else {
        "project_path:"
    };
    let rest = rule
        .value
        .strip_prefix(lead)
        .and_then(|rest| rest.split_once(':'));
    rest.is_none_or(|(_, rest)| !rest.is_empty())
}

#[cfg(test)]
mod tests;
