//! The agent of a person keeps the skills that people assigned to its device, and touches nothing of that person.

use super::Laptop;
use crate::areas::fleet::enrolment_token;
use crate::areas::skills::skill;
use crate::support::{App, each};
use provost_agent::{Agent, Loop, Once, Trouble, once};
use provost_client::agent::Skills;
use provost_kernel::entropy::SystemEntropy;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// Makes one round, as after a restart.
async fn round(laptop: &Laptop) -> Result<Once, Trouble> {
    laptop.road.app.advance(60);
    let agent = Agent::open(&laptop.folder())?;
    once(&Loop {
        agent: &agent,
        door: &laptop.road,
        home: &laptop.home,
        clock: &*laptop.clock,
        entropy: &SystemEntropy,
        say: &|_| {},
        stations: &[&Skills::new(&laptop.home)],
        stop: Arc::default(),
    })
    .await
}

async fn goes_on(laptop: &Laptop) {
    assert_eq!(round(laptop).await.unwrap().problem, None);
}

async fn stumbles(laptop: &Laptop) -> String {
    round(laptop).await.unwrap().problem.unwrap().line
}

fn file(laptop: &Laptop, path: &str) -> PathBuf {
    laptop.home.join(".claude/skills").join(path)
}

fn holds(laptop: &Laptop, path: &str) -> String {
    fs::read_to_string(file(laptop, path)).unwrap()
}

fn asked(laptop: &Laptop, end: &str) -> usize {
    let sent = laptop.road.sent.borrow();
    sent.iter().filter(|(path, _)| path == end).count()
}

/// Proves SL-1, SL-2, SL-3.
#[test]
fn a_laptop_has_the_skills_that_it_is_assigned_and_a_person_keeps_what_is_hers() {
    each("agent_skills", |app: Arc<App>| async move {
        let laptop = Laptop::new(&app);
        let (_, secret) = enrolment_token(&app, json!({ "mode": "user" })).await;
        let id = laptop.enrols(&secret, false).await.unwrap();
        goes_on(&laptop).await;
        let (reading, own) = (app.skill("reading").await, app.skill("own").await);
        for item in [&reading, &own] {
            let path = format!("/skill-registry/{item}/devices/{id}");
            app.write("PUT", &path, json!({})).await.ok();
        }
        // One of that name a person has made herself: it is left alone, and the other one is installed nevertheless.
        fs::create_dir_all(file(&laptop, "own")).unwrap();
        fs::write(file(&laptop, "own/SKILL.md"), "mine").unwrap();
        let why = stumbles(&laptop).await;
        assert!(why.contains("was not installed by this agent"), "{why}");
        assert_eq!(holds(&laptop, "own/SKILL.md"), "mine");
        assert_eq!(holds(&laptop, "reading/notes/more.md"), "first");
        app.delete(&format!("/skill-registry/{own}/devices/{id}"))
            .await
            .ok();
        goes_on(&laptop).await;
        assert_eq!(holds(&laptop, "own/SKILL.md"), "mine");
        // What is here as it is offered is not fetched again.
        let fetched = asked(&laptop, "content");
        goes_on(&laptop).await;
        assert_eq!(asked(&laptop, "content"), fetched);
        // A file that is gone comes back; a later version takes the place, beside what she put there.
        fs::remove_file(file(&laptop, "reading/notes/more.md")).unwrap();
        goes_on(&laptop).await;
        assert_eq!(holds(&laptop, "reading/notes/more.md"), "first");
        fs::write(file(&laptop, "reading/hers.md"), "hers").unwrap();
        app.publish("", skill("reading", "second")).await.ok();
        goes_on(&laptop).await;
        assert_eq!(holds(&laptop, "reading/notes/more.md"), "second");
        assert_eq!(holds(&laptop, "reading/hers.md"), "hers");
        // What she changed stays, and the next version waits.
        fs::write(file(&laptop, "reading/SKILL.md"), "changed").unwrap();
        goes_on(&laptop).await;
        app.publish("", skill("reading", "third")).await.ok();
        let why = stumbles(&laptop).await;
        assert!(why.contains("was changed since it was installed"), "{why}");
        assert_eq!(holds(&laptop, "reading/SKILL.md"), "changed");
        assert_eq!(holds(&laptop, "reading/notes/more.md"), "second");
        // Without the server nothing goes; with the withdrawal goes what was written, and hers stays.
        laptop.road.loses.set(Some("skills"));
        assert!(round(&laptop).await.unwrap().problem.is_some());
        assert_eq!(holds(&laptop, "reading/notes/more.md"), "second");
        let path = format!("/skill-registry/{reading}/withdraw");
        app.write("POST", &path, json!({ "confirm": true })).await.ok();
        goes_on(&laptop).await;
        assert!(!file(&laptop, "reading/notes/more.md").exists());
        assert_eq!(holds(&laptop, "reading/SKILL.md"), "changed");
        assert_eq!(holds(&laptop, "reading/hers.md"), "hers");
        app.kernel.stop().await;
    });
}
