//! How skills on devices stand beside the registry of their organization, and who is told.

use super::inventory::held;
use crate::areas::fleet::Machine;
use crate::areas::inventory::{report, section, server, skill as of_hex};
use crate::areas::skills::skill;
use crate::support::{App, each, fresh_key};
use provost_inventory::wire::Report;
use provost_inventory::{InventoryKey, Platform, scan};
use provost_kernel::{OperationContext, params};
use provost_skill_package::Package;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const ASSETS: &str = "/inventory/assets";
/// As many skills as an organization may know.
const MOST: i64 = 50_000;
/// Where among them one is called like a skill of the registry: behind as many names as one page compares.
const NAMED: i64 = MOST - 1_500;

provost_kernel::statements! {
    /// Skills of an organization that is full, the oldest of which has a digest that is given.
    FILL = "INSERT INTO inventory_assets (organization_id, id, seq, kind, key, name, found_on, first_seen_at, last_seen_at) WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST(?3 AS BIGINT)) SELECT CAST(?1 AS TEXT), 'ast_' || CAST(i AS TEXT), i, 'skill', CASE WHEN i = 1 THEN CAST(?5 AS TEXT) ELSE 'sha256:' || CAST(i AS TEXT) END, CASE WHEN i = CAST(?4 AS BIGINT) THEN 'reading' ELSE 'own' END, 'dev_other', CAST(?2 AS BIGINT), CAST(?2 AS BIGINT) FROM n";
}

fn package(content: &[u8]) -> Package {
    Package::from_archive("application/gzip", content).unwrap()
}

/// A skill as a device reports it.
fn found(name: &str, digest: Option<&str>) -> Value {
    let mut found = of_hex(name, "a");
    match digest {
        Some(digest) => found["digest"] = json!(digest),
        None => {
            found.as_object_mut().unwrap().remove("digest");
        }
    }
    found
}

/// Returns name and standing of each asset of a list.
fn standings(listed: &Value) -> BTreeSet<(String, String)> {
    let text = |one: &Value, member: &str| one[member].as_str().unwrap_or("-").to_owned();
    let assets = listed["assets"].as_array().unwrap();
    assets
        .iter()
        .map(|one| (text(one, "name"), text(one, "standing")))
        .collect()
}

async fn listed(app: &App, query: &str) -> BTreeSet<(String, String)> {
    standings(app.get(&format!("{ASSETS}{query}")).await.ok())
}

fn these(expected: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    let owned = |(name, standing): &(&str, &str)| ((*name).to_owned(), (*standing).to_owned());
    expected.iter().map(owned).collect()
}

async fn withdraw(app: &App, reference: &str) {
    let path = format!("/skill-registry/{reference}/withdraw");
    app.write("POST", &path, json!({ "confirm": true })).await.ok();
}

/// Scans a home, and has a machine report what is found.
async fn scanned(app: &App, laptop: &Machine, root: &Path) {
    let machine = provost_inventory::Machine {
        root,
        home: &root.join("home/ada"),
        platform: Platform::Linux,
        stop: &|| false,
    };
    let found = scan(&machine, &InventoryKey::new(&[7; 32])).unwrap();
    let sent = Report::of(fresh_key(), (app.now(), app.now()), &[found], &BTreeMap::new());
    laptop
        .report(app, serde_json::to_value(&sent).unwrap())
        .await
        .ok();
}

