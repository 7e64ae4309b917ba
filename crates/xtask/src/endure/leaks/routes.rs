//! One round of secrets: every operation that takes or gives one, and the ways in which a request with one goes wrong.

mod http_2;
mod wrong;

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::needles::Needles;
use super::secret_part;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Answer, Connection, Request};
use crate::product::Bootstrap;
use crate::random::Random;
use crate::traffic::{account, archive, credential, id_in, resource};

const REASON: &str = "leaks";
const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

pub struct Rounds<'a> {
    bootstrap: &'a Bootstrap,
    address: SocketAddr,
    connection: Connection,
    random: Random,
    keys: u64,
    resource: String,
    skill: String,
    refusals: Vec<u8>,
    pub sent: u64,
    pub refused: u64,
}

impl<'a> Rounds<'a> {
    pub fn begin(
        bootstrap: &'a Bootstrap,
        address: SocketAddr,
        random: Random,
        folder: &Path,
    ) -> Outcome<Self> {
        let mut rounds = Self {
            bootstrap,
            address,
            connection: Connection::new(address),
            random,
            keys: 0,
            resource: String::new(),
            skill: "leaks".to_owned(),
            refusals: Vec::new(),
            sent: 0,
            refused: 0,
        };
        let skill = archive(&rounds.skill, folder, 0)?;
        rounds.done(&bootstrap.publish(skill, "leaks-publish", REASON))?;
        rounds.another_resource()?;
        Ok(rounds)
    }

    pub fn write_refusals(&self, path: &Path) -> Outcome {
        std::fs::write(path, &self.refusals).context("cannot write the refusals")
    }

    pub fn one(&mut self, round: u32, needles: &mut Needles) -> Outcome {
        // A resource has 500 credentials at most.
        if round.is_multiple_of(200) {
            self.another_resource()?;
        }
        self.tokens(needles)?;
        self.credentials(needles)?;
        self.installs(needles)?;
        self.broken_bodies(needles)?;
        self.misplaced(needles)?;
        self.strangers(needles)?;
        self.tools(needles)?;
        self.grants(needles)
    }

    /// A secret with characters that every encoding treats in its own way.
    fn secret(&mut self, kind: &'static str, needles: &mut Needles) -> String {
        let mut letters = |count: usize| -> String {
            (0..count)
                .filter_map(|_| self.random.pick(LETTERS))
                .map(|byte| char::from(*byte))
                .collect()
        };
        let secret = format!("{}/{}+{}", letters(10), letters(8), letters(20));
        needles.add(kind, &secret);
        secret
    }

    fn send(&mut self, request: &Request) -> Outcome<Answer> {
        self.sent += 1;
        let answer = self.connection.send(request).map_err(|lost| lost.why);
        let answer = answer.context(format_args!("{} {}", request.method, request.path))?;
        if answer.status >= 500 {
            return Err(Failure::new(format!(
                "{} {} is answered {}",
                request.method,
                request.path,
                answer.summary()
            )));
        }
        Ok(answer)
    }

    fn done(&mut self, request: &Request) -> Outcome<Value> {
        let answer = self.send(request)?;
        if !answer.is_success() {
            return Err(Failure::new(format!(
                "{} {} is answered {}",
                request.method,
                request.path,
                answer.summary()
            )));
        }
        if answer.body.is_empty() {
            Ok(Value::Null)
        } else {
            answer.json()
        }
    }

    /// Sends what must be refused, and keeps the answer to be searched.
    fn refuse(&mut self, request: &Request) -> Outcome {
        let answer = self.send(request)?;
        if answer.is_success() && !request.path.starts_with("/mcp") {
            return Err(Failure::new(format!(
                "{} {} is not refused: {}",
                request.method,
                request.path,
                answer.summary()
            )));
        }
        self.refused += 1;
        let kept = writeln!(self.refusals, "{} {}", answer.status, answer.summary());
        self.refusals.extend_from_slice(&answer.body);
        kept.context("cannot keep a refusal")
    }

    fn write(&mut self, method: &'static str, rest: &str, body: Value) -> Request {
        self.keys += 1;
        let key = format!("leaks-key-of-22-letters-{:08}", self.keys);
        self.bootstrap.change(method, rest, body, &key, REASON)
    }

    fn another_resource(&mut self) -> Outcome {
        let body = resource(&format!("Resource {}", self.keys), "one.example.com");
        let request = self.write("POST", "resources", body);
        let made = self.done(&request)?;
        id_in(&made)
            .context("no resource")?
            .clone_into(&mut self.resource);
        Ok(())
    }

