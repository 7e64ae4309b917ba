//! Exports of directories, imported by the command line, and who the server then says that there is.
//!
//! The files have the columns, encodings and ends of lines that Okta, Microsoft Entra ID, Google Workspace and spreadsheets write. They
//! are made for this purpose, with nobody's data: an export of a real directory holds people.

use serde_json::Value;

use super::Scene;
use crate::compatibility::Table;
use crate::failure::{Context, Failure, Outcome};
use crate::http::{Connection, Request};
use crate::process;

/// One export.
struct Export {
    /// Whose columns they are, as `--format` says it.
    format: &'static str,
    /// A directory of its own for each, so that no export sees the users of another.
    directory: &'static str,
    /// How it came about, for the table.
    made_by: &'static str,
    text: &'static str,
    encoding: Encoding,
    /// Who must be there, in the order of their login names.
    people: &'static [Person],
}

#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    /// With a byte order mark, as Entra's portal and spreadsheets write it.
    Utf8Marked,
    /// With a byte order mark, as a spreadsheet writes "Unicode text".
    Utf16,
}

impl Encoding {
    fn of(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf8Marked => format!("\u{feff}{text}").into_bytes(),
            Self::Utf16 => format!("\u{feff}{text}")
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect(),
        }
    }
}

/// What the server must say of a user; an empty text is a member that must not be there.
struct Person {
    login: &'static str,
    name: &'static str,
    email: &'static str,
    external_id: &'static str,
    status: &'static str,
}

const fn person(
    login: &'static str,
    name: &'static str,
    email: &'static str,
    external_id: &'static str,
    status: &'static str,
) -> Person {
    Person {
        login,
        name,
        email,
        external_id,
        status,
    }
}

const ANN: &str = "ann@example.com";
const BO: &str = "bo@example.com";
const CY: &str = "cy@example.com";