/// Proves IN-14.
#[test]
fn a_laptop_shows_which_of_its_skills_are_versions_of_the_registry() {
    each("skills_scanned", |app: Arc<App>| async move {
        let root =
            std::env::temp_dir().join(format!("provost-skills-{}-{}", std::process::id(), fresh_key()));
        let home = root.join("home/ada");
        let (claude, cursor) = (home.join(".claude/skills"), home.join(".cursor/skills"));
        for folder in [&claude, &cursor] {
            fs::create_dir_all(folder).unwrap();
        }
        let root = root.canonicalize().unwrap();
        let reading = app.skill("reading").await;
        let first = package(&skill("reading", "first"));
        first.unpack(&claude.join("reading")).unwrap();
        first.unpack(&cursor.join("Reading")).unwrap();
        fs::write(cursor.join("Reading/notes/more.md"), "another").unwrap();
        first.unpack(&claude.join("mine")).unwrap();
        fs::write(claude.join("mine/more.md"), "mine").unwrap();
        first.unpack(&claude.join("linked")).unwrap();
        std::os::unix::fs::symlink("SKILL.md", claude.join("linked/link")).unwrap();
        // An empty folder is no skill, were it called like one.
        fs::create_dir_all(cursor.join("reading")).unwrap();
        let laptop = Machine::new(&app).await;
        scanned(&app, &laptop, &root).await;
        let all = |reading: &'static str| {
            these(&[
                ("reading", reading),
                ("Reading", "modified"),
                ("mine", "unregistered"),
                ("linked", "unknown"),
            ])
        };
        assert_eq!(listed(&app, "").await, all("registered"));
        let observed = async || {
            let held = held(&app, &laptop).await;
            let observations = held["observations"].as_array().unwrap().clone();
            let stand = |one: &Value| {
                let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
                (text(&one["found"]["name"]), text(&one["standing"]))
            };
            observations.iter().map(stand).collect::<BTreeSet<_>>()
        };
        assert_eq!(observed().await, all("registered"));
        withdraw(&app, &reading).await;
        assert_eq!(listed(&app, "").await, all("withdrawn"));
        assert_eq!(observed().await, all("withdrawn"));
        assert_eq!(
            listed(&app, "?standing=withdrawn").await,
            these(&[("reading", "withdrawn")])
        );
        fs::remove_dir_all(&root).unwrap();
        app.kernel.stop().await;
    });
}

/// Proves IN-14.
#[test]
fn neither_a_name_nor_another_organization_nor_another_item_makes_a_skill_registered() {
    each("skills_spelled", |app: Arc<App>| async move {
        let content = skill("reading", "first");
        let digest = package(&content).manifest().digest.clone();
        let other = format!("sha256:{}", "b".repeat(64));
        let (organization, admin) = app.other_organization("Stark").await;
        let there = app.view_of(organization, admin);
        there.publish("", content.clone()).await.ok();
        let laptop = Machine::new(&app).await;
        let nothing = format!("sha256:{}", provost_policy::sha256_hex(b"provost-skill 1\n"));
        let mut all = vec![
            found("another", Some(&digest)),
            found("READING", Some(&other)),
            // A letter of another alphabet that looks like one of these.
            found("r\u{435}ading", Some(&format!("sha256:{}", "c".repeat(64)))),
            found("empty", Some(&nothing)),
            found("reading", None),
            json!({ "kind": "extension", "place": of_hex("x", "a")["place"], "name": "reading", "enabled": true }),
        ];
        laptop.has(&app, "ada", &json!(all)).await.ok();
        // The registry of this organization is empty: what another one publishes is nothing to it.
        let as_it_is = |another, capital| {
            these(&[
                ("another", another),
                ("READING", capital),
                ("r\u{435}ading", "unregistered"),
                ("empty", "unregistered"),
                ("reading", "unknown"),
                ("reading", "-"),
            ])
        };
        assert_eq!(listed(&app, "").await, as_it_is("unregistered", "unregistered"));
        let published = app.publish("", content.clone()).await.ok().clone();
        assert_eq!(listed(&app, "").await, as_it_is("registered", "modified"));
        // The same files as another skill, and in another version of the same one.
        let twin = app
            .publish("?namespace=%40team", content.clone())
            .await
            .ok()
            .clone();
        let again = app.publish("?version=9.0.0", content).await.ok().clone();
        assert_eq!(again["version"]["digest"], json!(digest));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        withdraw(&app, &text(&twin["item"]["id"])).await;
        assert_eq!(listed(&app, "").await, as_it_is("withdrawn", "modified"));
        withdraw(
            &app,
            &format!("reading@{}", text(&published["version"]["version"])),
        )
        .await;
        assert_eq!(listed(&app, "").await, as_it_is("withdrawn", "modified"));
        // A later version is none of these files.
        app.publish("?version=9.1.0", skill("reading", "second"))
            .await
            .ok();
        all[0] = found(
            "another",
            Some(&package(&skill("reading", "second")).manifest().digest),
        );
        laptop.has(&app, "ada", &json!(all)).await.ok();
        assert_eq!(
            listed(&app, "?standing=registered").await,
            these(&[("another", "registered")])
        );
        assert_eq!(
            listed(&app, "?standing=withdrawn").await,
            these(&[("another", "withdrawn")]),
            "what no device has any more is listed as before"
        );
        assert_eq!(
            listed(&app, "?standing=unknown").await,
            these(&[("reading", "unknown")])
        );
        assert_eq!(
            listed(&app, "?standing=modified&kind=extension").await,
            these(&[])
        );
        assert_eq!(
            standings(there.get(ASSETS).await.ok()),
            these(&[]),
            "nothing of this is another organization's"
        );
        app.kernel.stop().await;
    });
}

