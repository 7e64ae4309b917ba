//! One request by chance: an operation, a caller, records, a body, and what is wrong with them.

use super::form::Form;
use super::scene::Scene;
use super::values::{HOSTILE, mutate};
use crate::areas;
use crate::samples::{self, Target};
use crate::support::{Dice, fresh_key};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use provost_kernel::auth::Role;
use provost_kernel::operation::{Access, Consent, Entry, Kind, Method};
use serde_json::Value;

/// A request of any kind.
pub fn request(scene: &Scene, dice: &mut Dice) -> Form {
    let entries = scene.app.kernel.registry.entries();
    let place = dice.below(entries.len());
    let target = target(scene, place, dice);
    let mut form = begin(scene, place, &target);
    form.caller = if dice.chance(2) {
        "admin".to_owned()
    } else {
        dice.pick(&scene.callers).name.to_owned()
    };
    let changes = [0, 0, 1, 1, 2, 3][dice.below(6)];
    query(scene, &mut form, place, dice);
    fill(scene, &mut form, place, &target, changes, dice);
    odd_headers(&mut form, dice);
    if dice.chance(60) {
        wild(&mut form, dice);
    }
    form
}

/// A write that must be refused.
pub fn refused(scene: &Scene, dice: &mut Dice) -> Form {
    let entries = scene.app.kernel.registry.entries();
    let writes: Vec<usize> = (0..entries.len())
        .filter(|place| entries[*place].meta.kind == Kind::Write)
        .collect();
    loop {
        let place = *dice.pick(&writes);
        let foreign = dice.chance(4) && !entries[place].meta.path_parameters().is_empty();
        let target = if foreign {
            &scene.foreign
        } else {
            &scene.own[place]
        };
        let mut form = begin(scene, place, target);
        form.caller = dice.pick(&scene.callers).name.to_owned();
        fill(scene, &mut form, place, target, 1 + dice.below(2), dice);
        let role = scene.caller(&form.caller).role;
        let unfit = match (entries[place].meta.access, role) {
            (_, None) | (Access::OfKind { .. }, _) => true,
            (
                Access::Scoped { roles, .. }
                | Access::ScopedEither { roles, .. }
                | Access::ScopedBoth { roles, .. },
                Some(role),
            ) => !roles.contains(&role),
            _ => role == Some(Role::Viewer) && foreign,
        };
        if unfit || form.wrong.is_some() || form.names_a_foreign_record(scene) {
            form.wrong.get_or_insert("it must be refused");
            return form;
        }
    }
}

fn target(scene: &Scene, place: usize, dice: &mut Dice) -> Target {
    match dice.below(14) {
        0 => scene.foreign.clone(),
        1 => Target::absent(),
        2 => Target::malformed(),
        3 => hostile(dice),
        4..=6 => scene.learned_target(place, dice),
        _ => scene.own[place].clone(),
    }
}

/// Text of every kind where ids belong.
fn hostile(dice: &mut Dice) -> Target {
    let mut text = || {
        let text = match dice.below(4) {
            0 => "a".repeat(*dice.pick(&[1, 255, 256, 257, 2000])),
            _ => dice.pick(&HOSTILE).to_string(),
        };
        utf8_percent_encode(&text, NON_ALPHANUMERIC).to_string()
    };
    let mut target = Target {
        account: text(),
        token: text(),
        entry: text(),
        others: Target::absent().others,
    };
    for id in target.others.values_mut() {
        *id = text();
    }
    target
}

fn begin(scene: &Scene, place: usize, target: &Target) -> Form {
    let meta = scene.app.kernel.registry.entries()[place].meta;
    Form {
        method: meta.method.as_str().to_owned(),
        target: scene.app.path(&samples::path(meta, target)),
        operation: Some(place),
        ..Form::default()
    }
}

