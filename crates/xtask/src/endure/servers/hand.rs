//! One connection to each server, and what it asks.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::PATIENCE;
use super::order::Observation;
use super::register::{Register, ServerAnswer, Subject};
use super::scene::Scene;
use crate::clock;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::random::Random;

/// Asks until the round is over; returns how many writes were refused and how many requests were sent again.
pub fn ask(
    scene: &Scene,
    registers: &[Register],
    answers: &Mutex<Vec<Vec<Observation>>>,
    is_over: &AtomicBool,
    round: u32,
    number: usize,
) -> Outcome<(usize, usize)> {
    let mut random = Random::part(scene.seed, u64::from(round) * 1_000 + number as u64 + 1);
    let mut connections = scene.addresses.map(Connection::new);
    let (mut refusals, mut retries) = (0, 0);
    while !is_over.load(Ordering::SeqCst) {
        let at = usize::try_from(random.between(0, registers.len() as u64 - 1)).unwrap_or_default();
        let mut register = registers[at].clone();
        let first = usize::try_from(random.between(0, 1)).unwrap_or_default();
        let share = if matches!(register.subject, Subject::Token { .. }) {
            // Once it is revoked there is nothing more to see.
            4
        } else {
            35
        };
        let value = random
            .chance(share)
            .then(|| register.choose(&mut random, scene.count.fetch_add(1, Ordering::SeqCst)));
        if value.is_some() && !look_up(scene, &mut register, &mut connections[first])? {
            continue;
        }
        let key = format!(
            "servers-{:016x}-{round:06}-{number:03}-{:016x}",
            scene.seed,
            random.next()
        );
        let request = match value {
            Some(value) => register.write(&scene.bootstrap, value, &key),
            None => register.read(&scene.bootstrap),
        };
        let begin = clock::now();
        let (mut sent, mut which) = (scene.began.elapsed(), first);
        let answered = loop {
            let told = match connections[which].send(&request) {
                Ok(answer) => match value {
                    Some(value) => register.hear_write(value, &answer)?,
                    None => register.hear_read(&answer)?,
                },
                Err(_) => ServerAnswer::Unavailable,
            };
            match told {
                ServerAnswer::Answer(act) => {
                    break Some(Observation {
                        sent,
                        arrived: scene.began.elapsed(),
                        act,
                        server: which,
                    });
                }
                ServerAnswer::Refusal => {
                    refusals += 1;
                    break None;
                }
                ServerAnswer::Unavailable if begin.elapsed() > PATIENCE => {
                    return Err(Failure::new(format!(
                        "{}: no answer of either server within {PATIENCE:?}",
                        register.name()
                    )));
                }
                ServerAnswer::Unavailable => {
                    retries += 1;
                    which = 1 - which;
                    std::thread::sleep(Duration::from_millis(5));
                    if value.is_none() {
                        // A read that was not answered told nothing, so it is another read.
                        sent = scene.began.elapsed();
                    }
                }
            }
        };
        if let Some(answered) = answered {
            let mut all = answers
                .lock()
                .map_err(|_| Failure::new("a connection of the driver panicked"))?;
            all[at].push(answered);
        }
    }
    Ok((refusals, retries))
}

/// Reads the revision that a change of a policy names; false when that was not answered.
fn look_up(scene: &Scene, register: &mut Register, connection: &mut Connection) -> Outcome<bool> {
    let Subject::Verdict { revision } = &mut register.subject else {
        return Ok(true);
    };
    let path = scene.bootstrap.path(&format!("content-policies/{}", register.id));
    let Ok(answer) = connection.send(&Request::get(path, &scene.bootstrap.token)) else {
        return Ok(false);
    };
    if answer.status == 503 {
        return Ok(false);
    }
    let shown = answer.json()?;
    let found = shown.pointer("/item/currentRevision").and_then(Value::as_u64);
    *revision = found.context(format_args!("no revision in {}", answer.summary()))?;
    Ok(true)
}
