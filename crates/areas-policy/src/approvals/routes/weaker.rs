//! What a change of the routes lets pass more easily than before.
//!
//! INVARIANT AP-14: a route fits whatever spelling of a tool a policy fits; and no change takes a route away, has fewer or other people
//! decide by it, has it fit something else, or puts another one before it that could be weaker, where that was not confirmed.
//!
//! Whether one set of people is stricter than another nobody can say, so that other approvers count as weaker. Deadlines do not: what
//! nobody decided is not approved by any of them.

use super::model::Route;
use std::collections::BTreeSet;

/// Returns a sentence for each route that asks for less than it did; nothing where none does. `falling` are the names of routes that want
/// more people now than they could reach: all who may decide would, so that a raised quorum has others decide.
///
/// Keeps AP-14.
pub fn weaker(was: &[Route], is: &[Route], falling: &BTreeSet<String>) -> Vec<String> {
    let falls = |route: &Route| falling.contains(route.name.as_str());
    let mut found = Vec::new();
    for (place, old) in was.iter().enumerate() {
        let name = old.name.as_str();
        let Some(now_at) = is.iter().position(|route| route.name == old.name) else {
            found.push(format!("{name} is taken away"));
            continue;
        };
        let new = &is[now_at];
        if new.quorum() < old.quorum() {
            found.push(format!(
                "{name} wants {} instead of {}",
                new.quorum(),
                old.quorum()
            ));
        }
        // Where it fell before as well nobody knows here: who says it once more has seen it.
        if new.approvers != old.approvers || (new.quorum() > old.quorum() && falls(new)) {
            found.push(format!("others decide by {name}"));
        }
        if !new.fits_as(old) {
            found.push(format!("{name} fits something else"));
        }
        let stood_before = |route: &Route| was[..place].iter().any(|earlier| earlier.name == route.name);
        let is_weaker = |route: &&Route| {
            let has_others = route.approvers != old.approvers || falls(route);
            route.meets(old) && (route.quorum() < old.quorum() || has_others)
        };
        // One that stood there already and became another is named by itself.
        let before = is[..now_at]
            .iter()
            .filter(|route| !stood_before(route))
            .find(is_weaker);
        if let Some(before) = before {
            found.push(format!("{} comes before {name}", before.name.as_str()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn route(name: &str, change: &Value) -> Route {
        let mut route = json!({ "name": name, "match": { "tool": name }, "approvers": { "roles": ["admin"] }, "quorum": 2,
            "deadlineSeconds": 60, "onDeadline": "deny" });
        route
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        serde_json::from_value(route).unwrap()
    }

    /// Proves AP-14.
    #[test]
    fn what_asks_for_less_is_said_and_what_asks_for_more_is_not() {
        let (bash, every) = (
            route("bash", &json!({})),
            route("every", &json!({ "match": {}, "quorum": 1 })),
        );
        let of = |name: &str, change: Value| route(name, &change);
        let said = |was: &[&Route], is: &[&Route]| {
            let list = |routes: &[&Route]| routes.iter().copied().cloned().collect::<Vec<_>>();
            weaker(&list(was), &list(is), &BTreeSet::new())
        };
        let nothing: [String; 0] = [];
        // What is added where nothing was, behind the others, or stricter before them.
        assert_eq!(said(&[], &[&bash, &every]), nothing);
        assert_eq!(said(&[&bash], &[&bash, &every]), nothing);
        assert_eq!(
            said(
                &[&bash],
                &[&of("more", json!({ "match": {}, "quorum": 3 })), &bash]
            ),
            nothing
        );
        assert_eq!(
            said(
                &[&bash],
                &[&of(
                    "bash",
                    json!({ "quorum": 3, "onDeadline": "expire", "deadlineSeconds": 61 })
                )]
            ),
            nothing
        );
        // Before it, about something else.
        let other = of("other", json!({ "quorum": 1 }));
        assert_eq!(said(&[&bash], &[&other, &bash]), nothing);
        let server = of(
            "server",
            json!({ "match": { "kind": "mcp_server" }, "quorum": 1 }),
        );
        let call = of(
            "bash",
            json!({ "match": { "kind": "tool_call", "tool": "bash" } }),
        );
        assert_eq!(said(&[&call], &[&server, &call]), nothing);
        // What stood before it stands there still.
        assert_eq!(said(&[&every, &bash], &[&every, &bash]), nothing);
        // Each way to ask for less.
        assert_eq!(said(&[&bash], &[]), ["bash is taken away"]);
        assert_eq!(
            said(&[&bash], &[&of("sh", json!({ "match": { "tool": "bash" } }))]),
            ["bash is taken away"]
        );
        assert_eq!(
            said(&[&bash], &[&of("bash", json!({ "quorum": 1 }))]),
            ["bash wants 1 instead of 2"]
        );
        let others = of("bash", json!({ "approvers": { "users": ["usr_1"] } }));
        assert_eq!(said(&[&bash], &[&others]), ["others decide by bash"]);
        assert_eq!(said(&[&others], &[&bash]), ["others decide by bash"]);
        for fits in [
            json!({ "tool": "zsh" }),
            json!({ "tool": "bash", "requesterGroups": ["grp_1"] }),
            json!({}),
        ] {
            assert_eq!(
                said(&[&bash], &[&of("bash", json!({ "match": fits }))]),
                ["bash fits something else"]
            );
        }
        // The order, whatever spelling the weaker one has.
        assert_eq!(
            said(&[&bash, &every], &[&every, &bash]),
            ["every comes before bash"]
        );
        for tool in ["BASH", "Ba*", "*", "bash*"] {
            let first = of("first", json!({ "match": { "tool": tool }, "quorum": 1 }));
            assert_eq!(
                said(&[&bash], &[&first, &bash]),
                ["first comes before bash"],
                "{tool}"
            );
        }
        let theirs = of(
            "theirs",
            json!({ "match": { "tool": "bash" }, "quorum": 5, "approvers": { "users": ["usr_1"] } }),
        );
        assert_eq!(said(&[&bash], &[&theirs, &bash]), ["theirs comes before bash"]);
    }

    /// Proves AP-14.
    #[test]
    fn a_route_that_wants_more_than_it_can_reach_has_others_decide() {
        let of = |quorum: i64| {
            route(
                "bash",
                &json!({ "approvers": { "users": ["usr_1", "usr_2"] }, "quorum": quorum }),
            )
        };
        let first = route(
            "first",
            &json!({ "match": {}, "approvers": { "users": ["usr_1", "usr_2"] }, "quorum": 5 }),
        );
        let falling = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<BTreeSet<_>>()
        };
        let (two, three) = (of(2), of(3));
        let said = |was: &Route, is: &[&Route], names: &[&str]| {
            let is: Vec<Route> = is.iter().copied().cloned().collect();
            weaker(std::slice::from_ref(was), &is, &falling(names))
        };
        assert_eq!(said(&two, &[&three], &["bash"]), ["others decide by bash"]);
        assert_eq!(
            said(&two, &[&first, &two], &["first"]),
            ["first comes before bash"]
        );
        let nothing: [String; 0] = [];
        assert_eq!(said(&two, &[&three], &[]), nothing);
        assert_eq!(said(&two, &[&first, &two], &[]), nothing);
        // One that fell before and is as it was; one behind it.
        assert_eq!(said(&three, &[&three], &["bash"]), nothing);
        assert_eq!(said(&two, &[&two, &first], &["first"]), nothing);
    }
}
