//! What Claude Code reads from the folder in which it is started up to the root.

use super::{Folder, faults, servers};
use crate::Fault;

fn server(name: &str) -> String {
    format!(r#"{{"mcpServers": {{"{name}": {{"command": "npx", "args": ["-y", "@acme/{name}@1.2.3"]}}}}}}"#)
}

fn names(folder: &Folder) -> Vec<String> {
    let scan = folder.scan();
    let mut names: Vec<String> = servers(&scan)
        .iter()
        .map(|(_, facts)| facts.configured_name.clone())
        .collect();
    names.sort();
    names
}

#[test]
fn servers_in_folders_above_a_project_are_found_and_those_beside_and_below_it_are_not() {
    let folder = Folder::new("upwards");
    for (path, name) in [
        (".mcp.json", "root"),
        ("home/.mcp.json", "homes"),
        ("home/bob/.mcp.json", "bob"),
        ("home/ada/.mcp.json", "ada"),
        ("home/ada/other/.mcp.json", "beside"),
        ("home/ada/work/.mcp.json", "repository"),
        ("home/ada/work/app/.mcp.json", "project"),
        ("home/ada/work/app/part/.mcp.json", "below"),
        ("srv/.mcp.json", "srv"),
        ("srv/app/README.md", ""),
    ] {
        folder.write(path, &server(name));
    }
    folder.write(
        "home/ada/.claude.json",
        r#"{"projects": {"/home/ada/work/app": {}, "/home/ada/work": {}, "/srv/app": {}}}"#,
    );
    assert_eq!(
        names(&folder),
        ["ada", "homes", "project", "repository", "root", "srv"]
    );
}

#[test]
fn a_home_without_projects_is_one_itself() {
    let folder = Folder::new("upwards-home");
    folder.write("home/.mcp.json", &server("homes"));
    folder.write("home/ada/.mcp.json", &server("ada"));
    assert_eq!(names(&folder), ["ada", "homes"]);
}

/// Proves IV-3.
#[test]
fn a_link_above_the_home_leads_to_no_other_folder() {
    let folder = Folder::new("upwards-link");
    folder.write("srv/secret.json", &server("stolen"));
    std::os::unix::fs::symlink("../srv/secret.json", folder.0.join("home/.mcp.json")).unwrap();
    assert_eq!(names(&folder), [""; 0]);
    assert_eq!(faults(&folder.scan()), [Fault::NotPermitted]);
}
