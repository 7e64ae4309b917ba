//! The devices of the net: a machine of the person whom policies are about, and a machine of nobody, each judging by the bundle that it would be
//! given at that moment.
//!
//! Keeps MV-2.

use super::{ChangedEvent, KEY_RESPELT, reported, strength};
use crate::areas::fleet::Machine;
use crate::fleet::judging::{fetch, opened, owned};
use crate::support::App;
use provost_bundle::{AskedEvent, Judge, Judgement};
use provost_kernel::Timestamp;
use serde_json::{Value, json};

/// The machines.
pub struct Devices {
    /// The person's, and nobody's.
    machines: [Machine; 2],
}

/// What a device says of an event.
pub struct Said {
    /// How strong the action is that holds there without an answer of the server.
    pub action: usize,
    /// Whether the server does not have to be asked.
    pub is_certain: bool,
    /// The policies in monitor mode that it reports.
    reported: Vec<String>,
    /// The whole of it, for who reads a failure.
    whole: Value,
}

impl Devices {
    /// Enrols them where devices judge.
    pub async fn of(app: &App, person: &str) -> Self {
        Self {
            machines: [owned(app, person).await, Machine::new(app).await],
        }
    }

    pub fn first(&self) -> &Machine {
        &self.machines[0]
    }

    /// Returns what the devices judge by now. The first is the person's again where the person was deleted and came back.
    pub async fn judges(&self, app: &App, person: &str) -> Vec<Judge> {
        let path = format!("/devices/{}", self.first().id);
        let owner = json!({ "ownerUserId": person });
        // Of whoever is deleted no machine can be: then both are nobody's.
        let named = app.write("PATCH", &path, owner).await;
        let is_gone = named.json["errors"][0]["path"] == "/ownerUserId";
        assert!(named.status.is_success() || is_gone, "{}", named.text());
        let mut judges = Vec::new();
        for machine in &self.machines {
            let bundle = opened(app, machine, &fetch(app, machine, None).await);
            judges.push(Judge::new(bundle).unwrap());
        }
        judges
    }
}

/// Returns what each device says of each event, by devices, and refutes what is not what the server answered.
pub fn said(at: Timestamp, judges: &[Judge], events: &[Value], answers: &[Value]) -> Vec<Vec<Said>> {
    let said_of = |judge: &Judge| {
        let pairs = events.iter().zip(answers);
        pairs
            .map(|(event, answer)| beside(at, judge, event, answer))
            .collect()
    };
    judges.iter().map(said_of).collect()
}

fn beside(at: Timestamp, judge: &Judge, event: &Value, answer: &Value) -> Said {
    let said = judge.judge(at, &AskedEvent::of(event).unwrap()).unwrap();
    let is_certain = matches!(said, Judgement::Verdict(_));
    let verdict = serde_json::to_value(said.verdict()).unwrap();
    let action = strength(verdict["action"].as_str().unwrap());
    let of_server = strength(answer["action"].as_str().unwrap());
    let told = || {
        let owner = judge.bundle().users.first().map(|user| user.user_id.as_str());
        format!("a device of {owner:?}\nevent {event}\ndevice {verdict}\nserver {answer}")
    };
    if is_certain {
        assert_eq!(
            comparable(&verdict),
            comparable(answer),
            "a device is sure of something else: {}",
            told()
        );
    }
    assert!(
        action >= of_server,
        "a device holds to something weaker: {}",
        told()
    );
    Said {
        action,
        is_certain,
        reported: reported(&verdict).into_iter().map(str::to_owned).collect(),
        whole: verdict,
    }
}

/// Returns what of an answer a device can know: neither how the event is recorded, nor which words mean nobody at all; of a refusal by the
/// standing of a server the refusal, and not which policies would have had a part in it.
fn comparable(verdict: &Value) -> Value {
    let mut verdict = verdict.clone();
    let is_by_standing = verdict["mcpServer"].is_object();
    verdict.as_object_mut().unwrap().retain(|name, _| {
        if is_by_standing {
            return ["action", "basis", "mcpServer", "obligations"].contains(&name.as_str());
        }
        !["eventId", "unresolved"].contains(&name.as_str())
    });
    verdict
}

/// Refutes that a device answers what merely says the same in other words in another way than the unchanged event, which is the first of its
/// number; returns how many answers it compared.
pub fn are_alike(asked: &[ChangedEvent], said: &[Vec<Said>]) -> u64 {
    let mut compared = 0;
    for said in said {
        for (one, found) in asked.iter().zip(said) {
            let first = asked.iter().position(|first| first.nth == one.nth);
            let wanted = &said[first.unwrap()];
            let is_alike = found.action == wanted.action && found.reported == wanted.reported;
            let is_as_sure = found.is_certain == wanted.is_certain || one.name == KEY_RESPELT;
            assert!(
                is_alike && is_as_sure,
                "{}: a device answers it in another way\nunchanged {}, certain: {}\nchanged {}\n{}, certain: {}",
                one.name,
                wanted.whole,
                wanted.is_certain,
                one.event,
                found.whole,
                found.is_certain
            );
            compared += 1;
        }
    }
    compared
}
