//! One connection that keeps records beside accounts: people, groups, configuration, resources, skills.
//!
//! It believes what it was answered. After a crash every record must be shown as it was last answered; the
//! one whose request was not answered, as before that request or as after its retry, and nothing in between.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::verdict::Verdict;
use super::worker::{Counts, Scene};
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::random::Random;
use crate::traffic::{archive, credential, resource};

const REASON: &str = "crash driver";
/// Beyond so many records of a kind the oldest is deleted.
const MOST: usize = 6;
/// Members that change without a request of this connection.
const MOVING: [&str; 3] = ["lastUsedAt", "rollout", "rotatedAt"];

/// A kind of record: where it is read, and how its ids begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    User,
    Group,
    Profile,
    Release,
    Resource,
    Credential,
}

impl Kind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::User => "usr_",
            Self::Group => "grp_",
            Self::Profile => "prof_",
            Self::Release => "mcr_",
            Self::Resource => "res_",
            Self::Credential => "cred_",
        }
    }

    /// What a record shows of itself that a later act on another record does not change.
    fn steady(self, record: &Value) -> Value {
        let mut steady = record.clone();
        let Some(members) = steady.as_object_mut() else {
            return steady;
        };
        members.retain(|name, _| !MOVING.contains(&name.as_str()));
        match self {
            // A release makes its profile's current one, and the one before superseded.
            Self::Profile => members
                .retain(|name, _| !["currentReleaseId", "updatedAt", "autoPublish"].contains(&name.as_str())),
            Self::Release => {
                members.remove("status");
            }
            _ => {}
        }
        steady
    }
}

/// What an acknowledged request leaves behind.
#[derive(Clone, Debug)]
enum Effect {
    /// The answer shows a record; a GET below this collection shows the same.
    Shows(Kind, String),
    /// The record of this path is gone.
    Ends(String),
    /// The skill has a token that opens its content.
    Installs,
    /// The skill has none.
    Uninstalls,
}

#[derive(Clone, Debug)]
struct Step {
    request: Request,
    effect: Effect,
    /// The path of the record that it acts on, if there is one.
    about: Option<String>,
}