/// Proves IN-14.
#[test]
fn one_version_that_is_withdrawn_is_enough_while_its_skill_is_offered() {
    each("skills_version", |app: Arc<App>| async move {
        let published = app.publish("", skill("reading", "first")).await.ok().clone();
        app.publish("", skill("reading", "second")).await.ok();
        let laptop = Machine::new(&app).await;
        let of = |body: &str| package(&skill("reading", body)).manifest().digest.clone();
        let both = json!([
            found("first", Some(&of("first"))),
            found("second", Some(&of("second")))
        ]);
        laptop.has(&app, "ada", &both).await.ok();
        let version = published["version"]["version"].as_str().unwrap();
        withdraw(&app, &format!("reading@{version}")).await;
        assert_eq!(
            listed(&app, "").await,
            these(&[("first", "withdrawn"), ("second", "registered")])
        );
        app.kernel.stop().await;
    });
}

/// Proves IN-14.
#[test]
fn who_may_not_read_the_registry_learns_nothing_of_it_by_an_inventory() {
    each("skills_hidden", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let digest = package(&skill("reading", "first")).manifest().digest.clone();
        let found = json!([
            found("reading", Some(&digest)),
            found("own", Some(&format!("sha256:{}", "d".repeat(64)))),
            server("files", "npm:files", false),
        ]);
        laptop.has(&app, "ada", &found).await.ok();
        let (_, viewer) = app.account("viewer", "viewer", &[]).await;
        let (_, narrow) = app.account("narrow", "operator", &["inventory:read"]).await;
        let (_, reader) = app
            .account("reader", "auditor", &["inventory:read", "registry:read"])
            .await;
        let get = async |by: &str, path: &str| app.request("GET", path).token(by).send().await;
        let device = format!("/devices/{}/inventory", laptop.id);
        let before = [
            get(&viewer, ASSETS).await.ok().clone(),
            get(&narrow, ASSETS).await.ok().clone(),
            get(&narrow, &device).await.ok()["observations"].clone(),
        ];
        app.skill("reading").await;
        app.skill("own").await;
        let after = [
            get(&viewer, ASSETS).await.ok().clone(),
            get(&narrow, ASSETS).await.ok().clone(),
            get(&narrow, &device).await.ok()["observations"].clone(),
        ];
        assert_eq!(before, after, "an answer changed with the registry");
        let of_kind = |kind: &str| {
            let all = after[2].as_array().unwrap();
            let one = all.iter().find(|one| one["found"]["kind"] == kind);
            one.unwrap()["standing"].clone()
        };
        assert_eq!(
            (of_kind("skill"), of_kind("mcp_server")),
            (Value::Null, json!("shadow"))
        );
        for standing in ["registered", "modified", "unregistered", "withdrawn", "unknown"] {
            let path = format!("{ASSETS}?standing={standing}");
            get(&viewer, &path).await.refused(403, "role_forbidden");
            let refused = get(&narrow, &path).await;
            refused.refused(403, "insufficient_scope");
            assert!(refused.text().contains("registry:read"), "{}", refused.text());
        }
        let seen = standings(get(&reader, ASSETS).await.ok());
        assert_eq!(seen, these(&[("reading", "registered"), ("own", "modified")]));
        app.kernel.stop().await;
    });
}

