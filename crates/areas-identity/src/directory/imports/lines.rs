//! A chunk's bytes to lines: every line is a user, a group, or refused.
//!
//! Runs on a reader thread, before the unit of work; nothing here knows the store.

use super::super::model::Status;
use super::csv;
use super::model::{Format, MAX_CHUNK_GROUPS, MAX_CHUNK_LINES, MAX_LINE_BYTES};
use provost_kernel::error::Error;
use provost_kernel::patch::Patch;
use provost_kernel::text::{Description, LongName, Name};
use provost_kernel::{Result, json};
use serde::Deserialize;
use serde_json::{Map, Value};

/// LIMIT: groups of one user in a line.
const MAX_GROUPS: usize = 256;
/// How deep a line may nest: an object with an array.
const MAX_DEPTH: usize = 3;
const COLUMNS: [&str; 9] = [
    "type",
    "loginName",
    "name",
    "displayName",
    "email",
    "externalId",
    "status",
    "groups",
    "description",
];

/// What a line says of a user. Absent stays, `null` clears.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserLine {
    /// Who.
    pub login_name: LongName,
    /// The name for people.
    #[serde(default)]
    pub display_name: Patch<LongName>,
    /// The address for mail.
    #[serde(default)]
    pub email: Patch<LongName>,
    /// The id in the directory.
    #[serde(default)]
    pub external_id: Patch<LongName>,
    /// Whether it counts as a subject.
    pub status: Option<Status>,
    /// Exactly these groups of the directory.
    pub groups: Option<Vec<Name>>,
}

/// What a line says of a group.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupLine {
    /// Which.
    pub name: Name,
    /// What it is for.
    #[serde(default)]
    pub description: Patch<Description>,
    /// The id in the directory.
    #[serde(default)]
    pub external_id: Patch<LongName>,
}

/// What a line says.
#[derive(Clone, Debug)]
pub enum Record {
    /// Of a user.
    User(Box<UserLine>),
    /// Of a group.
    Group(GroupLine),
}

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A JSON Pointer.
    pub path: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// A line of a chunk.
#[derive(Clone, Debug)]
pub struct ChunkLine {
    /// Its number in the chunk; the first line is 1.
    pub line: i64,
    /// What it says.
    pub record: std::result::Result<Record, Refusal>,
}

/// A chunk that was read.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// How it is written.
    pub format: Format,
    /// How many lines its header takes.
    pub header_lines: i64,
    /// How many lines it has, header and blank ones included.
    pub all_lines: i64,
    /// Its lines of data.
    pub lines: Vec<ChunkLine>,
}

impl Chunk {
    /// Reads a chunk.
    ///
    /// Errors: `InvalidRequest` when it holds no line of data, too many, or a header that is none.
    pub fn read(format: Format, bytes: &[u8]) -> Result<Self> {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let chunk = match format {
            Format::Jsonl => jsonl(bytes),
            Format::Csv => csv(bytes)?,
        };
        let whole = |message: String| Err(Error::invalid("", message));
        if chunk.lines.is_empty() {
            return whole("the chunk holds no line of data".into());
        }
        if chunk.lines.len() > MAX_CHUNK_LINES {
            return whole(format!(
                "the chunk holds more than {MAX_CHUNK_LINES} lines of data; send smaller ones"
            ));
        }
        let groups_of = |line: &ChunkLine| match &line.record {
            Ok(Record::User(user)) => user.groups.as_ref().map_or(0, Vec::len),
            _ => 0,
        };
        if chunk.lines.iter().map(groups_of).sum::<usize>() > MAX_CHUNK_GROUPS {
            return whole(format!(
                "the chunk names more than {MAX_CHUNK_GROUPS} groups of users; send smaller ones"
            ));
        }
        Ok(chunk)
    }
}

fn refusal(message: &str) -> Refusal {
    Refusal {
        path: None,
        message: message.to_owned(),
    }
}

fn too_long() -> Refusal {
    refusal("has more than 65536 bytes")
}

fn jsonl(bytes: &[u8]) -> Chunk {
    let mut lines = Vec::new();
    for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let record = if text.len() > MAX_LINE_BYTES {
            Err(too_long())
        } else {
            json::parse(text, MAX_DEPTH)
                .map_err(|error| refused(&error))
                .and_then(record)
        };
        lines.push(ChunkLine { line, record });
    }
    Chunk {
        format: Format::Jsonl,
        header_lines: 0,
        all_lines: csv::count_lines(bytes),
        lines,
    }
}

/// Returns the first thing that is wrong, in the words of a body's refusal.
fn refused(error: &Error) -> Refusal {
    let envelope = error.envelope("");
    let first = &envelope["errors"][0];
    let path = first["path"].as_str().filter(|path| !path.is_empty());
    let message = first["message"].as_str().unwrap_or_else(|| error.message());
    Refusal {
        path: path.map(str::to_owned),
        message: message.replacen("the body ", "the line ", 1),
    }
}

