use super::*;
use serde_json::json;

fn rule(claim: &str, value: &str, matches: Comparison) -> ClaimRule {
    ClaimRule {
        claim: claim.to_owned(),
        value: value.to_owned(),
        matches,
    }
}

fn exact(claim: &str, value: &str) -> ClaimRule {
    rule(claim, value, Comparison::Exact)
}

fn prefix(claim: &str, value: &str) -> ClaimRule {
    rule(claim, value, Comparison::Prefix)
}

fn claims(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        _ => Object::new(),
    }
}

/// Proves WO-1.
#[test]
fn rules_name_a_workload_an_owner_or_nobody() {
    use Kind::{Github, Gitlab, Kubernetes};
    use Named::{Nobody, Owner, Workload};
    for (kind, rule, expected) in [
        (Github, exact("repository", "acme/app"), Workload),
        (Github, exact("repository_id", "74"), Workload),
        (
            Github,
            exact("sub", "repo:acme/app:ref:refs/heads/main"),
            Workload,
        ),
        (
            Github,
            exact("sub", "repo:acme@1/app@2:environment:prod"),
            Workload,
        ),
        (Github, prefix("sub", "repo:acme/app:"), Workload),
        (Github, prefix("sub", "repo:acme/app:environment:"), Workload),
        (Github, exact("repository_owner", "acme"), Owner),
        (Github, exact("repository_owner_id", "65"), Owner),
        (Github, prefix("repository", "acme/"), Nobody),
        (Github, prefix("sub", "repo:acme/"), Nobody),
        (Github, prefix("sub", "repo:"), Nobody),
        (Github, exact("sub", "repo:acme/app"), Nobody),
        (Github, exact("sub", "repo:acme:ref:refs/heads/a/b"), Nobody),
        (Github, exact("sub", "repo:/app:x"), Nobody),
        (Github, exact("sub", "xrepo:acme/app:x"), Nobody),
        (Github, exact("repository", "app"), Nobody),
        (Github, exact("repository", "acme/app/more"), Nobody),
        (Github, exact("repository", "acme/"), Nobody),
        (Github, exact("repository_id", "7a"), Nobody),
        (Github, exact("ref", "refs/heads/main"), Nobody),
        (Github, exact("project_path", "acme/app"), Nobody),
        (Gitlab, exact("project_path", "acme/app"), Workload),
        (Gitlab, exact("project_path", "acme/team/app"), Workload),
        (Gitlab, exact("project_id", "22"), Workload),
        (
            Gitlab,
            exact("sub", "project_path:acme/app:ref_type:branch:ref:main"),
            Workload,
        ),
        (Gitlab, prefix("sub", "project_path:acme/app:"), Workload),
        (Gitlab, exact("namespace_path", "acme"), Owner),
        (Gitlab, exact("namespace_id", "72"), Owner),
        (Gitlab, prefix("project_path", "acme/"), Nobody),
        (Gitlab, prefix("sub", "project_path:acme/"), Nobody),
        (Gitlab, exact("project_path", "acme"), Nobody),
        (Gitlab, exact("project_path", "acme//app"), Nobody),
        (Gitlab, exact("repository", "acme/app"), Nobody),
        (
            Kubernetes,
            exact("sub", "system:serviceaccount:ci:deploy"),
            Workload,
        ),
        (Kubernetes, prefix("sub", "system:serviceaccount:ci:"), Nobody),
        (Kubernetes, exact("sub", "system:serviceaccount:ci:"), Nobody),
        (
            Kubernetes,
            exact("sub", "system:serviceaccount:ci:deploy:more"),
            Nobody,
        ),
        (Kubernetes, exact("sub", "system:node:one"), Nobody),
        (Kubernetes, exact("repository", "acme/app"), Nobody),
    ] {
        assert_eq!(named(kind, std::slice::from_ref(&rule)), expected, "{rule:?}");
        let narrowed = [exact("environment", "prod"), rule.clone()];
        assert_eq!(named(kind, &narrowed), expected, "{rule:?}");
        assert_eq!(
            check(kind, std::slice::from_ref(&rule), false).is_ok(),
            expected == Workload
        );
        assert_eq!(check(kind, &[rule], true).is_ok(), expected == Owner);
    }
    for kind in Kind::ALL {
        assert_eq!(named(kind, &[]), Nobody);
        assert!(check(kind, &[], false).is_err() && check(kind, &[], true).is_err());
    }
}

