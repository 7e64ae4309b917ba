//! No text is an access token but one that its issuer signed, and what is accepted says what it must (R33).
//!
//! Half of the texts are forgeries, made of good tokens without the issuer's keys: each must be refused. The others are
//! oddities, rightly signed: what is accepted of them must pass a second reading, which is written here from RFC 9068
//! and the decisions alone and knows less, and must come out as that reading has it. One text in a thousand goes
//! through the whole application as well.
//!
//! Absent on purpose: forging by breaking the algorithms, and signatures of PS256 over oddities (a millisecond each).

use super::run;
use crate::access::oauth::{API, read, token, trusting, user, workshop};
use crate::support::{App, Dice, seed};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use provost_oauth::Claims;
use provost_oauth::access_token::{Issuer, verify};
use provost_oauth::corpus::{ALLOWED, Workshop};
use provost_oauth::{Algorithm, Refusal};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Seconds by which clocks may differ, and the longest life (D2.6).
const LEEWAY: i64 = 60;
const LIFE: i64 = 86_400;

/// Members of an object as they stand, the repeated ones too: what `serde_json`'s own map would hide.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;
            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Collect)
    }
}

/// The second reading: an object without repeated members.
fn object(part: &str) -> Option<Map<String, Value>> {
    let Members(members) = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()?;
    let count = members.len();
    let object: Map<String, Value> = members.into_iter().collect();
    (object.len() == count).then_some(object)
}

/// What must hold of an accepted token, whatever else does; the error names what does not.
fn demanded(text: &str, issuer: &str, now: i64, claims: &Claims) -> Result<(), &'static str> {
    let parts: Vec<&str> = text.split('.').collect();
    let [header, payload, _] = parts[..] else {
        return Err("three parts");
    };
    let header = object(header).ok_or("a header")?;
    let said = object(payload).ok_or("claims")?;
    let check = |holds: bool, what: &'static str| if holds { Ok(()) } else { Err(what) };
    let kid = header.get("kid").map(|kid| kid.as_str().unwrap_or_default());
    let fits = |name| kid.is_none_or(|kid| kid == name);
    let named = match header.get("alg").and_then(Value::as_str) {
        Some("EdDSA") => fits("ed"),
        Some("ES256") => fits("ec"),
        Some("PS256") => fits("rsa"),
        _ => false,
    };
    check(named, "an algorithm that is allowed, and a key of it")?;
    let typ = header.get("typ").and_then(Value::as_str).unwrap_or_default();
    let typ = typ.to_ascii_lowercase();
    check(matches!(&*typ, "at+jwt" | "application/at+jwt"), "a type")?;
    let dangerous = ["crit", "b64", "zip", "jku", "jwk", "x5u", "x5c"];
    check(
        !dangerous.iter().any(|name| header.contains_key(*name)),
        "a harmless header",
    )?;

    let text = |name: &str| said.get(name).and_then(Value::as_str).unwrap_or_default();
    check(text("iss") == issuer && claims.issuer == issuer, "the issuer")?;
    let serves = match said.get("aud") {
        Some(Value::Array(all)) => all.iter().any(|one| one == API),
        Some(one) => one == API,
        None => false,
    };
    check(serves, "the audience")?;
    for (name, read) in [
        ("sub", &claims.subject),
        ("client_id", &claims.client_id),
        ("organization_id", &claims.organization),
        ("jti", &claims.id),
    ] {
        check(!read.is_empty() && text(name) == read, "who and where")?;
    }
    let session = said.get("sid").map(|sid| sid.as_str().unwrap_or_default());
    check(session == claims.session.as_deref(), "the session")?;
    check(
        said.contains_key("cnf") == claims.confirmation.is_some(),
        "the binding",
    )?;
    let mut scopes = claims.scopes.iter();
    check(
        scopes.all(|scope| text("scope").split(' ').any(|word| word == scope)),
        "no more scopes",
    )?;

    let instant = |name: &str| said.get(name).and_then(Value::as_i64);
    let (Some(iat), Some(exp)) = (instant("iat"), instant("exp")) else {
        return Err("instants");
    };
    check(
        iat == claims.issued_at && exp == claims.expires_at,
        "its instants",
    )?;
    check(exp > now - LEEWAY && iat <= now + LEEWAY, "a period around now")?;
    check(
        (1..=LIFE).contains(&(i128::from(exp) - i128::from(iat)).try_into().unwrap_or(0)),
        "a short life",
    )?;
    let begun = said
        .get("nbf")
        .is_none_or(|nbf| nbf.as_i64().is_some_and(|nbf| nbf <= now + LEEWAY));
    check(begun, "begun")
}

