//! Scenarios of the area.

use super::Settings;
use crate::audit::testing::on_every_store;
use provost_kernel::auth::OrganizationId;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const GET: &str = "getHeadlessAutomationSettings";
const PUT: &str = "updateHeadlessAutomationSettings";
const PATCH: &str = "patchHeadlessAutomationSettings";

fn factory() -> Value {
    json!({
        "approvals": { "requireFor": [] },
        "tokens": {
            "secretReplaySeconds": 86_400,
            "defaultGraceSeconds": 0,
            "maxLifetimeSeconds": 31_536_000,
            "revokeFamilyOnReuse": false,
        },
        "managedConfig": { "requirePreview": false },
        "llmGateway": { "enabled": true },
        "policies": { "maxBacktestDays": 90 },
        "history": { "countImports": false },
        "retention": { "historyDays": 400 },
        "directory": { "complete": false, "maxRemovalPercent": 10, "defaultRole": "none" },
        "oauth": { "refreshLeewaySeconds": 600 },
        "fleet": {
            "enrolment": { "requireApproval": false, "selfEnrol": "off" },
            "hooks": { "judging": "off", "mode": "monitor", "deadlineMs": 400, "onUnknown": "by_mode", "offlineDays": 7, "record": "all" },
            "retireAfterDays": 90,
            "silentAfterHours": 72,
            "privacy": {
                "people": "directory", "hostNames": "show", "projectNames": "hide", "prompts": "off", "toolArguments": "none",
            },
            "quarantineAction": "block",
        },
    })
}

#[test]
fn what_is_put_is_what_is_got() {
    on_every_store("settings_round_trip", |world| {
        assert_eq!(world.get("auditor", GET, &[], "").json(), factory());
        let wanted = json!({
            "approvals": { "requireFor": [] },
            "tokens": {
                "secretReplaySeconds": 60,
                "defaultGraceSeconds": 604_800,
                "maxLifetimeSeconds": 3_600,
                "revokeFamilyOnReuse": true,
            },
            "managedConfig": { "requirePreview": true },
            "llmGateway": { "enabled": false },
            "policies": { "maxBacktestDays": 30 },
            "history": { "countImports": true },
            "retention": { "historyDays": 400 },
            "directory": { "complete": true, "maxRemovalPercent": 25, "defaultRole": "member" },
            "oauth": { "refreshLeewaySeconds": 0 },
            "fleet": {
                "enrolment": { "requireApproval": true, "selfEnrol": "signed_in" },
                "hooks": { "judging": "on", "mode": "enforce", "deadlineMs": 50, "onUnknown": "block", "offlineDays": 30, "record": "counted" },
                "retireAfterDays": 0,
                "silentAfterHours": 24,
                "privacy": {
                    "people": "pseudonymous", "hostNames": "hide", "projectNames": "hide", "prompts": "full", "toolArguments": "full",
                },
                "quarantineAction": "monitor",
            },
        });
        let mut confirmed = wanted.clone();
        confirmed["confirm"] = true.into();
        let put = world.put("admin", PUT, &confirmed).json();
        let mut expected = wanted.clone();
        expected["updatedAt"] = "2026-11-20T03:15:00.000Z".into();
        assert_eq!(put, expected);
        assert_eq!(world.get("operator", GET, &[], "").json(), expected);

        let changed = world
            .put("admin", PATCH, &json!({ "tokens": { "defaultGraceSeconds": 5 } }))
            .json();
        expected["tokens"]["defaultGraceSeconds"] = 5.into();
        expected["updatedAt"] = "2026-11-20T03:15:00.001Z".into();
        assert_eq!(changed, expected, "what is left out stays, and time moves on");
    });
}

