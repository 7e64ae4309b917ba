//! The disk of the keys folder is full: what needs a new file or line there is refused, everything else goes on, and it
//! recovers when there is room.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::scene::{Account, Scene, ask, expect, keep_keys_in, readiness, wait};
use super::{Arguments, Report};
use crate::bench::bench_store::BenchStore;
use crate::failure::{Context, Failure, Outcome};
use crate::http::Request;
use crate::process;

/// More ends than the rest of a page of memory holds.
const ENDS: usize = 40;

/// A small file system in memory; it is taken away when dropped.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        process::works(Command::new("umount").arg("-l").arg(&self.0));
    }
}

pub fn run(place: &BenchStore, _: &Arguments, seed: u64) -> Outcome<Report> {
    let folder = place.folder().join("small-disk");
    std::fs::create_dir_all(&folder).context("cannot make a folder")?;
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs"])
        .arg(&folder);
    if let Err(failure) = process::output(&mut mount) {
        return Ok(Report::Absent(format!(
            "no file system can be mounted: {failure}"
        )));
    }
    let disk = Disk(folder);
    let mut installation = place.beside("keys-disk")?;
    keep_keys_in(&mut installation, &disk.0.join("keys"));
    let scene = Scene::of(installation, seed)?;
    let server = scene.installation.serve()?;
    let accounts: Vec<Account> = (0..ENDS)
        .map(|number| scene.make_account(server.address, &format!("to be disabled {number}")))
        .collect::<Outcome<_>>()?;
    fill(&disk.0)?;

    let when = "while the disk of the keys is full";
    for number in 0..5 {
        expect(
            server.address,
            &scene.account(&format!("full {number}")),
            &[201],
            when,
        )?;
    }
    let event = json!({ "occasion": "pre_tool", "attributes": { "tool.id": "rm" } });
    let decide = Request::new(
        "POST",
        scene.bootstrap.path("policies/decisions"),
        &scene.bootstrap.token,
    )
    .with_body(json!({ "events": [event] }));
    expect(server.address, &decide, &[200], when)?;
    // The end of a right is written beside the keys before it is answered. The last page of a file has room for some more.
    let mut refused = None;
    for account in &accounts {
        let disable = scene.disable(account);
        let answer = expect(server.address, &disable, &[200, 503], when)?;
        if answer.status == 503 {
            refused = Some((account, disable));
            break;
        }
    }
    let Some((account, disable)) = refused else {
        return Err(Failure::new(format!(
            "VIOLATION: {when} {ENDS} accounts were disabled, and nothing beside the keys can say so"
        )));
    };
    scene.acts(
        server.address,
        &account.token,
        &[200],
        "of an account whose end was refused",
    )?;
    if readiness(server.address)? != 200 {
        return Err(Failure::new(format!(
            "VIOLATION: {when} the server takes no requests"
        )));
    }
    std::fs::remove_file(disk.0.join("filler")).context("cannot make room")?;
    wait(
        Duration::from_secs(20),
        "an end is not possible when there is room again",
        || ask(server.address, &disable).is_ok_and(|answer| answer.status == 200),
    )?;
    scene.acts(
        server.address,
        &account.token,
        &[401, 403],
        "of an account that was disabled",
    )?;
    server.stop()?;
    scene.installation.check(&["audit", "verify"])?;
    scene.installation.check(&["store", "check"])?;
    Ok(Report::Seen(
        "with a full keys disk changes, decisions and reads go on, the end of a right is a 503, and works when there is room"
            .into(),
    ))
}

/// Writes until there is no room.
fn fill(folder: &Path) -> Outcome {
    let filler = folder.join("filler");
    let mut block = vec![0_u8; 4_096];
    let mut file = std::fs::File::create(&filler).context("cannot create the filler")?;
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    // The last bytes too.
    block.truncate(1);
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    Ok(())
}
