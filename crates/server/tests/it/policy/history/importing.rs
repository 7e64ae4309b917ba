//! Bodies of JSON Lines: what is taken, what is refused, what comes twice.

use super::{all_events, assert_all, external, import, line, lines, status};
use crate::support::{App, each};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Proves HS-5.
#[test]
fn a_body_is_recorded_once_under_its_source() {
    each("history_import", |app: Arc<App>| async move {
        let body = lines(&app, 0, 40);
        let first = import(&app, "laptops", body.as_str()).await.ok().clone();
        assert_eq!(
            (
                &first["lines"],
                &first["accepted"],
                &first["refused"],
                &first["duplicate"]
            ),
            (&json!(40), &json!(40), &json!(0), &json!(false))
        );
        assert_eq!(first["refusals"], json!([]));
        let oldest = line(&app, 0, 40)["at"].clone();
        assert_eq!(first["firstEventAt"], oldest);
        // A repeat is answered as the first time; under another name it is another import.
        let mut repeated = first.clone();
        repeated["duplicate"] = true.into();
        assert_eq!(import(&app, "laptops", body.as_str()).await.ok(), &repeated);
        assert_eq!(status(&app).await["events"], 40);
        assert_eq!(
            import(&app, "servers", body.as_str()).await.ok()["duplicate"],
            false
        );
        let known = status(&app).await;
        assert_eq!((&known["events"], &known["chunks"]), (&json!(80), &json!(2)));
        assert_eq!(known["oldestEventAt"], oldest);
        let events = all_events(&app, "&source=laptops").await;
        assert_all(&events, 0..40);
    });
}

/// Proves HS-5.
#[test]
fn equal_bodies_at_once_are_recorded_once() {
    each("history_race", |app: Arc<App>| async move {
        let body = lines(&app, 0, 500);
        let mut race = JoinSet::new();
        for _ in 0..12 {
            let (app, body) = (app.clone(), body.clone());
            race.spawn(async move { import(&app, "race", body).await.ok().clone() });
        }
        let mut answers = race.join_all().await;
        let duplicates = answers
            .iter()
            .filter(|answer| answer["duplicate"] == true)
            .count();
        assert_eq!(duplicates, 11);
        for answer in &mut answers {
            answer["duplicate"] = false.into();
        }
        assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
        assert_all(&all_events(&app, "").await, 0..500);
    });
}

#[test]
fn a_wrong_line_is_counted_and_listed_and_the_rest_is_kept() {
    each("history_wrong_lines", |app: Arc<App>| async move {
        let with = |pointer: &str, value: Value| {
            let mut line = line(&app, 1, 10);
            let (parent, member) = pointer.rsplit_once('/').unwrap();
            line.pointer_mut(parent).unwrap()[member.replace("~1", "/")] = value;
            line.to_string()
        };
        let mut without = line(&app, 1, 10);
        without.as_object_mut().unwrap().remove("at");
        let days = app.now().plus_secs(-400 * 86_400);
        let wrong: Vec<(String, &str)> = vec![
            ("{".into(), ""),
            ("[]".into(), ""),
            ("\"a\"".into(), ""),
            ("{\"at\":1,\"at\":2}".into(), ""),
            (without.to_string(), "/at"),
            (with("/at", json!("yesterday")), "/at"),
            (with("/at", json!(days.plus_ms(-1).to_rfc3339())), "/at"),
            (with("/at", json!(app.now().plus_ms(300_001).to_rfc3339())), "/at"),
            (with("/occasion", json!("lunch")), "/occasion"),
            (with("/id", json!("x".repeat(129))), "/id"),
            (with("/session", json!("")), "/session"),
            (with("/attributes", json!([])), "/attributes"),
            (with("/attributes/tool.id", json!(7)), "/attributes/tool.id"),
            (with("/missing", json!(["no.such"])), "/missing/0"),
            (with("/decision/action", json!("shrug")), "/decision/action"),
            (with("/decision/mode", json!("maybe")), "/decision/mode"),
            // Nobody's yes is told by an import.
            (with("/decision/basis", json!("approved")), "/decision/basis"),
            (with("/shoe~1size", json!(1)), "/shoe~1size"),
        ];
        let right: Vec<String> = vec![
            with("/at", json!(days.to_rfc3339())),
            with("/at", json!(app.now().plus_ms(300_000).to_rfc3339())),
            with("/id", json!("é".repeat(128))),
            with("/session", json!("s".repeat(256))),
            with("/missing", json!(["request.prompt"])),
        ];
        let mut body = format!("\n  {}  \r\n\n", right[0]);
        for (line, _) in &wrong {
            body.push_str(line);
            body.push('\n');
        }
        body.push_str(&right[1..].join("\n"));
        let answer = import(&app, "wrong", body).await.ok().clone();
        assert_eq!(answer["lines"], wrong.len() + right.len());
        assert_eq!(
            (&answer["accepted"], &answer["refused"]),
            (&json!(right.len()), &json!(wrong.len())),
            "{answer:#}"
        );
        let refusals = answer["refusals"].as_array().unwrap();
        for (place, ((_, path), refusal)) in wrong.iter().zip(refusals).enumerate() {
            assert_eq!(
                (&refusal["line"], &refusal["path"]),
                (&json!(place + 4), &json!(path)),
                "{refusal}"
            );
            assert!(!refusal["message"].as_str().unwrap().is_empty());
        }
        assert_eq!(status(&app).await["events"], right.len());
    });
}

