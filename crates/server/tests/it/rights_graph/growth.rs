//! Edges by which something can be used that the caller did not hold, each with its reason.
//!
//! An edge that is found and does not stand here fails the net; one that stands here and is not found fails it too.
//!
//! Keeps GR-1.

/// An edge.
#[derive(Debug)]
pub struct Growth {
    pub operation: &'static str,
    /// The scopes with which it is there.
    pub needs: &'static [&'static str],
    /// The kind of the door that it opens.
    pub door: &'static str,
    pub why: &'static str,
}

const fn edge(
    operation: &'static str,
    needs: &'static [&'static str],
    door: &'static str,
    why: &'static str,
) -> Growth {
    Growth {
        operation,
        needs,
        door,
        why,
    }
}

const ROBOT: &str = "an admin gives this scope knowingly, to a robot that rotates tokens: whoever rotates one holds it (D3.3)";
const MEMBERS: &str = "who is a member of what is what this scope is for; the audit entry names the credentials, allow \
    lists and exceptions that it opens";
const POWERLESS: &str =
    "the user has no role and can do nothing of the API; whoever gives her one later holds it";
const WORDS: &str = "whom telemetry means is what this scope is for; no token and no sign-in follows it";
const SECRETS: &str = "whom a secret serves, and of which resource it is, is what this scope is for";
const UPSTREAM: &str = "where a resource is reached, and so where a gateway takes its secret, is what this scope is for; SECURITY.md says so";
const MACHINES: &str = "whoever has it enrols one machine more, and a machine has no role: it calls operations of its kind, for itself";
const ITSELF: &str = "a machine that proves its key becomes a device, which has no role: it calls operations of its kind, for itself";
const OWNERS: &str = "the user has no role and can do nothing of the API, and whom gateways take machines for is what this scope is \
    for; whoever gives her a role later is behind no machine by the word of somebody who could not (FL-7)";

pub const GROWTH: &[Growth] = &[
    edge(
        "updateHeadlessDevice",
        &["fleet:write", "llm_gateway:write"],
        "owner of a machine",
        OWNERS,
    ),
    edge(
        "approveHeadlessDevice",
        &["fleet:write"],
        "owner of a machine",
        OWNERS,
    ),
    edge(
        "releaseHeadlessDevice",
        &["fleet:write"],
        "owner of a machine",
        OWNERS,
    ),
    edge(
        "createHeadlessEnrolmentToken",
        &["fleet:enrol"],
        "secret of an enrolment token",
        MACHINES,
    ),
    edge(
        "createHeadlessOwnEnrolmentToken",
        &["fleet:enrol_self"],
        "secret of an enrolment token",
        MACHINES,
    ),
    edge(
        "enrolHeadlessDevice",
        &["enrolment_token"],
        "secret of a device",
        ITSELF,
    ),
    edge(
        "renewHeadlessDeviceToken",
        &["device"],
        "secret of a device",
        ITSELF,
    ),
    edge(
        "rotateHeadlessDeviceKey",
        &["device"],
        "secret of a device",
        ITSELF,
    ),
    edge(
        "rotateHeadlessServiceAccountToken",
        &["service_accounts:rotate", "service_accounts:rotate_any"],
        "token",
        ROBOT,
    ),
    edge(
        "rotateHeadlessServiceAccountToken",
        &["service_accounts:rotate", "service_accounts:rotate_any"],
        "secret of a token",
        ROBOT,
    ),
    edge(
        "addHeadlessDirectoryGroupMember",
        &["directory:write"],
        "membership",
        MEMBERS,
    ),
    edge(
        "applyHeadlessDirectoryImport",
        &["directory:write"],
        "membership",
        MEMBERS,
    ),
    edge(
        "createHeadlessIdentityLink",
        &["directory:write"],
        "identity link",
        POWERLESS,
    ),
    edge(
        "allowHeadlessIdentityRelinking",
        &["directory:write"],
        "new link that is allowed",
        POWERLESS,
    ),
    edge(
        "mapHeadlessDirectoryIdentity",
        &["directory:write"],
        "word of telemetry",
        WORDS,
    ),
    edge(
        "createHeadlessResourceCredential",
        &["resource_credentials:write"],
        "credential",
        SECRETS,
    ),
    edge(
        "createHeadlessResourceCredential",
        &["resource_credentials:write"],
        "place where secrets are sent",
        SECRETS,
    ),
    edge(
        "updateHeadlessResourceCredential",
        &["resource_credentials:write"],
        "credential",
        SECRETS,
    ),
    edge(
        "createHeadlessResourceCredential",
        &["resource_credentials:write"],
        "credential for everybody",
        SECRETS,
    ),
    edge(
        "updateHeadlessResourceCredential",
        &["resource_credentials:write"],
        "credential for everybody",
        SECRETS,
    ),
    edge(
        "updateHeadlessResourceGateway",
        &["resources:write"],
        "place where secrets are sent",
        UPSTREAM,
    ),
    edge(
        "updateHeadlessResource",
        &["resources:write"],
        "place where secrets are sent",
        UPSTREAM,
    ),
];