struct Bench {
    owner: Workshop,
    /// Has the same names of keys, and other keys.
    stranger: Workshop,
    issuer: Issuer,
    good: Vec<String>,
    /// Headers and claims of the corpus of attacks, encoded.
    heads: Vec<String>,
    bodies: Vec<String>,
    odd: Vec<Value>,
}

impl Bench {
    fn of(app: &App, owner: Workshop) -> Self {
        let mut good = Vec::new();
        for algorithm in ALLOWED {
            for subject in ["subject-1", "subject-2", "admin"] {
                let mut claims = owner.claims();
                claims["sub"] = subject.into();
                good.push(owner.signed(&Workshop::header(algorithm), &claims));
            }
        }
        let (mut heads, mut bodies) = (Vec::new(), Vec::new());
        for text in owner.attacks().iter().map(|attack| &attack.token).chain(&good) {
            let mut parts = text.split('.').map(str::to_owned);
            heads.extend(parts.next());
            bodies.extend(parts.next());
        }
        Self {
            odd: odd(&owner),
            issuer: owner.issuer(),
            stranger: workshop(app),
            owner,
            good,
            heads,
            bodies,
        }
    }

    /// A text that the issuer did not sign.
    fn forgery(&self, dice: &mut Dice) -> String {
        let good = dice.pick(&self.good).clone();
        let parts: Vec<String> = good.split('.').map(str::to_owned).collect();
        let [header, claims, signature] = &parts[..] else {
            unreachable!("a good token has three parts")
        };
        let decoded = |part: &str| Value::Object(object(part).unwrap());
        match dice.below(9) {
            0 => changed_text(dice, good, |dice, old| old ^ (1 << dice.below(7))),
            1 | 2 => changed_text(dice, good, |dice, _| *dice.pick(LETTERS)),
            3 => cut_or_grown(dice, good),
            // Parts of several tokens.
            4 => {
                let (head, body) = (dice.pick(&self.heads).clone(), dice.pick(&self.bodies).clone());
                let head = if dice.chance(2) { head } else { header.clone() };
                format!("{head}.{body}.{signature}")
            }
            // Another header or other claims under the old signature.
            5 => {
                let mut other = decoded(header);
                self.change(dice, &mut other);
                format!(
                    "{}.{claims}.{signature}",
                    URL_SAFE_NO_PAD.encode(other.to_string())
                )
            }
            6 => {
                let mut other = decoded(claims);
                self.change(dice, &mut other);
                format!(
                    "{header}.{}.{signature}",
                    URL_SAFE_NO_PAD.encode(other.to_string())
                )
            }
            // A stranger's signature under a key's right name.
            7 => {
                let algorithm = *dice.pick(&[Algorithm::EdDsa, Algorithm::Es256]);
                self.stranger
                    .signed(&Workshop::header(algorithm), &decoded(claims))
            }
            // Bytes that were never a signature.
            _ => {
                let length = *dice.pick(&[0, 1, 63, 64, 65, 70, 256]);
                let kind = dice.below(3);
                let byte = |_| {
                    if kind == 0 {
                        0
                    } else {
                        dice.below(256).to_le_bytes()[0]
                    }
                };
                let bytes: Vec<u8> = (0..length).map(byte).collect();
                format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode(bytes))
            }
        }
    }

    /// A token that says something odd, rightly signed.
    fn oddity(&self, dice: &mut Dice) -> String {
        let algorithm = *dice.pick(&[Algorithm::EdDsa, Algorithm::EdDsa, Algorithm::Es256]);
        let (mut header, mut claims) = (Workshop::header(algorithm), self.owner.claims());
        let changes = dice.below(3);
        for _ in 0..changes {
            self.change(dice, &mut claims);
        }
        if changes == 0 || dice.chance(4) {
            self.change(dice, &mut header);
        }
        if dice.chance(2) {
            return self.owner.signed(&header, &claims);
        }
        // As text, which no JSON library would have written.
        let (mut header, mut claims) = (header.to_string(), claims.to_string());
        let text = if dice.chance(4) { &mut header } else { &mut claims };
        match dice.below(3) {
            0 => {
                *text = changed_text(dice, text.clone(), |dice, _| {
                    b' ' + dice.below(94).to_le_bytes()[0]
                });
            }
            1 => *text = cut_or_grown(dice, text.clone()),
            _ => {
                let name = dice.pick(&["alg", "kid", "sub", "aud", "exp", "iss", "organization_id", "x"]);
                *text = format!("{{\"{name}\":{},{}", dice.pick(&self.odd), &text[1..]);
            }
        }
        self.owner.signed_bytes(header.as_bytes(), claims.as_bytes())
    }

    /// Another value of a member, one member less, or one more.
    fn change(&self, dice: &mut Dice, object: &mut Value) {
        let members = object.as_object_mut().unwrap();
        let names: Vec<String> = members.keys().cloned().collect();
        let name = dice.pick(&names).clone();
        let new = *dice.pick(&[
            "crit", "jwk", "jku", "x5c", "b64", "zip", "cnf", "act", "nbf", "aud", "x",
        ]);
        match dice.below(6) {
            0 => drop(members.remove(&name)),
            1 => drop(members.insert(new.to_owned(), dice.pick(&self.odd).clone())),
            2 => {
                let value = members[&name].clone();
                members.insert(name, json!([dice.pick(&self.odd), value]));
            }
            _ => drop(members.insert(name, dice.pick(&self.odd).clone())),
        }
    }
}