/// Proves SE-1.
#[test]
fn values_outside_their_bounds_are_refused_and_nothing_changes() {
    on_every_store("settings_bounds", |world| {
        for (member, low, high) in [
            ("secretReplaySeconds", 0, 86_400),
            ("defaultGraceSeconds", 0, 604_800),
            ("maxLifetimeSeconds", 3_600, 31_536_000),
        ] {
            for good in [low, high] {
                assert_eq!(
                    world
                        .put("admin", PATCH, &json!({ "tokens": { member: good } }))
                        .status,
                    200
                );
            }
            for bad in [
                json!(low - 1),
                json!(high + 1),
                json!(null),
                json!("60"),
                json!(1.5),
            ] {
                let refused = world.put("admin", PUT, &json!({ "tokens": { member: bad } }));
                assert_eq!(refused.status, 400, "{member} {bad}");
                let path = &refused.json()["errors"][0]["path"];
                assert_eq!(path, &json!(format!("/tokens/{member}")), "{bad}");
            }
        }
        let unchanged = world.get("admin", GET, &[], "").json();
        assert_eq!(unchanged["tokens"]["maxLifetimeSeconds"], 31_536_000);
        for (seconds, status) in [(0, 200), (1_800, 200), (-1, 400), (1_801, 400)] {
            let wanted = json!({ "oauth": { "refreshLeewaySeconds": seconds } });
            assert_eq!(world.put("admin", PATCH, &wanted).status, status, "{seconds}");
        }
        for (hours, status) in [(24, 200), (720, 200), (23, 400), (721, 400)] {
            let wanted = json!({ "fleet": { "silentAfterHours": hours } });
            assert_eq!(world.put("admin", PATCH, &wanted).status, status, "{hours}");
        }
        for (days, status) in [(730, 200), (0, 200), (29, 400), (1, 400), (731, 400), (-1, 400)] {
            let wanted = json!({ "fleet": { "retireAfterDays": days } });
            assert_eq!(world.put("admin", PATCH, &wanted).status, status, "{days}");
        }
        for (group, member) in [("directory", "defaultRole"), ("fleet", "selfEnrol")] {
            for bad in [json!("viewer"), json!("admin"), json!(null), json!("")] {
                let value = if group == "fleet" {
                    json!({ "enrolment": { member: bad } })
                } else {
                    json!({ member: bad })
                };
                assert_eq!(
                    world.put("admin", PATCH, &json!({ group: value })).status,
                    400,
                    "{bad}"
                );
            }
        }
        let unknown = json!({ "retention": { "auditDays": 400 } });
        assert_eq!(
            world.put("admin", PUT, &unknown).json()["errors"][0]["path"],
            "/retention/auditDays"
        );
    });
}

/// Proves SE-1.
#[test]
fn values_of_hooks_outside_their_bounds_are_refused() {
    on_every_store("settings_hooks_bounds", |world| {
        for (member, good, bad) in [
            (
                "deadlineMs",
                [json!(50), json!(2_000)],
                [json!(49), json!(2_001), json!("400"), json!(null)],
            ),
            (
                "offlineDays",
                [json!(1), json!(30)],
                [json!(0), json!(31), json!(-1), json!(1.5)],
            ),
            (
                "mode",
                [json!("enforce"), json!("enforce")],
                [json!("off"), json!(""), json!(null), json!(true)],
            ),
            (
                "record",
                [json!("counted"), json!("all")],
                [json!("none"), json!(""), json!(null), json!(true)],
            ),
            (
                "onUnknown",
                [json!("by_mode"), json!("block")],
                [json!("ask"), json!(""), json!(null), json!(0)],
            ),
        ] {
            let set = |value: &Value| {
                world.put(
                    "admin",
                    PATCH,
                    &json!({ "fleet": { "hooks": { member: value } } }),
                )
            };
            for value in &good {
                assert_eq!(set(value).status, 200, "{member} {value}");
            }
            for value in &bad {
                let refused = set(value);
                assert_eq!(refused.status, 400, "{member} {value}");
                let path = &refused.json()["errors"][0]["path"];
                assert_eq!(path, &json!(format!("/fleet/hooks/{member}")), "{value}");
            }
        }
    });
}

/// Proves SE-8.
#[test]
fn hooks_guard_less_only_where_that_was_confirmed() {
    on_every_store("settings_hooks", |world| {
        let set = |hooks: Value, confirm: bool| {
            let mut body = json!({ "fleet": { "hooks": hooks } });
            if confirm {
                body["confirm"] = true.into();
            }
            world.put("admin", PATCH, &body)
        };
        for weaker in [
            json!({ "mode": "enforce", "onUnknown": "allow" }),
            json!({ "judging": "on" }),
        ] {
            let refused = set(weaker.clone(), false);
            assert_eq!(
                (refused.status, &refused.json()["code"]),
                (400, &json!("confirmation_required")),
                "{weaker}"
            );
        }
        assert_eq!(set(json!({ "judging": "on" }), true).status, 200);
        for weaker in [json!({ "offlineDays": 8 }), json!({ "record": "counted" })] {
            assert_eq!(set(weaker.clone(), false).status, 400, "{weaker}");
        }
        assert_eq!(set(json!({ "judging": "off" }), false).status, 200);
        assert_eq!(set(json!({ "mode": "enforce" }), false).status, 200);
        for weaker in [json!({ "mode": "monitor" }), json!({ "onUnknown": "allow" })] {
            let refused = set(weaker.clone(), false);
            assert_eq!(
                (refused.status, &refused.json()["code"]),
                (400, &json!("confirmation_required")),
                "{weaker}"
            );
            let still = world.get("admin", GET, &[], "").json()["fleet"]["hooks"].clone();
            assert_eq!(
                (&still["mode"], &still["onUnknown"]),
                (&json!("enforce"), &json!("by_mode"))
            );
        }
        assert_eq!(set(json!({ "onUnknown": "allow" }), true).status, 200);
        assert_eq!(set(json!({ "mode": "monitor" }), true).status, 200);
    });
}

