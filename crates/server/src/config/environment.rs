//! `PROVOST_<SECTION>_<KEY>`: every member of the file by another name.
//!
//! What names exist, and of which type they are, comes from the schema; there is no second list.

use super::Problem;
use provost_kernel::Secret;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Names beside the pattern, because operators and drivers type them often.
const SHORT: [(&str, &str); 5] = [
    ("PROVOST_DATA_DIR", "PROVOST_STORE_DATA_DIR"),
    ("PROVOST_KEYS_DIR", "PROVOST_STORE_KEYS_DIR"),
    ("PROVOST_DATABASE_URL_FILE", "PROVOST_STORE_DATABASE_URL_FILE"),
    ("PROVOST_DATABASE_PLAINTEXT", "PROVOST_STORE_DATABASE_PLAINTEXT"),
    ("PROVOST_LOG", "PROVOST_LOG_FILTER"),
];

/// Names that the commands of a client read; a server that sees them is not meant.
const OF_CLIENTS: [&str; 5] = [
    "PROVOST_URL",
    "PROVOST_ORGANIZATION",
    "PROVOST_TOKEN",
    "PROVOST_PROFILE",
    "PROVOST_MCP_URL",
];

/// Names that this program reads beside the file's members.
const OWN: [&str; 2] = ["PROVOST_CONFIG", "PROVOST_DATABASE_URL"];

/// The variables of the process that begin with `PROVOST_`.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Reads the process's environment; nothing else in the program does.
    pub fn of_process() -> Self {
        let named = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            let name = name
                .into_string()
                .ok()
                .filter(|name| name.starts_with("PROVOST_"))?;
            Some((name, value.to_string_lossy().into_owned()))
        };
        Self(std::env::vars_os().filter_map(named).collect())
    }

    /// Returns an environment of these variables.
    pub fn of<const N: usize>(variables: [(&str, &str); N]) -> Self {
        Self(
            variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        )
    }

    /// Returns every name that is read.
    pub fn names() -> Vec<String> {
        let schema = super::schema();
        let sections = schema["properties"].as_object();
        let keys = sections.into_iter().flatten().flat_map(|(section, schema)| {
            let keys = schema["properties"].as_object();
            let name = |key: &String| format!("PROVOST_{section}_{key}").to_uppercase();
            keys.into_iter()
                .flatten()
                .map(|(key, _)| name(key))
                .collect::<Vec<_>>()
        });
        let short = SHORT.iter().map(|(short, _)| *short);
        let beside = ["PROVOST_CONFIG", "PROVOST_DATABASE_URL"];
        keys.chain(short.chain(beside).map(str::to_owned)).collect()
    }

    /// Returns the variable that names the configuration file.
    pub fn file(&self) -> Option<&str> {
        self.get("PROVOST_CONFIG")
    }

    /// Returns the database's URL, which has no place in the file.
    pub fn database_url(&self) -> Option<Secret<String>> {
        self.get("PROVOST_DATABASE_URL")
            .map(|url| Secret::new(url.to_owned()))
    }

    /// An empty variable is one that is not set, as a shell's `PROVOST_X= provost` means it.
    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Puts the variables into the tables of the file.
    ///
    /// Errors: a variable of a section that has no such key, or with a value of another type.
    pub fn overlay(&self, file: &mut Table) -> Result<(), Problem> {
        let schema = super::schema();
        let sections = schema["properties"].as_object();
        let (mut known, mut prefixes) = (Vec::new(), Vec::new());
        for (section, schema) in sections.into_iter().flatten() {
            if schema["properties"].is_object() {
                prefixes.push(format!("PROVOST_{section}_").to_uppercase());
            }
            for (key, kind) in schema["properties"].as_object().into_iter().flatten() {
                let name = format!("PROVOST_{section}_{key}").to_uppercase();
                let short = SHORT
                    .iter()
                    .find(|(_, long)| *long == name)
                    .map(|(short, _)| *short);
                let found = self.get(&name).map(|value| (name.as_str(), value));
                let found = found.or_else(|| short.and_then(|short| Some((short, self.get(short)?))));
                if let Some((used, text)) = found {
                    let value = value(kind, text).ok_or_else(|| wrong_type(used, kind))?;
                    let table = file
                        .entry(section.clone())
                        .or_insert_with(|| Value::Table(Table::new()));
                    let table = table
                        .as_table_mut()
                        .ok_or_else(|| Problem(format!("[{section}] is not a section")))?;
                    table.insert(key.clone(), value);
                }
                known.push(name);
            }
        }
        self.refuse_unknown(&prefixes, &known)
    }

    /// Returns a sentence about variables that nothing reads, if there are some: a misspelt section, such as `PROVOST_HTP_LISTEN`.
    ///
    /// They are no reason not to start. Kubernetes tells each program of the services beside it, so that a service called
    /// `provost` makes `PROVOST_SERVICE_HOST` and `PROVOST_PORT_8080_TCP`, which nobody wrote.
    pub fn unread(&self) -> Option<String> {
        let schema = super::schema();
        let sections = schema["properties"].as_object().into_iter().flatten();
        let keys = sections.flat_map(|(section, schema)| {
            let keys = schema["properties"].as_object().into_iter().flatten();
            keys.map(move |(key, _)| format!("PROVOST_{section}_{key}").to_uppercase())
        });
        let keys: Vec<String> = keys.collect();
        let is_short = |name: &str| SHORT.iter().any(|(short, _)| *short == name);
        let is_of_a_neighbour = |name: &str| {
            name.starts_with("PROVOST_SERVICE_")
                || name == "PROVOST_PORT"
                || name.starts_with("PROVOST_PORT_")
        };
        let unread: Vec<&str> = self
            .0
            .keys()
            .map(String::as_str)
            .filter(|name| !keys.iter().any(|key| key == name) && !is_short(name) && !is_of_a_neighbour(name))
            .filter(|name| {
                !OWN.contains(name) && !OF_CLIENTS.contains(name) && !name.starts_with("PROVOST_TEST_")
            })
            .collect();
        (!unread.is_empty()).then(|| {
            format!(
                "nothing reads the environment's {}: the names are PROVOST_<SECTION>_<KEY>, and `provost config schema` lists sections and keys",
                unread.join(", ")
            )
        })
    }

    /// A misspelt key of a section must not be a silent default.
    fn refuse_unknown(&self, prefixes: &[String], known: &[String]) -> Result<(), Problem> {
        let is_of_a_section = |name: &str| prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
        let misspelt = self
            .0
            .keys()
            .find(|name| is_of_a_section(name) && !known.contains(name));
        match misspelt {
            Some(name) => Err(Problem(format!(
                "the environment variable {name} names no configuration key"
            ))),
            None => Ok(()),
        }
    }
}

