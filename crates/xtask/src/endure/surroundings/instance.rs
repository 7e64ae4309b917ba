//! One more PostgreSQL server of a drill, in the folder of a cluster; it ends with this value, and the folder with the cluster.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use super::scene::wait;
use crate::failure::{Context, Outcome};
use crate::postgres::{Binaries, as_owner_of};
use crate::process;

pub struct Instance {
    child: Child,
    binaries: Binaries,
    folder: PathBuf,
    port: u16,
}

impl Instance {
    /// Starts a server on data that lies in a folder of that folder, and waits until it answers at its socket.
    pub fn start(
        binaries: &Binaries,
        folder: &Path,
        data: &str,
        port: u16,
        settings: &[&str],
    ) -> Outcome<Self> {
        let log = std::fs::File::create(folder.join(format!("{data}.log"))).context("cannot create a log")?;
        let mut server = binaries.program("postgres");
        server.arg("-D").arg(folder.join(data)).arg("-k").arg(folder);
        server.args(["-p", &port.to_string()]);
        for setting in settings {
            server.args(["-c", setting]);
        }
        as_owner_of(folder, &mut server)?;
        let child = server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start a PostgreSQL server")?;
        let instance = Self {
            child,
            binaries: binaries.clone(),
            folder: folder.to_path_buf(),
            port,
        };
        wait(
            Duration::from_secs(30),
            "a PostgreSQL server did not start",
            || instance.ask("SELECT 1").is_ok(),
        )?;
        Ok(instance)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// Asks it something in its first database.
    pub fn ask(&self, sql: &str) -> Outcome<String> {
        ask(&self.binaries, &self.folder, self.port, sql)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        process::signal(self.child.id(), "QUIT");
        drop(self.child.wait());
    }
}

/// Asks whoever listens at a socket of that folder.
pub fn ask(binaries: &Binaries, folder: &Path, port: u16, sql: &str) -> Outcome<String> {
    let mut psql = binaries.program("psql");
    psql.args(["-X", "-q", "-At", "-U", "postgres", "-d", "postgres", "-h"]);
    psql.arg(folder)
        .args(["-p", &port.to_string(), "-v", "ON_ERROR_STOP=1", "-c", sql]);
    Ok(process::output(&mut psql)?.trim().to_owned())
}