#[test]
fn refusals_are_listed_up_to_a_hundred_in_the_order_of_lines() {
    each("history_refusals", |app: Arc<App>| async move {
        // Odd lines are wrong in form, even ones in an attribute: two passes find them.
        let all = (1..=250).map(|number: usize| {
            let mut line = line(&app, number, 10);
            match number % 2 {
                1 => line["occasion"] = 1.into(),
                _ => line["attributes"]["tool.id"] = 1.into(),
            }
            line.to_string()
        });
        let body: Vec<String> = all.collect();
        let answer = import(&app, "refusals", body.join("\n")).await.ok().clone();
        assert_eq!(
            (&answer["accepted"], &answer["refused"]),
            (&json!(0), &json!(250))
        );
        let numbers = answer["refusals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|refusal| refusal["line"].as_u64());
        assert!(numbers.eq((1..=100).map(Some)));
        assert!(answer.get("firstEventAt").is_none());
        // Nothing was recorded, and the body is known all the same.
        assert_eq!(
            import(&app, "refusals", body.join("\n")).await.ok()["duplicate"],
            true
        );
        assert_eq!(status(&app).await["events"], 0);
    });
}

#[test]
fn the_limits_of_a_body_are_exact() {
    each("history_limits", |app: Arc<App>| async move {
        let short = |number: usize| {
            let at = app.now().plus_ms(-i64::try_from(number).unwrap()).to_rfc3339();
            format!(r#"{{"at":"{at}","occasion":"prompt","attributes":{{}}}}"#)
        };
        let body = |count: usize| (0..count).map(short).collect::<Vec<_>>().join("\n");
        assert_eq!(import(&app, "limits", body(5_000)).await.ok()["accepted"], 5_000);
        import(&app, "limits", body(5_001))
            .await
            .refused(400, "invalid_request");
        import(&app, "limits", "\n \n")
            .await
            .refused(400, "invalid_request");
        import(&app, "limits", "").await.refused(400, "invalid_request");
        let long = |bytes: usize| {
            let mut line = line(&app, 0, 10);
            let rest = bytes - line.to_string().len() - r#","request.prompt":"""#.len();
            line["attributes"]["request.prompt"] = "x".repeat(rest).into();
            let line = line.to_string();
            assert_eq!(line.len(), bytes);
            line
        };
        assert_eq!(import(&app, "long", long(65_536)).await.ok()["accepted"], 1);
        assert_eq!(import(&app, "long", long(65_537)).await.ok()["refused"], 1);
        // The whole body: 32 MiB.
        let mut large: Vec<u8> = format!("{}\n", short(0)).into();
        large.resize(32 * 1024 * 1024, b' ');
        assert_eq!(import(&app, "large", large.clone()).await.ok()["accepted"], 1);
        large.push(b' ');
        import(&app, "large", large)
            .await
            .refused(413, "payload_too_large");
    });
}

#[test]
#[expect(clippy::too_many_lines, reason = "one story")]
fn users_are_those_of_the_directory_with_their_groups_of_now() {
    each("history_people", |app: Arc<App>| async move {
        let user = |login: &str, email: &str| json!({ "loginName": login, "email": email });
        let make = |path: &'static str, body: Value| app.write("POST", path, body);
        let id = |reply: &Value| {
            reply
                .get("id")
                .or_else(|| reply["user"].get("id"))
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        };
        let ann = id(make("/directory/users", user("Ann", "ann@acme.test")).await.ok());
        make("/directory/users", user("ben", "shared@acme.test"))
            .await
            .ok();
        let mut other = user("cat", "shared@acme.test");
        other["directoryId"] = "other".into();
        let cat = id(make("/directory/users", other).await.ok());
        let group = make("/directory/groups", json!({ "name": "engineers" })).await;
        let group = group
            .json
            .get("id")
            .or_else(|| group.json["group"].get("id"))
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned();
        let member = format!("/directory/groups/{group}/members/{ann}");
        app.write("PUT", &member, json!({})).await.ok();
        app.write("POST", &format!("/directory/users/{cat}/suspend"), json!({}))
            .await
            .ok();
        let cases: Vec<(Value, Value, Value, Value)> = vec![
            // attributes, then: user, groups, missing
            (
                json!({ "identity.user_id": ann }),
                json!(ann),
                json!([group]),
                json!([]),
            ),
            (
                json!({ "identity.user_id": "aNN" }),
                json!(ann),
                json!([group]),
                json!([]),
            ),
            (
                json!({ "identity.user_id": "ann@acme.test", "identity.group_ids": ["forged"] }),
                json!(ann),
                json!([group]),
                json!([]),
            ),
            // Suspended or not, two have the address; by her id she is herself.
            (
                json!({ "identity.user_id": "shared@acme.test" }),
                json!("shared@acme.test"),
                Value::Null,
                json!(["identity.group_ids"]),
            ),
            (
                json!({ "identity.user_id": cat }),
                json!(cat),
                json!([]),
                json!([]),
            ),
            (
                json!({ "identity.user_id": "cat" }),
                json!(cat),
                json!([]),
                json!([]),
            ),
            (
                json!({ "identity.user_id": "eve", "identity.group_ids": ["sent"] }),
                json!("eve"),
                json!(["sent"]),
                json!([]),
            ),
            (
                json!({ "identity.user_id": "nu\u{0}l" }),
                json!("nu\u{0}l"),
                Value::Null,
                json!(["identity.group_ids"]),
            ),
            (json!({ "device.id": "d1" }), Value::Null, Value::Null, json!([])),
        ];
        let lines: Vec<String> = cases
            .iter()
            .enumerate()
            .map(|(place, (attributes, ..))| {
                let at = app.now().plus_ms(-i64::try_from(place).unwrap()).to_rfc3339();
                json!({ "id": format!("{place}"), "at": at, "occasion": "prompt", "attributes": attributes })
                    .to_string()
            })
            .collect();
        assert_eq!(import(&app, "people", lines.join("\n")).await.ok()["refused"], 0);
        let events = all_events(&app, "").await;
        assert_eq!(external(&events), ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
        for (event, (_, user, groups, missing)) in events.iter().zip(&cases) {
            let whole = app
                .get(&format!(
                    "/policies/history/{}",
                    event["eventId"].as_str().unwrap()
                ))
                .await;
            let attributes = &whole.ok()["attributes"];
            assert_eq!(
                (
                    &attributes["identity.user_id"],
                    &attributes["identity.group_ids"],
                    &whole.json["missing"]
                ),
                (user, groups, missing),
                "{event}"
            );
        }
    });
}