#[test]
fn a_rule_is_met_by_what_it_says_and_nothing_else() {
    let said = claims(json!({
        "ref": "refs/heads/release/1", "run_attempt": 1, "protected": true, "groups": ["refs/heads/release/1"],
    }));
    for (rule, is_met) in [
        (exact("ref", "refs/heads/release/1"), true),
        (exact("ref", "refs/heads/release/"), false),
        (exact("ref", "Refs/heads/release/1"), false),
        (exact("ref", "refs/heads/release/1 "), false),
        (prefix("ref", "refs/heads/release/"), true),
        (prefix("ref", "refs/heads/"), true),
        (prefix("ref", "refs/tags/"), false),
        (prefix("ref", "refs/heads/release/1"), false),
        (exact("run_attempt", "1"), false),
        (exact("protected", "true"), false),
        (exact("groups", "refs/heads/release/1"), false),
        (exact("absent", "refs/heads/release/1"), false),
    ] {
        assert_eq!(rule.is_met_by(&said), is_met, "{rule:?}");
    }
    let rules = [exact("ref", "refs/heads/release/1"), exact("actor", "ann")];
    assert_eq!(unmet(&rules, &said), Some(&rules[1]));
    assert_eq!(unmet(&rules[..1], &said), None);
}

#[test]
fn what_could_be_read_in_two_ways_is_no_rule() {
    let with = |rule: ClaimRule| check(Kind::Github, &[exact("repository", "acme/app"), rule], false);
    assert!(with(prefix("ref", "refs/heads/")).is_ok());
    for wrong in [
        exact("ref", "refs/heads/*"),
        prefix("ref", "refs/heads/*"),
        prefix("ref", "refs/heads/release"),
        prefix("ref", "/"),
        exact("repository", "acme/other"),
        exact("aud", "https://a.example"),
        exact("iss", "https://a.example"),
        exact("jti", "one"),
        exact("re f", "x"),
    ] {
        assert!(with(wrong.clone()).is_err(), "{wrong:?}");
    }
}

#[test]
fn what_lets_in_more_than_it_seems_is_said() {
    let codes = |kind, rules: &[ClaimRule], audience| -> Vec<&str> {
        warnings(kind, rules, audience, false)
            .iter()
            .map(|one| one.code)
            .collect()
    };
    let repository = exact("repository", "acme/app");
    let number = exact("repository_id", "74");
    assert_eq!(
        codes(Kind::Github, std::slice::from_ref(&repository), None),
        ["any_ref", "name_only"]
    );
    assert_eq!(
        codes(Kind::Github, &[prefix("sub", "repo:acme/app:")], None),
        ["any_ref", "name_only"]
    );
    assert_eq!(
        codes(
            Kind::Github,
            &[exact("sub", "repo:acme/app:environment:prod")],
            None
        ),
        ["name_only"]
    );
    assert_eq!(
        codes(Kind::Github, std::slice::from_ref(&number), None),
        ["any_ref"]
    );
    assert!(codes(Kind::Github, &[number, exact("ref", "refs/heads/main")], None).is_empty());
    assert_eq!(
        codes(Kind::Github, &[exact("repository_owner", "acme")], Some("x")),
        ["any_ref", "name_only", "whole_owner", "shared_audience"]
    );
    let account = exact("sub", "system:serviceaccount:ci:deploy");
    assert!(codes(Kind::Kubernetes, std::slice::from_ref(&account), None).is_empty());
    let own = warnings(Kind::Kubernetes, &[account], None, true);
    assert_eq!(own.iter().map(|one| one.code).collect::<Vec<_>>(), ["own_keys"]);
}
