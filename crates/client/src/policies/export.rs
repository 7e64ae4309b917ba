//! `provost policies export DIR`: the policies of a server as files that `apply` takes.

use super::remote;
use crate::cli::{Client, Exit, Failure, Terminal, connection_args, counted, replace_file, sha256_hex};
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// LIMIT: bytes of a file's name before its ending; file systems take 255.
const NAME: usize = 200;

/// Returns the command.
pub fn command() -> Command {
    Command::new("export")
        .about("Writes every policy into a file of its own")
        .long_about(
            "Writes every policy into a file of its own: DIR/FAMILY/ID.json, as provost policies apply reads them. Files that are there \
             already are replaced where they hold the same policy; others stay. Policies that somebody else manages are written too, and \
             named.\n\nNeeds the scope policies:read.",
        )
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .value_hint(ValueHint::DirPath)
                .value_parser(value_parser!(PathBuf))
                .required(true)
                .help("The folder; it is made where it is not there"),
        )
        .args(connection_args())
}

/// Does it.
pub async fn run(matches: &ArgMatches, terminal: &Terminal) -> Result<(), Failure> {
    let client = Client::connect(matches, terminal)?;
    let folder = matches.get_one::<PathBuf>("dir").cloned().unwrap_or_default();
    let mut written = 0;
    for listed in client
        .get_all(&["policies"], &[("limit", "100")], "policies")
        .await?
    {
        let id = listed["id"].as_str().unwrap_or_default();
        let family = listed["family"].as_str().unwrap_or_default();
        if !crate::backtests::FAMILIES.contains(&family) {
            return Err(Failure::new(
                Exit::ServerFault,
                format!("{id} is of a family that this program does not know"),
            ));
        }
        // It may have been deleted since it was listed.
        let Some(mut item) = remote::stored(&client, family, id).await? else {
            continue;
        };
        if item["managementMode"] != "forge" {
            client.note(&format!(
                "{id} is managed by {}",
                item["managementMode"].as_str().unwrap_or_default()
            ));
        }
        let path = folder.join(family).join(format!("{}.json", file_name(id)));
        let text = format!(
            "{:#}\n",
            json!({ "family": family, "definition": item["definition"].take() })
        );
        put(&path, &text)?;
        written += 1;
    }
    client.note(&format!(
        "{} in {}",
        counted(written, "policies"),
        folder.display()
    ));
    Ok(())
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| replace_file(path, text.as_bytes(), 0o644));
    written.map_err(|error| Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display())))
}

/// Returns the name of a policy's file: its id where a file can be called so, with everything else spelled by its bytes. No name leads
/// out of the folder, and no two ids have one name.
fn file_name(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"._-@".contains(&byte) {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    // Such a file would hold cases.
    if let Some(stem) = name.strip_suffix(".cases") {
        name = format!("{stem}%2Ecases");
    }
    if name.len() > NAME {
        name.truncate(NAME - 17);
        let _ = write!(name, "~{}", &sha256_hex(id.as_bytes())[..16]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder_and_no_two_are_one() {
        assert_eq!(file_name("team/no-shell"), "team%2Fno-shell");
        assert_eq!(file_name("a:b@c"), "a%3Ab@c");
        assert_eq!(file_name("a.cases"), "a%2Ecases");
        for id in ["a/../../b", "a/..", "a\\b", "x/.cases", &"a/".repeat(128)] {
            let name = file_name(id);
            assert!(
                !name.contains(['/', '\\']) && name != ".." && name.len() <= NAME,
                "{name}"
            );
        }
        assert_ne!(file_name(&"a".repeat(255)), file_name(&"a".repeat(256)));
    }
}