/// Up to four bytes of a text replaced.
fn changed_text(dice: &mut Dice, text: String, new: impl Fn(&mut Dice, u8) -> u8) -> String {
    let mut bytes = text.into_bytes();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        bytes[at] = new(dice, bytes[at]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Some bytes of a text left out, repeated, or moved.
fn cut_or_grown(dice: &mut Dice, text: String) -> String {
    let mut bytes = text.into_bytes();
    let at = dice.below(bytes.len());
    let end = (at + 1 + dice.below(8)).min(bytes.len());
    let part = bytes[at..end].to_vec();
    let kind = dice.below(3);
    if kind != 1 {
        bytes.drain(at..end);
    }
    if kind != 0 {
        let to = dice.below(bytes.len() + 1);
        bytes.splice(to..to, part);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Values that claims and members of headers are changed to: right ones of other members, near ones, and nonsense.
fn odd(owner: &Workshop) -> Vec<Value> {
    let now = owner.template().now;
    let mut odd: Vec<Value> = owner.claims().as_object().unwrap().values().cloned().collect();
    for word in [
        "EdDSA",
        "ES256",
        "PS256",
        "RS256",
        "HS256",
        "none",
        "None",
        "eddsa",
        "at+jwt",
        "AT+JWT",
        "JWT",
        "jwt",
        "application/at+jwt",
        "dpop+jwt",
        "ed",
        "ec",
        "rsa",
        "ED",
        "../ed",
        "",
        " ",
        "\u{0}",
        "admin",
        "policies:read",
        "policies:write tokens:write",
        "*",
        "a  b",
    ] {
        odd.push(word.into());
    }
    for url in ["https://issuer.example", "http://127.0.0.1:8080", API] {
        for near in [
            format!("{url}/"),
            format!(" {url}"),
            format!("{url}\u{200b}"),
            url.to_uppercase(),
        ] {
            odd.push(near.into());
        }
        odd.push(json!([url]));
        odd.push(json!([url, API]));
    }
    for secs in [
        -LIFE,
        -LEEWAY - 1,
        -LEEWAY,
        -1,
        0,
        1,
        LEEWAY,
        LEEWAY + 1,
        LIFE - 1,
        LIFE,
        LIFE + 1,
    ] {
        odd.push((now + secs).into());
    }
    for value in [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(-1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1.5),
        // The moment as a fraction, which RFC 7519 section 2 allows.
        json!(f64::from(u32::try_from(now).unwrap_or(u32::MAX))),
        json!([]),
        json!({}),
        json!(["none"]),
        json!({ "jkt": "A".repeat(43) }),
        json!({ "jkt": 1 }),
        json!({ "sub": "agent" }),
        json!(["b64"]),
        json!("x".repeat(600)),
    ] {
        odd.push(value);
    }
    odd
}

#[derive(Default)]
struct Counts {
    texts: u64,
    /// Refused for their signature and nothing before it.
    signatures: u64,
    oddities: u64,
    accepted: u64,
    asked: u64,
}

/// Proves OA-1.
#[test]
fn no_forged_jwt_is_accepted_and_no_odd_one_for_what_it_is_not() {
    let (seed, whole) = (seed("jwts"), run::count(20_000));
    run::each("jwts", &run::roomy(), |app: Arc<App>| async move {
        let owner = workshop(&app);
        let server = trusting(&app, &owner);
        user(&server, "ann@acme.example", Some("viewer")).await;
        assert_eq!(read(&server, &token(&owner, |_| {})).await.status.as_u16(), 200);
        let bench = Bench::of(&app, owner);
        let now = bench.owner.template().now;
        let verified = |text: &str, now| verify(text, &bench.issuer, &[API], now);
        for good in &bench.good {
            let claims = verified(good, now).unwrap();
            assert_eq!(demanded(good, &bench.issuer.url, now, &claims), Ok(()));
        }
        let mut dice = Dice::of(seed);
        let mut counts = Counts::default();
        let progress = run::Progress::of("jwts", whole);
        while counts.texts < whole {
            let at = now + *dice.pick(&[0, 0, 0, -LEEWAY - 1, -LEEWAY, 3599, 3600, 3659, 3660, LIFE]);
            let is_odd = dice.chance(2);
            let text = if is_odd {
                bench.oddity(&mut dice)
            } else {
                bench.forgery(&mut dice)
            };
            if !is_odd && bench.good.contains(&text) {
                continue; // what was changed was changed to itself
            }
            match verified(&text, at) {
                Ok(claims) => {
                    assert!(
                        is_odd,
                        "seed {seed}: forgery {} is accepted: {text}",
                        counts.texts
                    );
                    let judged = demanded(&text, &bench.issuer.url, at, &claims);
                    assert_eq!(
                        judged,
                        Ok(()),
                        "seed {seed}, text {}, at {at}: {text}",
                        counts.texts
                    );
                    counts.accepted += 1;
                }
                Err(refusal) => counts.signatures += u64::from(refusal == Refusal::Signature),
            }
            if counts.texts.is_multiple_of(1000) && http::HeaderValue::from_str(&text).is_ok() {
                let status = read(&server, &text).await.status.as_u16();
                let may_pass = is_odd && verified(&text, now).is_ok();
                assert!(
                    status == 401 || may_pass && matches!(status, 200 | 403),
                    "{status}: {text}"
                );
                counts.asked += 1;
            }
            counts.oddities += u64::from(is_odd);
            counts.texts += 1;
            progress.add(1);
        }
        server.kernel.stop().await;
        counts.figures(seed)
    });
}

impl Counts {
    fn figures(&self, seed: u64) -> Value {
        let forged = self.texts - self.oddities;
        assert!(
            self.signatures * 4 > forged,
            "most forgeries end before their signature is looked at"
        );
        assert!(
            self.accepted * 50 > self.oddities,
            "hardly any oddity is accepted: nothing was judged"
        );
        assert!(self.accepted < self.oddities && self.asked > 0);
        json!({
            "seed": seed, "texts": self.texts, "forged": forged, "forgedAccepted": 0,
            "refusedForTheSignature": self.signatures, "signedOddities": self.oddities,
            "acceptedOddities": self.accepted, "throughTheApplication": self.asked,
        })
    }
}