    /// Tokens: made, rotated, answered again, rotated by themselves, used, ended, and used once more.
    fn tokens(&mut self, needles: &mut Needles) -> Outcome {
        let body = account(&format!("Leaks {}", self.keys), "viewer");
        let create = self.write("POST", "service-accounts", body);
        let made = self.done(&create)?;
        let id = made["serviceAccount"]["id"].as_str().context("no id")?.to_owned();
        let first = token_in(&made, needles)?;
        self.done(&create)?;
        self.use_token(&first, 200)?;
        // Its secret was used: it is not answered again.
        self.refuse(&create)?;
        let rotate = format!("service-accounts/{id}/tokens");
        let by_admin = self.write("POST", &rotate, json!({ "gracePeriodSeconds": 0 }));
        let second = token_in(&self.done(&by_admin)?, needles)?;
        self.done(&by_admin)?;
        self.use_token(&first, 401)?;
        self.use_token(&second, 200)?;
        let (path, key) = (
            self.bootstrap.path("capabilities"),
            self.secret("in X-Api-Key over HTTP/2", needles),
        );
        http_2::ask(self.address, &path, &second, &key)?;
        let stranger = self.secret("a token of no form over HTTP/2", needles);
        http_2::ask(self.address, &path, &stranger, &key)?;
        self.sent += 2;
        let path = format!("service-accounts/{id}");
        let shown = self.done(&self.bootstrap.get(&path))?;
        if shown.to_string().contains(secret_part(&second)?) {
            return Err(Failure::new("an account shows the secret of its token"));
        }
        let key = format!("leaks-end-{:08}", self.keys);
        self.done(&self.bootstrap.act("DELETE", &path, &key, REASON))?;
        self.use_token(&second, 401)
    }

    fn use_token(&mut self, token: &str, status: u16) -> Outcome {
        let answer = self.send(&Request::get(self.bootstrap.path("capabilities"), token))?;
        if answer.status == status {
            return Ok(());
        }
        Err(Failure::new(format!(
            "a token is answered {} instead of {status}",
            answer.status
        )))
    }

    /// Secrets of resources: kept, replaced, checked, and refused.
    fn credentials(&mut self, needles: &mut Needles) -> Outcome {
        let all = format!("resources/{}/credentials", self.resource);
        let secret = self.secret("credential", needles);
        let body = credential(&format!("Credential {}", self.keys), &secret);
        let create = self.write("POST", &all, body.clone());
        let made = self.done(&create)?;
        self.done(&create)?;
        let one = format!("{all}/{}", id_in(&made).context("no credential")?);
        let mut changed = body.clone();
        changed["secret"] = json!(self.secret("credential, replaced", needles));
        let change = self.write("PUT", &one, changed);
        self.done(&change)?;
        let verify = self.write("POST", &format!("{one}/verify"), json!({}));
        self.done(&verify)?;
        // A kind that has no secret; a resource that is not there.
        let mut wrong = body.clone();
        wrong["kind"] = json!("aws_rds_iam");
        wrong["secret"] = json!(self.secret("credential of a wrong kind", needles));
        let wrong = self.write("PUT", &one, wrong);
        self.refuse(&wrong)?;
        let mut absent = body.clone();
        absent["secret"] = json!(self.secret("credential of no resource", needles));
        let absent = self.write("POST", "resources/res_absent/credentials", absent);
        self.refuse(&absent)?;
        // Another body with the same key.
        let mut other = create;
        if let Some(body) = &mut other.body {
            body["secret"] = json!(self.secret("credential with a used key", needles));
        }
        self.refuse(&other)
    }

    /// Tokens of gateways: given, used, taken away.
    fn installs(&mut self, needles: &mut Needles) -> Outcome {
        let item = format!("skill-registry/{}", self.skill);
        let install = self.write(
            "POST",
            &format!("{item}/cli-install"),
            json!({ "client": "claude-code", "device": "leaks" }),
        );
        let given = self.done(&install)?;
        let text = given.to_string();
        let at = text.find("prov_gwt_").context("an install without a token")?;
        let token = text[at..].split('"').next().unwrap_or_default().to_owned();
        needles.add("gateway token", secret_part(&token)?);
        self.done(&Request::get(
            self.bootstrap.path(&format!("{item}/content")),
            &token,
        ))
        .or_else(|_| {
            self.done(&Request::get(
                self.bootstrap.path(&format!("{item}/manifest")),
                &token,
            ))
        })?;
        self.refuse(&Request::get(self.bootstrap.path("capabilities"), &token))
    }
}

fn token_in(body: &Value, needles: &mut Needles) -> Outcome<String> {
    let token = body["token"]["token"].as_str().context("no token")?.to_owned();
    needles.add("token", secret_part(&token)?);
    Ok(token)
}
