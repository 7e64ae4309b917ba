//! What is asked about: accounts, tokens and policies of one organization.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use serde_json::{Value, json};

use super::register::{self, Register, Subject};
use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::product::Bootstrap;
use crate::traffic;

/// What all connections share.
pub struct Scene {
    pub bootstrap: Bootstrap,
    pub addresses: [SocketAddr; 2],
    pub began: Instant,
    pub seed: u64,
    /// So many values were written.
    pub count: AtomicU64,
}

/// The records, and the values that they hold.
pub fn set_up(scene: &Scene) -> Outcome<(Vec<Register>, Vec<u64>)> {
    let mut connection = Connection::new(scene.addresses[0]);
    let (mut registers, mut values) = (Vec::new(), Vec::new());
    for number in 0..2_u64 {
        let (id, _) = make_account(scene, &mut connection, &format!("described {number}"))?;
        registers.push(Register {
            subject: Subject::Description,
            id,
        });
        values.push(0);
        let (id, token) = make_account(scene, &mut connection, &format!("standing {number}"))?;
        registers.push(Register {
            subject: Subject::Standing { token: token.1 },
            id,
        });
        values.push(1);
        let (id, token) = make_account(scene, &mut connection, &format!("token {number}"))?;
        registers.push(Register {
            subject: Subject::Token {
                id: token.0,
                token: token.1,
            },
            id,
        });
        values.push(1);
        let id = format!("verdict-{number}");
        let key = format!("servers-{:016x}-{id}", scene.seed);
        let body = json!({ "definition": register::definition(&id, 0) });
        connection.fetch(&change(scene, "content-policies", body, &key))?;
        registers.push(Register {
            subject: Subject::Verdict { revision: 1 },
            id,
        });
        values.push(0);
    }
    Ok((registers, values))
}

fn change(scene: &Scene, path: &str, body: Value, key: &str) -> Request {
    scene.bootstrap.change("POST", path, body, key, "two servers")
}

/// Returns the id of a new account, and the id and text of its token.
fn make_account(
    scene: &Scene,
    connection: &mut Connection,
    name: &str,
) -> Outcome<(String, (String, String))> {
    let key = format!("servers-{:016x}-{name}", scene.seed).replace(' ', "-");
    let mut body = traffic::account(name, "viewer");
    body["description"] = "0".into();
    let made = connection.fetch(&change(scene, "service-accounts", body, &key))?;
    let id = text(&made, "/serviceAccount/id")?;
    Ok((id, token_in(&made)?))
}

fn token_in(answer: &Value) -> Outcome<(String, String)> {
    let id = text(answer, "/token/id")?;
    Ok((id, text(answer, "/token/token")?))
}

fn text(answer: &Value, place: &str) -> Outcome<String> {
    let found = answer.pointer(place).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .context(format_args!("no {place} in {answer}"))
}

/// Gives every record about a token a new one.
pub fn renew_tokens(scene: &Scene, registers: &mut [Register], values: &mut [u64], round: u32) -> Outcome {
    let mut connection = Connection::new(scene.addresses[0]);
    for (register, value) in registers.iter_mut().zip(values) {
        let path = format!("service-accounts/{}/tokens", register.id);
        if let Subject::Token { id, token } = &mut register.subject {
            let key = format!("servers-{:016x}-{}-{round:06}", scene.seed, register.id);
            let made = connection.fetch(&change(scene, &path, json!({}), &key))?;
            (*id, *token) = token_in(&made)?;
            *value = 1;
        }
    }
    Ok(())
}
