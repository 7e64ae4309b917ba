//! A client with keys of its own, for `cargo xtask bench mcp`: it prints its key set, and assertions when asked.
//!
//! One line in, `CLIENT_ID AUDIENCE NOW COUNT`, `NOW` in seconds since 1970; so many lines out, each an assertion by
//! which the client proves itself (RFC 7523) for the next five minutes.
#![forbid(unsafe_code)]

use provost_oauth::corpus::{Template, Workshop};
use serde_json::json;
use std::io::{BufRead, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Of the template only the keys are used: what an assertion says stands below.
    let template = Template {
        issuer: String::new(),
        audience: String::new(),
        organization: String::new(),
        subject: String::new(),
        client_id: String::new(),
        scope: String::new(),
        now: 0,
    };
    let workshop = Workshop::new(template).ok_or("no keys can be made")?;
    let ed = workshop.key_set()["keys"][0].clone();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json!({ "keys": [ed] }))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let [client, audience, now, count] = words[..] else {
            return Err("needs: CLIENT_ID AUDIENCE NOW COUNT".into());
        };
        let now = now.parse::<u64>()?;
        for number in 0..count.parse::<u32>()? {
            let claims = json!({
                "iss": client, "sub": client, "aud": audience, "jti": format!("{now}-{number}"),
                "iat": now, "exp": now + 300,
            });
            let header = json!({ "alg": "EdDSA", "kid": "ed" });
            writeln!(out, "{}", workshop.signed(&header, &claims))?;
        }
    }
    Ok(())
}