fn types(kind: &Json) -> Vec<&str> {
    match &kind["type"] {
        Json::String(one) => vec![one],
        Json::Array(many) => many.iter().filter_map(Json::as_str).collect(),
        // An enum of words.
        _ => vec!["string"],
    }
}

fn value(kind: &Json, text: &str) -> Option<Value> {
    let types = types(kind);
    if types.contains(&"boolean") {
        return text.parse().ok().map(Value::Boolean);
    }
    if types.contains(&"integer") {
        return text.parse().ok().map(Value::Integer);
    }
    if types.contains(&"array") {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        return Some(Value::Array(
            items.map(|item| Value::String(item.to_owned())).collect(),
        ));
    }
    Some(Value::String(text.to_owned()))
}

fn wrong_type(name: &str, kind: &Json) -> Problem {
    let expected = if types(kind).contains(&"boolean") {
        "true or false"
    } else {
        "a whole number"
    };
    Problem(format!("the environment variable {name} must be {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_nothing_reads_are_named_and_neighbours_are_not() {
        let environment = Environment::of([
            ("PROVOST_HTP_LISTEN", "127.0.0.1:1"),
            ("PROVOST_DATADIR", "/srv"),
            ("PROVOST_HTTP_LISTEN", "127.0.0.1:1"),
            ("PROVOST_DATA_DIR", "/srv"),
            ("PROVOST_LOG", "info"),
            ("PROVOST_DATABASE_URL", "postgres://"),
            ("PROVOST_TOKEN", "secret"),
            ("PROVOST_SERVICE_HOST", "10.0.0.1"),
            ("PROVOST_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ]);
        let sentence = environment.unread().unwrap();
        assert!(
            sentence.contains("PROVOST_DATADIR, PROVOST_HTP_LISTEN:"),
            "{sentence}"
        );
        assert!(
            !sentence.contains("secret") && !sentence.contains("/srv"),
            "{sentence}"
        );
        assert_eq!(
            Environment::of([("PROVOST_WRITER_MAX_BATCH", "3")]).unread(),
            None
        );
    }
}