impl Step {
    fn about(self, path: String) -> Self {
        Self {
            about: Some(path),
            ..self
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Belief {
    Shown(Kind, Value),
    Gone,
}

struct UnansweredStep {
    step: Step,
    key: String,
    acknowledged: bool,
}

pub struct CrudWorker {
    number: usize,
    random: Random,
    keys: u64,
    /// By the path of their GET.
    records: BTreeMap<String, Belief>,
    skill: String,
    /// The gateway token in force.
    token: Option<String>,
    /// The gateway token that the last uninstall revoked.
    revoked: Option<String>,
    unanswered: Option<UnansweredStep>,
    pub counts: Counts,
}

impl CrudWorker {
    /// Publishes a skill of its own.
    pub fn begin(scene: &Scene, number: usize, connection: &mut Connection, folder: &Path) -> Outcome<Self> {
        let skill = format!("crash-{number}");
        let key = format!("crash-{:016x}-publish-{number}", scene.seed);
        let publish = scene.bootstrap.publish(archive(&skill, folder, 0)?, &key, REASON);
        connection.fetch(&publish).context("publishing a skill")?;
        Ok(Self {
            number,
            random: Random::part(scene.seed, 10_000 + number as u64),
            keys: 0,
            records: BTreeMap::new(),
            skill,
            token: None,
            revoked: None,
            unanswered: None,
            counts: Counts::default(),
        })
    }

    /// Sends one mutation after the other until an answer is lost.
    pub fn mutate_until_lost(&mut self, scene: &Scene, connection: &mut Connection) -> Outcome {
        loop {
            self.keys += 1;
            let key = format!("crash-{:016x}-k{:03}-{:08}", scene.seed, self.number, self.keys);
            let step = self.choose(scene, &key);
            match connection.send(&step.request) {
                Ok(answer) => {
                    scene
                        .ledger
                        .note(self.number, "acknowledged", &key, &step, Some(&answer));
                    self.accept(&step, &answer)?;
                    self.counts.acknowledged += 1;
                }
                Err(lost) => {
                    if !scene.killing.load(Ordering::SeqCst) {
                        return Err(Failure::new(format!(
                            "{} {} was not answered by a living server: {}",
                            step.request.method, step.request.path, lost.why
                        )));
                    }
                    scene.ledger.note(self.number, "unanswered", &key, &step, None);
                    self.counts.unanswered += 1;
                    self.unanswered = Some(UnansweredStep {
                        acknowledged: lost.status.is_some_and(|status| (200..300).contains(&status)),
                        step,
                        key,
                    });
                    return Ok(());
                }
            }
        }
    }

    /// Sends the unanswered request again and says what of its effect was neither before nor after.
    pub fn retry(&mut self, scene: &Scene, connection: &mut Connection, verdict: &mut Verdict) -> Outcome {
        let Some(UnansweredStep {
            step,
            key,
            acknowledged,
        }) = self.unanswered.take()
        else {
            return Ok(());
        };
        let about = step.about.clone();
        let before = about.as_ref().and_then(|path| self.records.get(path)).cloned();
        let seen = match (&about, &before) {
            (Some(path), Some(belief)) => Some(look(scene, connection, path, belief)?),
            _ => None,
        };
        let answer = connection
            .send(&step.request)
            .map_err(|lost| Failure::new(format!("the retry of {key} was not answered: {}", lost.why)))?;
        scene
            .ledger
            .note(self.number, "retried", &key, &step, Some(&answer));
        if acknowledged && !answer.replayed {
            verdict.lost.push(format!(
                "{key} was acknowledged, but its retry acted anew: {}",
                answer.summary()
            ));
        }
        if answer.replayed {
            self.counts.replayed += 1;
        } else {
            self.counts.first_answers += 1;
        }
        self.accept(&step, &answer)?;
        let after = about.as_ref().and_then(|path| self.records.get(path)).cloned();
        if let (Some(path), Some(seen)) = (about, seen) {
            if Some(&seen) != before.as_ref() && Some(&seen) != after.as_ref() {
                let sentence = format!("{path} was {seen:?}: neither as before {key} nor as after it");
                verdict.half_applied.push(sentence);
            } else if acknowledged && Some(&seen) != after.as_ref() {
                verdict
                    .lost
                    .push(format!("{path}: {key} was acknowledged and had no effect"));
            }
        }
        Ok(())
    }

    /// Compares every record with its belief.
    pub fn judge(&self, scene: &Scene, connection: &mut Connection, verdict: &mut Verdict) -> Outcome {
        for (path, belief) in &self.records {
            let seen = look(scene, connection, path, belief)?;
            if seen != *belief {
                verdict
                    .lost
                    .push(format!("{path} is {seen:?} instead of {belief:?}"));
            }
        }
        for (token, works) in [(&self.token, true), (&self.revoked, false)] {
            let Some(token) = token else { continue };
            let path = scene
                .bootstrap
                .path(&format!("skill-registry/{}/manifest", self.skill));
            let answer = connection
                .send(&Request::get(path, token))
                .map_err(|lost| lost.why);
            let status = answer.context("a skill's manifest")?.status;
            let expected = if works { 200 } else { 401 };
            if status != expected {
                verdict.lost.push(format!(
                    "a gateway token of {} is answered {status} instead of {expected}",
                    self.skill
                ));
            }
        }
        Ok(())
    }

    /// Returns how many records this connection knows, deleted ones included.
    pub fn known(&self) -> usize {
        self.records.len()
    }

    fn accept(&mut self, step: &Step, answer: &Answer) -> Outcome {
        if !answer.is_success() {
            let request = &step.request;
            return Err(Failure::new(format!(
                "{} {} was answered {}",
                request.method,
                request.path,
                answer.summary()
            )));
        }
        match &step.effect {
            Effect::Shows(kind, collection) => {
                let body = answer.json()?;
                let record =
                    find(&body, *kind).context(format_args!("no {kind:?} in {}", answer.summary()))?;
                let id = record["id"].as_str().unwrap_or_default();
                let path = format!("{collection}/{id}");
                self.records
                    .insert(path, Belief::Shown(*kind, kind.steady(record)));
            }
            Effect::Ends(path) => {
                self.records.insert(path.clone(), Belief::Gone);
            }
            Effect::Installs => {
                let body = answer.json()?;
                let token = body.pointer("/gatewayToken/token").and_then(Value::as_str);
                let token = token.context("an install without a token")?.to_owned();
                // A second install of the same place takes the token of the first.
                if let Some(old) = self.token.replace(token) {
                    self.revoked = Some(old);
                }
            }
            Effect::Uninstalls => {
                if let Some(token) = self.token.take() {
                    self.revoked = Some(token);
                }
            }
        }
        Ok(())
    }

    fn choose(&mut self, scene: &Scene, key: &str) -> Step {
        match self.random.between(1, 100) {
            ..=24 => self.person(scene, key),
            25..=36 => self.group(scene, key),
            37..=60 => self.configuration(scene, key),
            61..=85 => self.resource(scene, key),
            _ => self.install(scene, key),
        }
    }

    fn alive(&self, kind: Kind) -> Vec<String> {
        let is_alive = |belief: &Belief| matches!(belief, Belief::Shown(known, _) if *known == kind);
        let alive = self.records.iter().filter(|(_, belief)| is_alive(belief));
        alive.map(|(path, _)| path.clone()).collect()
    }

    /// A record to act on, or none when there should be another one.
    fn pick(&mut self, kind: Kind) -> Option<String> {
        let alive = self.alive(kind);
        if alive.is_empty() || (alive.len() < MOST && self.random.chance(25)) {
            return None;
        }
        self.random.pick(&alive).cloned()
    }

    fn person(&mut self, scene: &Scene, key: &str) -> Step {
        let users = "directory/users";
        let shows = Effect::Shows(Kind::User, users.into());
        let Some(path) = self.pick(Kind::User) else {
            let body = json!({ "loginName": format!("{key}@example.com") });
            return write(scene, key, "POST", users, body, shows);
        };
        let step = match self.random.between(1, 10) {
            1..=2 => return self.end(scene, key, path),
            3..=5 => write(scene, key, "POST", &format!("{path}/suspend"), json!({}), shows),
            6..=7 => write(
                scene,
                key,
                "POST",
                &format!("{path}/reactivate"),
                json!({}),
                shows,
            ),
            _ => {
                let body = json!({ "displayName": format!("as of {key}") });
                write(scene, key, "PATCH", &path, body, shows)
            }
        };
        step.about(path)
    }

    fn group(&mut self, scene: &Scene, key: &str) -> Step {
        let groups = "directory/groups";
        let shows = Effect::Shows(Kind::Group, groups.into());
        let Some(path) = self.pick(Kind::Group) else {
            let body = json!({ "name": format!("Group {key}") });
            return write(scene, key, "POST", groups, body, shows);
        };
        if self.random.chance(25) {
            return self.end(scene, key, path);
        }
        let body = json!({ "description": format!("as of {key}") });
        write(scene, key, "PATCH", &path, body, shows).about(path)
    }

    fn configuration(&mut self, scene: &Scene, key: &str) -> Step {
        let profiles = "managed-config/profiles";
        let Some(path) = self.pick(Kind::Profile) else {
            let body = json!({ "name": format!("Profile {key}"), "target": "generic_json" });
            let shows = Effect::Shows(Kind::Profile, profiles.into());
            return write(scene, key, "POST", profiles, body, shows);
        };
        let releases = format!("{path}/releases");
        let shows = Effect::Shows(Kind::Release, releases.clone());
        let mut known = self.alive(Kind::Release);
        known.retain(|release| release.starts_with(&releases));
        if known.len() > 1 && self.random.chance(40) {
            let source = self.random.pick(&known).cloned().unwrap_or_default();
            let id = source.rsplit('/').next().unwrap_or_default();
            let body = json!({ "sourceReleaseId": id, "confirm": true });
            return write(scene, key, "POST", &format!("{path}/rollback"), body, shows);
        }
        let body = json!({ "content": { "enforced": { "as of": key }, "defaults": {} } });
        write(scene, key, "POST", &releases, body, shows)
    }

    fn resource(&mut self, scene: &Scene, key: &str) -> Step {
        let resources = "resources";
        let credentials = self.alive(Kind::Credential);
        let secret = credential(&format!("Credential {key}"), &format!("secret of {key}"));
        if let Some(path) = self.random.pick(&credentials).cloned()
            && self.random.chance(50)
        {
            if credentials.len() > MOST || self.random.chance(20) {
                return self.end(scene, key, path);
            }
            let collection = path.rsplit_once('/').map_or("", |(collection, _)| collection);
            let shows = Effect::Shows(Kind::Credential, collection.to_owned());
            return write(scene, key, "PUT", &path, secret, shows).about(path);
        }
        let name = format!("Resource {key}");
        let shows = Effect::Shows(Kind::Resource, resources.into());
        let Some(path) = self.pick(Kind::Resource) else {
            return write(
                scene,
                key,
                "POST",
                resources,
                resource(&name, "one.example.com"),
                shows,
            );
        };
        if self.random.chance(50) {
            let collection = format!("{path}/credentials");
            let shows = Effect::Shows(Kind::Credential, collection.clone());
            return write(scene, key, "POST", &collection, secret, shows);
        }
        let hosts = ["one.example.com", "two.example.com"];
        let host = self.random.pick(&hosts).copied().unwrap_or(hosts[0]);
        write(scene, key, "PUT", &path, resource(&name, host), shows).about(path)
    }

    fn install(&mut self, scene: &Scene, key: &str) -> Step {
        let item = format!("skill-registry/{}", self.skill);
        if self.token.is_some() && self.random.chance(60) {
            let path = format!("{item}/cli-uninstall");
            return Step {
                request: scene.bootstrap.act("POST", &path, key, REASON),
                effect: Effect::Uninstalls,
                about: None,
            };
        }
        let body = json!({ "client": "claude-code", "device": format!("crash-{}", self.number) });
        write(
            scene,
            key,
            "POST",
            &format!("{item}/cli-install"),
            body,
            Effect::Installs,
        )
    }

    fn end(&mut self, scene: &Scene, key: &str, path: String) -> Step {
        // What hangs below goes with it or forbids it; the driver takes it away first.
        let below = format!("{path}/");
        let mut children = self.alive(Kind::Credential);
        children.retain(|child| child.starts_with(&below));
        let path = self.random.pick(&children).cloned().unwrap_or(path);
        Step {
            request: scene.bootstrap.act("DELETE", &path, key, REASON),
            effect: Effect::Ends(path.clone()),
            about: Some(path),
        }
    }
}

fn write(scene: &Scene, key: &str, method: &'static str, rest: &str, body: Value, effect: Effect) -> Step {
    Step {
        request: scene.bootstrap.change(method, rest, body, key, REASON),
        effect,
        about: None,
    }
}

/// The record of a kind in an answer: the whole of it, or one member.
fn find(body: &Value, kind: Kind) -> Option<&Value> {
    let is_one = |value: &&Value| {
        value["id"]
            .as_str()
            .is_some_and(|id| id.starts_with(kind.prefix()))
    };
    // A rollback shows three releases: the new one is `release`.
    let named = body.get("release").filter(is_one);
    Some(body)
        .filter(is_one)
        .or(named)
        .or_else(|| body.as_object()?.values().find(is_one))
}

/// What the server shows of a record, as a belief of the same kind.
fn look(scene: &Scene, connection: &mut Connection, path: &str, belief: &Belief) -> Outcome<Belief> {
    let request = scene.bootstrap.get(path);
    let answer = connection.send(&request).map_err(|lost| lost.why).context(path)?;
    if answer.status == 404 {
        return Ok(Belief::Gone);
    }
    let body = answer.json()?;
    let kinds = [
        Kind::User,
        Kind::Group,
        Kind::Release,
        Kind::Profile,
        Kind::Resource,
        Kind::Credential,
    ];
    let kind = match belief {
        Belief::Shown(kind, _) => *kind,
        Belief::Gone => *kinds
            .iter()
            .find(|kind| find(&body, **kind).is_some())
            .context("a record of no kind")?,
    };
    let record = find(&body, kind).context(format_args!("{path}: {}", answer.summary()))?;
    Ok(Belief::Shown(kind, kind.steady(record)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_alone_in_a_member_and_before_its_sources() {
        let alone = json!({ "id": "res_1" });
        assert_eq!(find(&alone, Kind::Resource), Some(&alone));
        assert_eq!(find(&alone, Kind::User), None);
        let inside = json!({ "created": true, "user": { "id": "usr_1" } });
        assert_eq!(find(&inside, Kind::User), Some(&json!({ "id": "usr_1" })));
        let rollback = json!({ "previousRelease": { "id": "mcr_1" }, "release": { "id": "mcr_3" }, "sourceRelease": { "id": "mcr_2" } });
        assert_eq!(find(&rollback, Kind::Release), Some(&json!({ "id": "mcr_3" })));
    }

    #[test]
    fn what_others_move_is_not_compared() {
        let release = json!({ "id": "mcr_1", "status": "active", "rollout": {}, "version": 1 });
        assert_eq!(
            Kind::Release.steady(&release),
            json!({ "id": "mcr_1", "version": 1 })
        );
        let user = json!({ "id": "usr_1", "status": "active" });
        assert_eq!(Kind::User.steady(&user), user);
    }
}
