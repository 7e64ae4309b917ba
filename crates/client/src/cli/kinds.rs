//! The kinds of records that have names, and how they are found by them.

/// The length of the part of an id behind its prefix: a ULID.
const ULID: usize = 26;
/// A kind of records that have names.
pub(super) struct Kind {
    /// The parameter of the path that takes their id.
    pub(super) parameter: &'static str,
    /// How their ids begin; absent where ids are words of people's own.
    pub(super) prefix: Option<&'static str>,
    /// The command that lists them.
    pub(super) list: (&'static str, &'static str),
    /// The member that holds the name.
    pub(super) name: &'static str,
    /// The parameter of the list that leaves out others.
    pub(super) filter: Option<&'static str>,
    /// One of them, in words.
    pub(super) noun: &'static str,
    pub(super) plural: &'static str,
}

const fn kind(
    (parameter, prefix): (&'static str, Option<&'static str>),
    group: &'static str,
    (name, filter): (&'static str, Option<&'static str>),
    (noun, plural): (&'static str, &'static str),
) -> Kind {
    Kind {
        parameter,
        prefix,
        list: (group, "list"),
        name,
        filter,
        noun,
        plural,
    }
}

/// The kinds.
static KINDS: [Kind; 13] = [
    kind(
        ("serviceAccountId", Some("sa")),
        "service-accounts",
        ("name", None),
        ("service account", "service accounts"),
    ),
    kind(
        ("groupId", Some("grp")),
        "groups",
        ("name", Some("name")),
        ("group", "groups"),
    ),
    kind(
        ("userId", Some("usr")),
        "users",
        ("loginName", Some("loginName")),
        ("user", "users"),
    ),
    kind(
        ("profileId", Some("prof")),
        "managed-config",
        ("name", None),
        ("profile", "profiles"),
    ),
    kind(
        ("mcpClientId", Some("ocl")),
        "mcp-clients",
        ("name", None),
        ("client", "clients"),
    ),
    kind(
        ("resourceId", Some("res")),
        "resources",
        ("name", None),
        ("resource", "resources"),
    ),
    kind(
        ("resourceGatewayId", Some("rgw")),
        "resource-gateways",
        ("name", None),
        ("gateway", "gateways"),
    ),
    kind(
        ("credentialId", Some("cred")),
        "resource-credentials",
        ("name", None),
        ("credential", "credentials"),
    ),
    kind(
        ("workloadTrustId", Some("wtr")),
        "workload-trusts",
        ("name", None),
        ("trust", "trusts"),
    ),
    kind(
        ("runId", Some("btr")),
        "backtests",
        ("name", None),
        ("backtest", "backtests"),
    ),
    kind(
        ("deviceId", Some("dev")),
        "devices",
        ("name", None),
        ("device", "devices"),
    ),
    // What a client calls a server says nothing; its key does.
    Kind {
        list: ("inventory", "mcp-servers"),
        ..kind(
            ("serverId", Some("srv")),
            "inventory",
            ("key", None),
            ("MCP server", "MCP servers"),
        )
    },
    kind(
        ("policyId", None),
        "policies",
        ("name", Some("query")),
        ("policy", "policies"),
    ),
];

/// Returns the kind whose id a parameter takes.
pub(super) fn kind_of(parameter: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.parameter == parameter)
}

/// Returns the kind whose id a flag takes: a member of the body or a parameter of the query that is called like the kind's own, with whose it is
/// before it.
pub(super) fn kind_of_flag(name: &str) -> Option<&'static Kind> {
    let is_of = |ending: &str| name.strip_suffix(ending).is_some();
    if is_of("userId") || is_of("UserId") {
        return kind_of("userId");
    }
    ["serviceAccountId", "groupId"]
        .into_iter()
        .find(|known| *known == name)
        .and_then(kind_of)
}

impl Kind {
    /// Says whether a word has the form of an id of this kind.
    pub(super) fn has_shape(&self, word: &str) -> bool {
        let Some(prefix) = self.prefix else { return false };
        let body = word.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_'));
        let is_of_ulid = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
        body.is_some_and(|body| body.len() == ULID && body.bytes().all(is_of_ulid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::catalogue;

    #[test]
    fn the_shape_of_an_id_is_its_prefix_and_a_ulid() {
        let kind = kind_of("serviceAccountId").unwrap();
        assert!(kind.has_shape("sa_01m7vv9kh2kev1h5hjrtv1gvsk"));
        for word in [
            "deploy",
            "sa_1",
            "sa_01m7vv9kh2kev1h5hjrtv1gvs",
            "usr_01m7vv9kh2kev1h5hjrtv1gvsk",
            "sa_01M7VV9KH2KEV1H5HJRTV1GVSK",
        ] {
            assert!(!kind.has_shape(word), "{word}");
        }
        assert!(
            !kind_of("policyId")
                .unwrap()
                .has_shape("sa_01m7vv9kh2kev1h5hjrtv1gvsk")
        );
    }

    #[test]
    fn a_flag_takes_the_id_that_it_is_called_like() {
        let of = |name| kind_of_flag(name).map(|kind| kind.parameter);
        for name in ["userId", "ownerUserId", "toUserId", "ownerConsoleUserId"] {
            assert_eq!(of(name), Some("userId"), "{name}");
        }
        assert_eq!(of("serviceAccountId"), Some("serviceAccountId"));
        for name in [
            "userIds",
            "superuserIdx",
            "externalId",
            "user",
            "policyId",
            "sessionId",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    /// Every kind is listed by a command of this program, with its name among what the list shows.
    #[test]
    fn every_kind_is_listed() {
        for kind in &KINDS {
            let (group, verb) = kind.list;
            let api = catalogue::of_group(group);
            let list = api.find(group, verb).unwrap();
            for member in ["id", kind.name] {
                assert!(
                    list.columns.iter().any(|column| column.path() == member),
                    "{group} {member}"
                );
            }
            if let Some(filter) = kind.filter {
                assert!(list.query_field(filter).is_some(), "{group} {filter}");
            }
        }
    }
}