const EXPORTS: [Export; 7] = [
    Export {
        format: "okta",
        directory: "okta-console",
        made_by: "its console, with all columns of a profile; cells with a comma and with a line break",
        text: "login,firstName,lastName,middleName,honorificPrefix,email,title,displayName,secondEmail,mobilePhone,postalAddress,\
               userType,employeeNumber,department,managerId,status\n\
               ann@example.com,Ann,Ødegård,,,ann@example.com,Engineer,Ann Ødegård,,+47 1,,,1001,R&D,,ACTIVE\n\
               bo@example.com,Bo,Li,,,bo@example.com,\"Lead, Platform\",Bo Li 李,,,\"Street 1\nFloor 2\",,1002,R&D,,SUSPENDED\n\
               cy@example.com,Cy,Roe,,,cy@example.com,,,,,,,1003,,,DEPROVISIONED\n",
        encoding: Encoding::Utf8,
        people: &[
            person(ANN, "Ann Ødegård", ANN, "", "active"),
            person(BO, "Bo Li 李", BO, "", "suspended"),
            person(CY, "Cy Roe", CY, "", "suspended"),
        ],
    },
    Export {
        format: "okta",
        directory: "okta-api",
        made_by: "its report of users, with ids: an expired password, somebody who has not begun, somebody who is locked out",
        text: "id,status,login,email,firstName,lastName\r\n\
               00u1,PASSWORD_EXPIRED,ann@example.com,ann@example.com,Ann,Li\r\n\
               00u2,STAGED,bo@example.com,,Bo,Li\r\n\
               00u3,LOCKED_OUT,cy@example.com,,Cy,Li\r\n",
        encoding: Encoding::Utf8Marked,
        people: &[
            person(ANN, "Ann Li", ANN, "00u1", "active"),
            person(BO, "Bo Li", "", "00u2", "suspended"),
            person(CY, "Cy Li", "", "00u3", "suspended"),
        ],
    },
    Export {
        format: "entra",
        directory: "entra-portal",
        made_by: "its portal (UTF-8 with a mark, CRLF), a guest among them",
        text: "userPrincipalName,displayName,surname,mail,givenName,objectId,userType,jobTitle,department,accountEnabled,usageLocation,\
               telephoneNumber,mobilePhone,companyName,creationType,directorySynced,invitationState,createdDateTime\r\n\
               ann@example.com,\"Ødegård, Ann\",Ødegård,ann@example.com,Ann,3f25-1,Member,Engineer,\"R&D\",True,NO,,,,,False,,2026-01-01T00:00:00Z\r\n\
               guest_x.com#EXT#@example.onmicrosoft.com,Guest,,g@x.com,,3f25-2,Guest,,,False,,,,,Invitation,,Accepted,2026-01-01T00:00:00Z\r\n",
        encoding: Encoding::Utf8Marked,
        people: &[
            person(ANN, "Ødegård, Ann", ANN, "3f25-1", "active"),
            person(
                "guest_x.com#EXT#@example.onmicrosoft.com",
                "Guest",
                "g@x.com",
                "3f25-2",
                "suspended",
            ),
        ],
    },
    Export {
        format: "entra",
        directory: "entra-excel",
        made_by: "a spreadsheet of a country with commas in numbers: a line `sep=;`, then semicolons",
        text: "sep=;\r\nid;displayName;userPrincipalName;mail;accountEnabled\r\n\
               3f25-1;\"Li; Ann\";ann@example.com;ann@example.com;TRUE\r\n\
               3f25-2;Bo;bo@example.com;;FALSE\r\n",
        encoding: Encoding::Utf8Marked,
        people: &[
            person(ANN, "Li; Ann", ANN, "3f25-1", "active"),
            person(BO, "Bo", "", "3f25-2", "suspended"),
        ],
    },
    Export {
        format: "google",
        directory: "google-console",
        made_by: "its console, with the template's heads in brackets and a column of passwords",
        text: "First Name [Required],Last Name [Required],Email Address [Required],Password [Required],Password Hash Function [UPLOAD ONLY],\
               Org Unit Path [Required],New Primary Email [UPLOAD ONLY],Status [READ ONLY],Last Sign In [READ ONLY],Recovery Email\n\
               Ann,Li,ann@example.com,****,,/,,Active,2026/01/01 10:00:00,\n\
               Bo,Li,bo@example.com,****,,/Sales,,Suspended,Never logged in,\n\
               Cy,Li,cy@example.com,****,,/,,Archived,Never logged in,\n",
        encoding: Encoding::Utf8,
        people: &[
            person(ANN, "Ann Li", ANN, "", "active"),
            person(BO, "Bo Li", BO, "", "suspended"),
            person(CY, "Cy Li", CY, "", "suspended"),
        ],
    },
    Export {
        format: "google",
        directory: "google-excel",
        made_by: "a spreadsheet's \"Unicode text\": UTF-16, tabs",
        text: "First Name [Required]\tLast Name [Required]\tEmail Address [Required]\tStatus [READ ONLY]\r\n\
               Zoë\tŁuk\tann@example.com\tActive\r\n",
        encoding: Encoding::Utf16,
        people: &[person(ANN, "Zoë Łuk", ANN, "", "active")],
    },
    Export {
        format: "csv",
        directory: "own-columns",
        made_by: "anybody: `--map Account=loginName --map Mail=email --ignore-columns`",
        text: "Account;Mail;Shoes\nann@example.com;ann@example.com;42\n",
        encoding: Encoding::Utf8,
        people: &[person(ANN, "", ANN, "", "active")],
    },
];

/// Files that must not be imported: for each format the text, and a word of the sentence that says why.
const REFUSED: [(&str, &str, &str); 4] = [
    ("okta", "login,status\nann@example.com,AKTIV\n", "aktiv"),
    (
        "entra",
        "userPrincipalName,accountEnabled\nann@example.com,\n",
        "empty",
    ),
    ("google", "First Name,Status\nAnn,Active\n", "loginName"),
    ("okta", "login,status\nann@example.com,ACTIVE,x\n", "cells"),
];

const HEADS: [&str; 5] = ["login", "name", "email", "external id", "status"];

