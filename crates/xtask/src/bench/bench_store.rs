//! Where one engine is measured: a folder, a cluster where there is one, an installation in it.

use std::path::Path;
use std::time::Duration;

use super::machine;
use crate::Engine;
use crate::failure::{Context, Outcome};
use crate::postgres::{Binaries, Cluster, Durability};
use crate::product::{Installation, Server, Store, Workplace};

pub struct BenchStore {
    workplace: Workplace,
    cluster: Option<Cluster>,
    pub engine: Engine,
    pub installation: Installation,
}

/// Processor time so far.
pub struct Spent {
    pub server: Option<Duration>,
    /// Of all processes of the cluster, where there is one.
    pub postgres: Option<Duration>,
}

/// Measures each engine in a place of its own, which stays behind when that fails.
pub fn each<T>(
    engines: Engine,
    purpose: &str,
    binary: &Path,
    binaries: Option<&Binaries>,
    measure: impl Fn(&BenchStore) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    let one = |engine: Engine| {
        let place = BenchStore::create(purpose, engine, binary, binaries)?;
        let log = place.installation.log.display();
        let measured = measure(&place).context(format_args!("{}, log in {log}", engine.name()))?;
        place.remove()?;
        Ok(measured)
    };
    engines.each().into_iter().map(one).collect()
}

fn store(workplace: &Workplace, cluster: Option<&Cluster>, name: &str) -> Outcome<Store> {
    let Some(cluster) = cluster else {
        return Ok(Store::Sqlite {
            data: workplace.folder.join(name),
        });
    };
    cluster.create_database(name)?;
    Ok(Store::Postgres {
        url: cluster.url(name),
        keys: workplace.folder.join(format!("{name}-keys")),
    })
}

impl BenchStore {
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
        let store = store(&workplace, cluster.as_ref(), "main")?;
        let installation = Installation::new(binary, store, &workplace.folder);
        Ok(Self {
            workplace,
            cluster,
            engine,
            installation,
        })
    }

    /// Another installation in the same place; nothing is in it yet.
    pub fn beside(&self, name: &str) -> Outcome<Installation> {
        Ok(Installation {
            store: store(&self.workplace, self.cluster.as_ref(), name)?,
            log: self.folder().join(format!("{name}.log")),
            ..self.installation.clone()
        })
    }

    /// The cluster, where there is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    pub fn folder(&self) -> &Path {
        &self.workplace.folder
    }

    /// A folder on the disk that commits go to.
    pub fn disk(&self) -> &Path {
        self.cluster.as_ref().map_or(self.folder(), Cluster::folder)
    }

    pub fn spent(&self, server: &Server) -> Spent {
        let cluster = self.cluster.as_ref().and_then(Cluster::pid);
        Spent {
            server: machine::cpu_time(server.pid()),
            postgres: cluster.and_then(machine::cpu_time_of_family),
        }
    }

    /// Ends the cluster and removes the folder.
    pub fn remove(self) -> Outcome {
        drop(self.cluster);
        self.workplace.remove()
    }
}