/// Adds to the query, or breaks it.
fn query(scene: &Scene, form: &mut Form, place: usize, dice: &mut Dice) {
    let described = scene
        .document
        .operation(scene.app.kernel.registry.entries()[place].meta.id);
    let mut add = |name: &str, value: &str| {
        form.target
            .push(if form.target.contains('?') { '&' } else { '?' });
        form.target
            .push_str(&utf8_percent_encode(name, NON_ALPHANUMERIC).to_string());
        form.target.push('=');
        form.target
            .push_str(&utf8_percent_encode(value, NON_ALPHANUMERIC).to_string());
    };
    for (name, schema) in &described.query {
        if !dice.chance(4) {
            continue;
        }
        let value = match (name.as_str(), scene.cursor(dice)) {
            ("cursor", Some(cursor)) if dice.chance(2) => cursor,
            _ => match scene.document.value(dice, schema, 4) {
                Value::String(text) => text,
                other => other.to_string(),
            },
        };
        add(name, &value);
    }
    if dice.chance(25) {
        let (name, value) = (*dice.pick(&HOSTILE), *dice.pick(&HOSTILE));
        add(name, value);
        form.wrong = Some("the query holds an unknown parameter");
    } else if dice.chance(40) {
        // Without a question mark it would be another path.
        if !form.target.contains('?') {
            form.target.push('?');
        }
        form.target
            .push_str(dice.pick::<&str>(&["&&", "&=", "?", "#x", "&a=%ff", "&limit=%", ";x=1"]));
    }
}

/// Gives the request its body and its mutation metadata.
fn fill(scene: &Scene, form: &mut Form, place: usize, target: &Target, changes: usize, dice: &mut Dice) {
    let entry = &scene.app.kernel.registry.entries()[place];
    if let Some((media_type, mut bytes)) = areas::content(entry.meta.id) {
        for _ in 0..changes {
            spoil(&mut bytes, dice);
        }
        form.header("content-type", media_type);
        form.body = bytes;
        trio_in_headers(form, entry, dice);
        return;
    }
    let takes_body = entry.meta.method.has_body() && !areas::takes_no_member(entry.meta.id);
    if !takes_body {
        trio_in_headers(form, entry, dice);
        if dice.chance(30) {
            form.body = b"{}".to_vec();
        }
        return;
    }
    let described = scene.document.operation(entry.meta.id);
    let mut body = match &described.body {
        Some(schema) if dice.chance(4) => scene.document.value(dice, schema, 8),
        _ => samples::body(entry.meta, target),
    };
    let writes = entry.meta.kind == Kind::Write;
    if writes && body.is_object() {
        body = crate::support::with_trio(body, &fresh_key());
        if entry.meta.confirm || dice.chance(3) {
            body["confirm"] = true.into();
        }
    }
    for _ in 0..changes {
        mutate(dice, &mut body);
    }
    if described.body.is_some() && !described.fits(&body) {
        form.wrong = Some("the body does not fit its schema");
    }
    if writes && dice.chance(20) {
        move_trio(form, &mut body, dice);
    }
    form.header("content-type", "application/json");
    form.body = body.to_string().into_bytes();
    if dice.chance(20) {
        unreadable(form, dice);
    }
}

fn trio_in_headers(form: &mut Form, entry: &Entry, dice: &mut Dice) {
    if entry.meta.kind == Kind::Read {
        return;
    }
    let required = entry.meta.consent == Consent::Required;
    if !dice.chance(12) {
        form.header("idempotency-key", fresh_key());
    } else if required {
        form.wrong = Some("there is no key");
    }
    if !dice.chance(12) {
        form.header("x-reason", "a test");
    } else if required {
        form.wrong = Some("there is no reason");
    }
    if entry.meta.confirm || entry.meta.method == Method::Delete {
        form.header("x-confirm", "true");
    }
}

/// Reason and key in headers instead of the body, or in both places; now and then odd ones.
fn move_trio(form: &mut Form, body: &mut Value, dice: &mut Dice) {
    let Some(members) = body.as_object_mut() else {
        return;
    };
    let both = dice.chance(3);
    let is_whole = ["reason", "idempotencyKey"]
        .iter()
        .all(|member| members.contains_key(*member));
    if !both || !is_whole {
        // Whether the rest is valid without them, the schema does not say; what a body lacks, a header may give.
        form.wrong = None;
    }
    for (member, header) in [("reason", "x-reason"), ("idempotencyKey", "idempotency-key")] {
        let value = members.get(member).and_then(Value::as_str).unwrap_or("x");
        let value = if dice.chance(4) {
            (*dice.pick(&HOSTILE)).to_owned()
        } else {
            value.to_owned()
        };
        form.header(header, value);
        if !both {
            members.remove(member);
        }
    }
}

