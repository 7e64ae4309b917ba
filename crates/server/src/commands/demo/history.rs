//! A month of events that follow from a seed and the day: what agents of the sample organization did.
//!
//! They are told as a gateway would tell them, with what it decided; nothing of them was decided by this server, and every one says
//! that it was imported.

use super::Failure;
use provost_kernel::Timestamp;
use provost_kernel::entropy::UnitRng;
use serde::Deserialize;
use serde_json::{Map, Value, json};

pub const DAYS: i64 = 30;
const SEED: [u8; 32] = *b"one month of the organization ac";
const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
/// A source may not tell the future, and its clock may differ from the server's.
const BEHIND_MS: i64 = 60_000;
/// Events of a working day and of a day at the weekend, at least, and how many there may be more.
const WORKING: (u64, u64) = (180, 60);
const WEEKEND: (u64, u64) = (15, 15);
const PEOPLE: [&str; 12] = [
    "ada", "bela", "chiara", "dev", "emeka", "fatima", "liam", "goran", "hana", "ines", "jonas", "kaia",
];

/// A kind of event.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    /// How often it happens, beside the others.
    weight: u64,
    occasion: String,
    attributes: Map<String, Value>,
    /// What was decided; allowed where nothing is said.
    action: Option<String>,
    policy: Option<String>,
}

struct Dice(UnitRng);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % end.max(1)
    }

    /// As a length of time, which ends before `end_ms`.
    fn ms_below(&mut self, end_ms: i64) -> i64 {
        let end = u64::try_from(end_ms).unwrap_or(0);
        i64::try_from(self.below(end)).unwrap_or(0)
    }
}

/// Returns the events of the days before `now` as JSON Lines, and how many there are.
pub fn lines(now: Timestamp) -> Result<(String, usize), Failure> {
    let kinds: Vec<Kind> = serde_json::from_str(include_str!("sample/events.json"))
        .map_err(|error| Failure::new(format!("the events of the sample organization: {error}")))?;
    let all: u64 = kinds.iter().map(|kind| kind.weight).sum();
    let mut dice = Dice(UnitRng::new(SEED));
    let (until, since) = (now.as_ms() - BEHIND_MS, now.as_ms() - DAYS * DAY_MS);
    let today = now.as_ms().div_euclid(DAY_MS);
    let (mut text, mut count) = (String::new(), 0);
    for day in today - DAYS..=today {
        // The first of January 1970 was a Thursday.
        let is_weekend = (day + 4).rem_euclid(7) % 6 == 0;
        let (least, more) = if is_weekend { WEEKEND } else { WORKING };
        let mut times: Vec<i64> = (0..least + dice.below(more))
            .map(|_| day * DAY_MS + 7 * HOUR_MS + dice.ms_below(11 * HOUR_MS))
            .collect();
        times.sort_unstable();
        for at in times {
            let event = event(&kinds, all, day, at, &mut dice);
            if (since..until).contains(&at) {
                count += 1;
                text.push_str(&event.to_string());
                text.push('\n');
            }
        }
    }
    Ok((text, count))
}

fn event(kinds: &[Kind], all: u64, day: i64, at: i64, dice: &mut Dice) -> Value {
    // Some do much more than others.
    let people = PEOPLE.len() as u64;
    let place = dice.below(people) * dice.below(people) / people;
    let person = usize::try_from(place).map_or(PEOPLE[0], |place| PEOPLE[place]);
    let mut left = dice.below(all);
    let chosen = kinds.iter().find(|kind| {
        let is_it = left < kind.weight;
        left = left.saturating_sub(kind.weight);
        is_it
    });
    let mut event = json!({ "at": Timestamp::from_ms(at), "session": format!("{person}-{day}") });
    if let Some(kind) = chosen {
        event["occasion"] = kind.occasion.as_str().into();
        event["attributes"] = Value::Object(kind.attributes.clone());
        let policies: Vec<&String> = kind.policy.iter().collect();
        event["decision"] =
            json!({ "action": kind.action.as_deref().unwrap_or("allow"), "policyIds": policies });
    }
    event["attributes"]["identity.user_id"] = format!("{person}@acme.example").into();
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_the_same_month_again_and_none_of_it_is_ahead() {
        let now = Timestamp::parse("2026-11-27T10:00:00.000Z").unwrap();
        let (text, count) = lines(now).unwrap();
        assert_eq!(lines(now).unwrap().0, text);
        assert_eq!(text.lines().count(), count);
        // One request of an import holds 5 000 lines.
        assert!((3_500..5_000).contains(&count), "{count}");
        let mut before = Timestamp::from_ms(0);
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            let at = Timestamp::parse(event["at"].as_str().unwrap()).unwrap();
            assert!(before <= at && at < now, "{event}");
            assert!(
                event["decision"]["action"].is_string() && event["occasion"].is_string(),
                "{event}"
            );
            before = at;
        }
    }

    #[test]
    fn every_person_of_the_events_is_in_the_directory() {
        let people = include_str!("sample/people.csv");
        for person in PEOPLE {
            assert!(
                people.contains(&format!("user,{person}@acme.example,")),
                "{person}"
            );
        }
    }
}
