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
        let mut publish = Request::new("POST", bootstrap.path("skill-registry"), &bootstrap.token);
        publish.content = Some((
            "application/gzip",
            crate::crash::skill_archive(&rounds.skill, folder)?,
        ));
        publish.headers = vec![
            ("Idempotency-Key", "leaks-publish".to_owned()),
            ("X-Reason", REASON.to_owned()),
        ];
        rounds.done(&publish)?;
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

    fn write(&mut self, method: &'static str, rest: &str, mut body: Value) -> Request {
        self.keys += 1;
        body["reason"] = json!(REASON);
        body["idempotencyKey"] = json!(format!("leaks-key-of-22-letters-{:08}", self.keys));
        Request::new(method, self.bootstrap.path(rest), &self.bootstrap.token).with_body(body)
    }

    fn another_resource(&mut self) -> Outcome {
        let body = json!({ "name": format!("Resource {}", self.keys), "protocol": "http",
                           "upstreamHost": "one.example.com", "upstreamPort": 443 });
        let request = self.write("POST", "resources", body);
        let made = self.done(&request)?;
        let id = made.pointer("/resource/id").or_else(|| made.get("id"));
        id.and_then(Value::as_str)
            .context("no resource")?
            .clone_into(&mut self.resource);
        Ok(())
    }

    /// Tokens: made, rotated, answered again, rotated by themselves, used, ended, and used once more.
    fn tokens(&mut self, needles: &mut Needles) -> Outcome {
        let body =
            json!({ "name": format!("Leaks {}", self.keys), "permissionRole": "viewer", "allOfRole": true });
        let create = self.write("POST", "service-accounts", body);
        let made = self.done(&create)?;
        let account = made["serviceAccount"]["id"].as_str().context("no id")?.to_owned();
        let first = token_in(&made, needles)?;
        self.done(&create)?;
        self.use_token(&first, 200)?;
        // Its secret was used: it is not answered again.
        self.refuse(&create)?;
        let rotate = format!("service-accounts/{account}/tokens");
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
        let revoke = self.bootstrap.path(&format!("service-accounts/{account}"));
        let shown = self.done(&Request::get(revoke, &self.bootstrap.token))?;
        if shown.to_string().contains(secret_part(&second)?) {
            return Err(Failure::new("an account shows the secret of its token"));
        }
        let mut end = Request {
            method: "DELETE",
            ..Request::get(
                self.bootstrap.path(&format!("service-accounts/{account}")),
                &self.bootstrap.token,
            )
        };
        end.headers = vec![
            ("Idempotency-Key", format!("leaks-end-{:08}", self.keys)),
            ("X-Reason", REASON.to_owned()),
            ("X-Confirm", "true".to_owned()),
        ];
        self.done(&end)?;
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
        let body =
            json!({ "name": format!("Credential {}", self.keys), "kind": "bearer_token", "secret": secret });
        let create = self.write("POST", &all, body.clone());
        let made = self.done(&create)?;
        self.done(&create)?;
        let id = made.pointer("/credential/id").or_else(|| made.get("id"));
        let id = id.and_then(Value::as_str).context("no credential")?.to_owned();
        let one = format!("{all}/{id}");
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