/// Proves SE-8.
#[test]
fn quarantined_devices_let_calls_pass_only_where_that_was_confirmed() {
    on_every_store("settings_quarantine", |world| {
        let set = |word: Value, confirm: bool| {
            let mut body = json!({ "fleet": { "quarantineAction": word } });
            if confirm {
                body["confirm"] = true.into();
            }
            world.put("admin", PATCH, &body)
        };
        let now = || world.get("admin", GET, &[], "").json()["fleet"]["quarantineAction"].clone();
        for bad in [json!("off"), json!("allow"), json!(""), json!(null), json!(true)] {
            let refused = set(bad.clone(), true).json();
            assert_eq!(refused["errors"][0]["path"], "/fleet/quarantineAction", "{bad}");
        }
        assert_eq!(set(json!("block"), false).status, 200);
        let refused = set(json!("monitor"), false);
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (400, &json!("confirmation_required"))
        );
        assert_eq!(now(), "block");
        assert_eq!(set(json!("monitor"), true).status, 200);
        assert_eq!(now(), "monitor");
        // What is stricter needs no word, nor does what stays.
        assert_eq!(set(json!("monitor"), false).status, 200);
        assert_eq!(set(json!("block"), false).status, 200);
        assert_eq!(now(), "block");
    });
}

/// Proves SE-3.
#[test]
fn every_changed_member_is_in_the_audit_entry() {
    on_every_store("settings_audit", |world| {
        world.put(
            "admin",
            PUT,
            &json!({ "tokens": { "defaultGraceSeconds": 5 }, "llmGateway": { "enabled": false } }),
        );
        let back = json!({ "tokens": { "defaultGraceSeconds": 0 }, "llmGateway": { "enabled": false } });
        world.put("admin", PUT, &back);
        let log = world
            .get("admin", "listHeadlessAuditEvents", &[], &format!("action={PUT}"))
            .json();
        let entry = |place: usize| &log["events"][place];
        assert_eq!(
            entry(0)["target"],
            json!({ "type": "automation_settings", "id": "acme" })
        );
        assert_eq!(entry(0)["reason"], "because");
        assert_eq!(
            entry(0)["changes"],
            json!([{ "path": "/tokens/defaultGraceSeconds", "before": 5, "after": 0 }])
        );
        assert_eq!(
            entry(1)["changes"],
            json!([
                { "path": "/tokens/defaultGraceSeconds", "before": 0, "after": 5 },
                { "path": "/llmGateway/enabled", "before": true, "after": false },
            ])
        );
    });
}

#[test]
fn reading_the_settings_is_recorded_and_writing_them_is_for_admins() {
    on_every_store("settings_rights", |world| {
        assert_eq!(world.get("viewer", GET, &[], "").json()["code"], "role_forbidden");
        assert_eq!(
            world.get("narrow", GET, &[], "").json()["code"],
            "insufficient_scope"
        );
        for who in ["operator", "auditor"] {
            assert_eq!(world.put(who, PUT, &json!({})).json()["code"], "role_forbidden");
        }
        assert_eq!(world.get("auditor", GET, &[], "").status, 200);
        world.settle();
        let log = world
            .get("admin", "listHeadlessAuditEvents", &[], &format!("action={GET}"))
            .json();
        let entries = log["events"].as_array().unwrap();
        let seen: Vec<_> = entries
            .iter()
            .map(|e| (&e["actor"]["id"], &e["outcome"]["decision"]))
            .collect();
        let (auditor, narrow, viewer) = (json!("auditor"), json!("narrow"), json!("viewer"));
        let (allowed, denied) = (json!("allowed"), json!("denied"));
        assert_eq!(
            seen,
            [(&auditor, &allowed), (&narrow, &denied), (&viewer, &denied)]
        );
    });
}

#[test]
fn another_area_loads_the_settings_in_its_own_transaction() {
    on_every_store("settings_load", |world| {
        world.put(
            "admin",
            PUT,
            &json!({ "tokens": { "maxLifetimeSeconds": 7_200 } }),
        );
        let seen = Arc::new(Mutex::new(Vec::new()));
        for organization in ["acme", "globex"] {
            let sink = seen.clone();
            let load = world
                .kernel
                .system(OrganizationId::parse(organization).unwrap(), None, move |ctx| {
                    let settings = super::load(ctx)?;
                    sink.lock().unwrap().push(settings);
                    Ok(())
                });
            world.run(load).unwrap();
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0].tokens.max_lifetime_seconds, 7_200);
        assert_eq!(seen[1], Settings::default());
    });
}