/// Text that is not the JSON that it was.
fn unreadable(form: &mut Form, dice: &mut Dice) {
    let body = String::from_utf8_lossy(&form.body).into_owned();
    let inner = body.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let (text, wrong) = match (dice.below(8), inner) {
        (0, Some(inner)) if !inner.is_empty() => (format!("{{{inner},{inner}}}"), "members stand twice"),
        (1, _) => (
            body[..floor(&body, body.len() / 2)].to_owned() + "\u{0}",
            "it is cut",
        ),
        (2, Some(inner)) => (format!("{{{inner},}}"), "there is a comma too many"),
        (3, _) => (format!("{body}{body}"), "it stands twice"),
        (4, _) => ("[".repeat(10_000) + &"]".repeat(10_000), "it is deep"),
        (5, Some(_)) => (
            format!("{{\"a\":1e999999,{}", &body[1..]),
            "a number is too large",
        ),
        (6, _) => ("\u{feff}".to_owned() + &body, "it begins with a byte order mark"),
        _ => {
            form.body.insert(form.body.len() / 2, 0xff);
            form.wrong = Some("it is not UTF-8");
            return;
        }
    };
    form.body = text.into_bytes();
    form.wrong = Some(wrong);
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn spoil(bytes: &mut Vec<u8>, dice: &mut Dice) {
    if bytes.is_empty() {
        return;
    }
    let at = dice.below(bytes.len());
    match dice.below(5) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes.truncate(at),
        2 => {
            let copy = bytes.clone();
            bytes.extend_from_slice(&copy[at..]);
        }
        3 => {
            let odd = dice.pick(&HOSTILE).as_bytes().to_vec();
            bytes.splice(at..at, odd);
        }
        _ => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
    }
}

const HEADERS: [(&str, &str); 20] = [
    ("if-match", "*"),
    ("if-match", "\"1\""),
    ("if-none-match", "*"),
    ("if-none-match", "W/\"0\", \"1\", x"),
    ("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("range", "bytes=0-0,-1,5-2"),
    ("accept", "application/problem+json"),
    ("accept", "image/png;q=0, */*;q=0.1, ;;;"),
    ("accept-encoding", "gzip, br;q=x"),
    ("content-encoding", "gzip"),
    ("x-forwarded-for", "127.0.0.1, ::1, x"),
    ("forwarded", "for=\"[::1\";host=a"),
    ("x-http-method-override", "DELETE"),
    ("x-request-id", "req_mine"),
    (
        "traceparent",
        "00-ffffffffffffffffffffffffffffffff-0000000000000000-zz",
    ),
    ("origin", "null"),
    ("cookie", "a=b; c"),
    ("prefer", "return=minimal"),
    ("x-forge-terraform-manager", "other"),
    ("te", "trailers"),
];

fn odd_headers(form: &mut Form, dice: &mut Dice) {
    while dice.chance(8) {
        let (name, value) = *dice.pick(&HEADERS);
        form.header(name, value);
    }
    if dice.chance(40) {
        let types = [
            "text/plain",
            "application/json; charset=utf-16",
            "application/JSON",
            "",
            "*/*",
            "a/b",
        ];
        form.headers.retain(|(name, _)| name != "content-type");
        form.header("content-type", *dice.pick(&types));
    }
    if dice.chance(60) {
        form.header("authorization", "Basic YTpi");
    }
    if dice.chance(60) {
        form.header("x-odd", vec![0xff, b'a']);
    }
}

/// A path or a method that nobody declared.
fn wild(form: &mut Form, dice: &mut Dice) {
    form.operation = None;
    form.wrong = None;
    if dice.chance(2) {
        form.method = (*dice.pick(&[
            "GET", "PUT", "PATCH", "DELETE", "POST", "TRACE", "X", "OPTIONS", "HEAD",
        ]))
        .into();
        return;
    }
    let odd = utf8_percent_encode(dice.pick::<&str>(&HOSTILE), NON_ALPHANUMERIC).to_string();
    match dice.below(4) {
        0 => form.target.push_str(&odd),
        1 => {
            form.target = form
                .target
                .replacen("/organizations/", &format!("/organizations/{odd}"), 1);
        }
        2 => form.target = form.target.replacen("/api/", "/api//", 1),
        _ => form.target = format!("/{odd}/{odd}"),
    }
}