pub fn run(scene: &Scene<'_>, is_recorded: bool) -> Outcome {
    let mut table = Table::new(
        "Exports of directories",
        &[
            "export of",
            "written by",
            "users",
            HEADS[0],
            HEADS[1],
            HEADS[2],
            HEADS[3],
            HEADS[4],
        ],
        &[
            "How: `cargo xtask clients directories --record`. Each file is imported into a directory of its own by `provost directory import \
             --format …`, and what `GET …/directory/users` then says of each user is compared with what the file says. A dash: the file \
             does not say it, and neither does the server. The files have the columns, encodings and ends of lines of the exports, and \
             nobody's data; an export out of a real tenant was not tried.",
            "Refused, and tried as well: a state in another language, an empty state, a file without a column of login names, and a row \
             with a cell too many. Of none of them anything is imported.",
        ],
    );
    let mut wrong = Vec::new();
    for export in &EXPORTS {
        println!("{} by {}", export.format, export.directory);
        let file = scene.folder.join(format!("{}.csv", export.directory));
        std::fs::write(&file, export.encoding.of(export.text)).context("cannot write an export")?;
        let file = file.display().to_string();
        let mut words = vec!["directory", "import", &file, "--directory-id", export.directory];
        if export.format == "csv" {
            words.extend([
                "--map",
                "Account=loginName",
                "--map",
                "Mail=email",
                "--ignore-columns",
            ]);
        }
        words.extend(["--format", export.format, "--reason", "an export"]);
        process::output(&mut scene.command_line(&words))?;
        let mut row = vec![
            export.format.to_owned(),
            export.made_by.to_owned(),
            export.people.len().to_string(),
        ];
        row.extend(compare(export, &users(scene, export.directory)?, &mut wrong)?);
        table.rows.push(row);
    }
    for (number, (format, text, word)) in REFUSED.iter().enumerate() {
        let directory = format!("refused-{number}");
        let file = scene.folder.join(format!("{directory}.csv"));
        std::fs::write(&file, text).context("cannot write an export")?;
        let file = file.display().to_string();
        let words = ["directory", "import", &file, "--directory-id", &directory];
        let words = [&words[..], &["--format", format, "--reason", "an export"]].concat();
        match process::output(&mut scene.command_line(&words)) {
            Ok(_) => wrong.push(format!("{directory} was imported")),
            Err(why) if !why.to_string().contains(word) => wrong.push(format!("{directory}: {why}")),
            Err(_) => {}
        }
        if !users(scene, &directory)?.is_empty() {
            wrong.push(format!("{directory} left users"));
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::new(wrong.join("\n")));
    }
    println!(
        "{} exports were imported, {} refused",
        EXPORTS.len(),
        REFUSED.len()
    );
    if is_recorded {
        table.write("directories")?;
    }
    Ok(())
}

/// The cells of an export: what of its people is as it should be.
fn compare(export: &Export, found: &[Value], wrong: &mut Vec<String>) -> Outcome<Vec<String>> {
    if found.len() != export.people.len() {
        return Err(Failure::new(format!(
            "{} has {} users: {found:?}",
            export.directory,
            found.len()
        )));
    }
    let members = ["loginName", "displayName", "email", "externalId", "status"];
    let cells = members.iter().zip(HEADS).map(|(member, head)| {
        let pairs = export.people.iter().zip(found);
        let expected = |person: &Person| match *member {
            "loginName" => person.login,
            "displayName" => person.name,
            "email" => person.email,
            "externalId" => person.external_id,
            _ => person.status,
        };
        let is_said = export.people.iter().any(|person| !expected(person).is_empty());
        let mut is_right = true;
        for (person, user) in pairs {
            let said = user[*member].as_str().unwrap_or_default();
            if said != expected(person) {
                is_right = false;
                wrong.push(format!(
                    "{}, {head} of {}: {said:?}",
                    export.directory, person.login
                ));
            }
        }
        match (is_right, is_said) {
            (false, _) => "**no**",
            (true, true) => "yes",
            (true, false) => "–",
        }
        .to_owned()
    });
    Ok(cells.collect())
}

/// The users of a directory, in the order of their login names.
fn users(scene: &Scene<'_>, directory: &str) -> Outcome<Vec<Value>> {
    let path = scene
        .bootstrap
        .path(&format!("directory/users?limit=100&directoryId={directory}"));
    let page = Connection::new(scene.server.address).fetch(&Request::get(path, &scene.bootstrap.token))?;
    let mut users = page["users"]
        .as_array()
        .cloned()
        .context("an answer without users")?;
    users.sort_by_key(|user| user["loginName"].to_string());
    Ok(users)
}
