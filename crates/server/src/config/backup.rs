//! How `provost store backup --to s3://…` reaches the store of backups.

use super::Problem;
use super::s3::s3_section;
use provost_history::object_store::ObjectStore;
use std::sync::Arc;
use tokio::runtime::Handle;

s3_section! {
    /// How `provost store backup --to s3://…` reaches the S3-compatible store of backups.
    pub struct BackupStore {}
}

impl BackupStore {
    /// Checks what the types do not say.
    pub fn check(&self) -> Result<(), Problem> {
        self.s3().check_endpoint("backup")?;
        if self.access_key_id_file.is_some() != self.secret_access_key_file.is_some() {
            return Err(Problem(
                "backup.access_key_id_file and backup.secret_access_key_file belong together".into(),
            ));
        }
        Ok(())
    }

    /// Opens `s3://bucket/prefix`; nothing is asked of the store yet. Requests run on the runtime, which must have threads of its own.
    pub fn open(&self, url: &str, runtime: &Handle) -> Result<Arc<ObjectStore>, Problem> {
        self.check()?;
        let without_keys =
            "a backup to s3:// needs backup.access_key_id_file and backup.secret_access_key_file";
        self.s3()
            .open(("the store of backups", url), without_keys, runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_belong_together_and_the_way_is_private() {
        let whole = BackupStore {
            access_key_id_file: Some("id".into()),
            secret_access_key_file: Some("secret".into()),
            ..BackupStore::default()
        };
        assert!(BackupStore::default().check().is_ok() && whole.check().is_ok());
        let with = |change: fn(&mut BackupStore)| {
            let mut store = whole.clone();
            change(&mut store);
            store.check()
        };
        assert!(with(|store| store.endpoint = Some("http://127.0.0.1:9000".into())).is_ok());
        assert!(with(|store| store.endpoint = Some("http://minio:9000".into())).is_err());
        assert!(with(|store| store.secret_access_key_file = None).is_err());
    }
}