fn record(value: Value) -> std::result::Result<Record, Refusal> {
    let Value::Object(mut members) = value else {
        return Err(refusal("must be a JSON object"));
    };
    let kind = members.remove("type");
    let decoded = match kind.as_ref().and_then(Value::as_str) {
        Some("user") => json::decode(members.into(), "").map(Record::User),
        Some("group") => json::decode(members.into(), "").map(Record::Group),
        _ => {
            return Err(Refusal {
                path: Some("/type".into()),
                message: "must be user or group".into(),
            });
        }
    };
    let record = decoded.map_err(|error| refused(&error))?;
    match &record {
        Record::User(user) if user.groups.as_ref().is_some_and(|g| g.len() > MAX_GROUPS) => Err(Refusal {
            path: Some("/groups".into()),
            message: format!("must hold at most {MAX_GROUPS} groups"),
        }),
        _ => Ok(record),
    }
}

fn csv(bytes: &[u8]) -> Result<Chunk> {
    let (mut records, all_lines) = csv::records(bytes);
    if records.is_empty() {
        return Err(Error::invalid("", "the chunk holds no header line"));
    }
    let first = records.remove(0);
    // Blank lines behind the header are lines of the file, in whichever chunk they come.
    let header_lines = first.line - 1 + first.lines;
    let header = header(first.cells)?;
    let lines = records.into_iter().map(|row| {
        let record = if row.size_bytes > MAX_LINE_BYTES {
            Err(too_long())
        } else {
            row.cells
                .map_err(refusal)
                .and_then(|cells| members(&header, cells))
                .and_then(|members| record(members.into()))
        };
        ChunkLine {
            line: row.line,
            record,
        }
    });
    Ok(Chunk {
        format: Format::Csv,
        header_lines,
        all_lines,
        lines: lines.collect(),
    })
}

