//! Where one engine is measured: a folder, a cluster where there is one, an installation in it.

use std::path::Path;
use std::time::Duration;

use super::machine;
use crate::Engine;
use crate::failure::Outcome;
use crate::postgres::{Binaries, Cluster, Durability};
use crate::product::{Installation, Server, Store, Workplace};

pub struct Place {
    workplace: Workplace,
    cluster: Option<Cluster>,
    pub engine: Engine,
    pub installation: Installation,
}

impl Place {
    /// An installation that keeps every commit, as a user's does; nothing is in it yet.
    pub fn create(
        purpose: &str,
        engine: Engine,
        binary: &Path,
        binaries: Option<&Binaries>,
    ) -> Outcome<Self> {
        let workplace = Workplace::create(&format!("{purpose}-{}", engine.word()))?;
        let cluster = match binaries {
            Some(binaries) if engine == Engine::Postgres => Some(Cluster::start(binaries, Durability::Full)?),
            _ => None,
        };
        let store = if let Some(cluster) = &cluster {
            cluster.create_database("main")?;
            Store::Postgres {
                url: cluster.url("main"),
                keys: workplace.folder.join("main-keys"),
            }
        } else {
            Store::Sqlite {
                data: workplace.folder.join("main"),
            }
        };
        let installation = Installation {
            binary: binary.to_path_buf(),
            store,
            environment: Vec::new(),
            configuration: None,
            log: workplace.folder.join("server.log"),
        };
        Ok(Self {
            workplace,
            cluster,
            engine,
            installation,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.workplace.folder
    }

    /// Processor time of the server, and of PostgreSQL where it is there.
    pub fn cpu(&self, server: &Server) -> Option<Duration> {
        let cluster = self.cluster.as_ref().and_then(Cluster::pid);
        let of_postgres = cluster.and_then(machine::cpu_time_of_family);
        Some(machine::cpu_time(server.pid())? + of_postgres.unwrap_or_default())
    }

    pub fn remove(self) -> Outcome {
        drop(self.cluster);
        self.workplace.remove()
    }
}