/// Proves IN-14.
#[test]
fn a_list_by_standing_ends_where_the_skills_do_and_reads_no_more_than_its_part() {
    each("skills_pages", |app: Arc<App>| async move {
        let digest = package(&skill("reading", "first")).manifest().digest.clone();
        app.skill("reading").await;
        let oldest = digest.clone();
        let run = move |ctx: &mut OperationContext<'_>| {
            let (org, now) = (ctx.org(), ctx.now());
            ctx.execute(&FILL, params![org, now, MOST, NAMED, oldest.as_str()])
                .map(|_| ())
        };
        app.kernel
            .system(app.org(), Some("test.filled"), run)
            .await
            .unwrap();
        // Each of these looks through all of them, in the time that a unit has.
        let registered = app
            .get(&format!("{ASSETS}?standing=registered"))
            .await
            .ok()
            .clone();
        assert_eq!(registered["assets"][0]["key"], json!(digest));
        assert_eq!(registered.get("nextCursor"), None);
        for standing in ["withdrawn", "unknown"] {
            let none = app
                .get(&format!("{ASSETS}?standing={standing}"))
                .await
                .ok()
                .clone();
            assert_eq!((&none["assets"], none.get("nextCursor")), (&json!([]), None));
        }
        // What its name decides is looked for page by page, and no page leaves one out.
        let path = format!("{ASSETS}?standing=modified&limit=5");
        let first = app.get(&path).await.ok().clone();
        assert_eq!(first["assets"], json!([]));
        let cursor = first["nextCursor"].as_str().unwrap();
        let second = app.get(&format!("{path}&cursor={cursor}")).await.ok().clone();
        assert_eq!(second["assets"][0]["id"], json!(format!("ast_{NAMED}")));
        assert_eq!(second["assets"].as_array().unwrap().len(), 1);
        let other = format!("{ASSETS}?standing=unregistered&cursor={cursor}");
        app.get(&other).await.refused(400, "invalid_request");
        let (mut seen, mut next) = (0, String::new());
        for _ in 0..3 {
            let page = format!("{ASSETS}?standing=unregistered&limit=100{next}");
            let page = app.get(&page).await.ok().clone();
            let assets = page["assets"].as_array().unwrap();
            assert_eq!(assets[0]["id"], json!(format!("ast_{}", MOST - seen)));
            seen += i64::try_from(assets.len()).unwrap();
            next = format!("&cursor={}", page["nextCursor"].as_str().unwrap());
        }
        assert_eq!(seen, 300);
        app.kernel.stop().await;
    });
}

/// An agent of before says of a skill what it said: the digest, or none.
#[test]
fn a_section_of_skills_alone_is_taken_as_before() {
    each("skills_before", |app: Arc<App>| async move {
        let laptop = Machine::new(&app).await;
        let one = section("ada", &json!([found("old", None)]), true);
        let answer = laptop
            .report(&app, report(&app, 0, &json!([one])))
            .await
            .ok()
            .clone();
        assert_eq!((&answer["accepted"], &answer["notKept"]), (&json!(1), &json!(0)));
        assert_eq!(listed(&app, "").await, these(&[("old", "unknown")]));
        app.kernel.stop().await;
    });
}
