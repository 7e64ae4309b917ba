//! The one row of this half of the area: a consent that was given serves once (SI-4).

use aws_lc_rs::digest::{SHA256, digest};
use provost_kernel::{Cx, Result, params};

provost_kernel::statements! {
    /// Notes what served, beside the assertions that did.
    USE = "INSERT INTO oauth_assertions (organization_id, digest, expires_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
}

/// Notes that a consent was used; says whether it is the first time.
pub fn use_once(cx: &mut Cx<'_>, consent: &str) -> Result<bool> {
    // Longer than the text that carries it can be opened.
    let until = cx.now().plus_secs(1200);
    let digest = digest(&SHA256, format!("consent\0{consent}").as_bytes());
    let (org, digest): (_, &[u8]) = (cx.org(), digest.as_ref());
    Ok(cx.execute(&USE, params![org, digest, until])? == 1)
}
