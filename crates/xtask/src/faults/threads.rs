//! Threads of a running process, by name.

use crate::failure::{Context, Failure, Outcome};

/// The ids of the threads of a name; at least one.
pub fn named(pid: u32, name: &str) -> Outcome<Vec<u32>> {
    let folder = format!("/proc/{pid}/task");
    let tasks = std::fs::read_dir(&folder).context(format_args!("cannot read {folder}"))?;
    let mut found = Vec::new();
    for task in tasks.flatten() {
        let is_it = std::fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim() == name);
        if is_it {
            found.extend(task.file_name().to_string_lossy().parse::<u32>().ok());
        }
    }
    if found.is_empty() {
        return Err(Failure::new(format!("the server has no thread named {name}")));
    }
    Ok(found)
}