fn header(cells: std::result::Result<Vec<Vec<u8>>, &'static str>) -> Result<Vec<&'static str>> {
    let cells = cells.map_err(|why| Error::invalid("", format!("the header {why}")))?;
    let mut header = Vec::new();
    for cell in cells {
        let cell = cell.trim_ascii();
        let column = COLUMNS
            .into_iter()
            .find(|known| known.as_bytes().eq_ignore_ascii_case(cell));
        let column = column
            .ok_or_else(|| Error::invalid("", format!("the header may name {} alone", COLUMNS.join(", "))))?;
        if header.contains(&column) {
            return Err(Error::invalid("", format!("the header names {column} twice")));
        }
        header.push(column);
    }
    if header.contains(&"type") || header.contains(&"loginName") {
        return Ok(header);
    }
    Err(Error::invalid(
        "",
        "the header must name type, or loginName where every line is a user",
    ))
}

/// Returns the members that a row's cells say. A row of the other kind's columns leaves them empty. Without a column for the
/// type every row is a user; with one each row says it, for an empty cell may be a group that somebody forgot to name so.
fn members(header: &[&'static str], cells: Vec<Vec<u8>>) -> std::result::Result<Map<String, Value>, Refusal> {
    if cells.len() != header.len() {
        return Err(refusal("must have as many cells as the header"));
    }
    let mut texts = Vec::new();
    for cell in cells {
        texts.push(String::from_utf8(cell).map_err(|_| refusal("must be UTF-8"))?);
    }
    let is_group = header
        .iter()
        .zip(&texts)
        .any(|(column, text)| *column == "type" && text == "group");
    let own: &[&str] = if is_group {
        &["name", "description", "externalId"]
    } else {
        &[
            "loginName",
            "displayName",
            "email",
            "externalId",
            "status",
            "groups",
        ]
    };
    let mut members = Map::new();
    for (column, text) in header.iter().zip(texts) {
        let is_own = *column == "type" || own.contains(column);
        let value = match (*column, text.is_empty()) {
            (_, true) if !is_own => continue,
            ("groups", true) => Value::Array(vec![]),
            ("groups", false) => text.split(';').map(|name| Value::from(name.trim())).collect(),
            ("status", true) => continue,
            ("displayName" | "email" | "externalId" | "description", true) => Value::Null,
            _ => Value::String(text),
        };
        members.insert((*column).to_owned(), value);
    }
    if !header.contains(&"type") {
        members.insert("type".into(), "user".into());
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: Format, text: &str) -> Vec<(i64, std::result::Result<Record, Refusal>)> {
        let chunk = Chunk::read(format, text.as_bytes()).unwrap();
        chunk.lines.into_iter().map(|l| (l.line, l.record)).collect()
    }

    fn user(record: &std::result::Result<Record, Refusal>) -> &UserLine {
        match record {
            Ok(Record::User(user)) => user,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_is_a_user_a_group_or_refused() {
        let text = "{\"type\":\"group\",\"name\":\"G\"}\r\n\n{\"type\":\"user\",\"loginName\":\"a\",\"email\":null}\n\
                    {\"type\":\"user\"}\n[]\n{\"type\":\"user\",\"loginName\":\"a\",\"x\":1}\n{\"type\":\"user\",";
        let lines = read(Format::Jsonl, text);
        assert!(matches!(&lines[0], (1, Ok(Record::Group(group))) if group.name.as_str() == "G"));
        assert_eq!(lines[1].0, 3);
        assert_eq!(user(&lines[1].1).email, Patch::Clear);
        assert_eq!(user(&lines[1].1).display_name, Patch::Absent);
        let path = |place: usize| lines[place].1.as_ref().unwrap_err().path.clone();
        assert_eq!(path(2).as_deref(), Some("/loginName"));
        assert_eq!((path(3), path(4).as_deref(), path(5)), (None, Some("/x"), None));
    }

    #[test]
    fn one_byte_more_than_a_line_may_have_refuses_the_line_alone() {
        let line = |size: usize| {
            let empty = r#"{"type":"user","loginName":""}"#.len();
            // Padded with a space inside, so that it is good JSON.
            format!(
                r#"{{"type":"user",{}"loginName":"a"}}"#,
                " ".repeat(size - empty - 1)
            )
        };
        let text = format!("{}\n{}\n", line(MAX_LINE_BYTES), line(MAX_LINE_BYTES + 1));
        let lines = read(Format::Jsonl, &text);
        assert!(lines[0].1.is_ok());
        assert_eq!(lines[1].1.as_ref().unwrap_err(), &too_long());
    }

    #[test]
    fn cells_say_what_members_say() {
        let text = "type,loginName,name,displayName,status,groups\n\
                    group,,Engineering,,,\n\
                    user,a@acme.test,,,suspended,Engineering;Ops\n\
                    user,b@acme.test,,\"B, b\",,\n\
                    user,c@acme.test,x,,,\n\
                    user,d@acme.test\n";
        let lines = read(Format::Csv, text);
        assert!(matches!(&lines[0], (2, Ok(Record::Group(_)))));
        let a = user(&lines[1].1);
        assert_eq!(
            (a.status, a.groups.as_ref().unwrap().len()),
            (Some(Status::Suspended), 2)
        );
        assert_eq!((&a.display_name, &a.email), (&Patch::Clear, &Patch::Absent));
        let b = user(&lines[2].1);
        assert_eq!((b.status, b.groups.as_deref()), (None, Some([].as_slice())));
        assert_eq!(lines[3].1.as_ref().unwrap_err().path.as_deref(), Some("/name"));
        assert_eq!(
            lines[4].1.as_ref().unwrap_err().message,
            "must have as many cells as the header"
        );
    }

    #[test]
    fn a_header_in_any_case_without_a_type_says_users() {
        let lines = read(
            Format::Csv,
            "LOGINNAME, groups ,Status\na@acme.test,Dev; Ops ,suspended\n",
        );
        let a = user(&lines[0].1);
        let groups: Vec<_> = a.groups.iter().flatten().map(Name::as_str).collect();
        assert_eq!((groups, a.status), (vec!["Dev", "Ops"], Some(Status::Suspended)));
        // Still refused: a type that a row leaves out, a word in another case, and a group without a name.
        let lines = read(
            Format::Csv,
            "type,loginName,status,groups\n,a,,\nUser,b,,\nuser,c,ACTIVE,\nuser,d,,Dev; ;Ops\nuser,e,,Dev;\n",
        );
        let paths: Vec<_> = lines
            .iter()
            .map(|(_, line)| line.as_ref().unwrap_err().path.as_deref().unwrap())
            .collect();
        assert_eq!(paths, ["/type", "/type", "/status", "/groups/1", "/groups/1"]);
    }

    #[test]
    fn the_header_s_lines_are_its_own() {
        let chunk = Chunk::read(Format::Csv, b"\nloginName,\"group\ns\"\n\na,\n");
        assert!(chunk.is_err(), "a column is named on one line");
        let chunk = Chunk::read(Format::Csv, b"\nloginName\n\n\na\n").unwrap();
        assert_eq!(
            (chunk.header_lines, chunk.all_lines, chunk.lines[0].line),
            (2, 5, 5)
        );
    }

    #[test]
    fn a_chunk_has_a_header_and_limits() {
        let refused = |format, text: &str| {
            Chunk::read(format, text.as_bytes())
                .unwrap_err()
                .message()
                .to_owned()
        };
        assert_eq!(refused(Format::Jsonl, "\n \n"), "the chunk holds no line of data");
        assert_eq!(refused(Format::Csv, ""), "the chunk holds no header line");
        assert_eq!(
            refused(Format::Csv, "name,description\na,b\n"),
            "the header must name type, or loginName where every line is a user"
        );
        assert_eq!(refused(Format::Csv, "type,type\n"), "the header names type twice");
        assert!(refused(Format::Csv, "type,tpye\n").starts_with("the header may name type,"));
        let many = "{}\n".repeat(MAX_CHUNK_LINES + 1);
        assert!(refused(Format::Jsonl, &many).contains("more than 500 lines"));
        let groups = vec!["\"G\""; 256].join(",");
        let many = format!("{{\"type\":\"user\",\"loginName\":\"a\",\"groups\":[{groups}]}}\n").repeat(20);
        assert!(refused(Format::Jsonl, &many).contains("more than 5000 groups"));
    }
}
