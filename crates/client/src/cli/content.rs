//! Bodies and answers that are not JSON: archives, tables.

use super::api::Body;
use super::failure::Failure;
use super::flags::file_arg;
use super::terminal::Terminal;
use bytes::Bytes;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches};
use http::HeaderValue;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// LIMIT: more than any content that a server takes.
const MAX_BYTES: u64 = 256 << 20;

/// What the end of a file's name says about its media type.
const EXTENSIONS: [(&str, &str); 7] = [
    ("gz", "application/gzip"),
    ("tgz", "application/gzip"),
    ("zip", "application/zip"),
    ("tar", "application/x-tar"),
    ("jsonl", "application/x-ndjson"),
    ("ndjson", "application/x-ndjson"),
    ("csv", "text/csv"),
];

/// Returns the flags that name the content of a request.
pub(super) fn args(body: &Body) -> Vec<Arg> {
    let content_type = Arg::new("global.content-type")
        .long("content-type")
        .value_name("TYPE")
        .value_parser(PossibleValuesParser::new(body.media_types.clone()))
        .help("What the content is [default: by the file's name]");
    let file = file_arg("global.file", "file")
        .value_name("FILE|-")
        .required(true)
        .help("The content: a file, or - for standard input");
    vec![file, content_type]
}

/// Reads the content and says what it is.
///
/// Errors: usage, when it cannot be read, is too large for the server, or is of no known kind.
pub(super) fn read(
    body: &Body,
    matches: &ArgMatches,
    terminal: &Terminal,
) -> Result<(HeaderValue, Bytes), Failure> {
    let path = matches
        .get_one::<PathBuf>("global.file")
        .cloned()
        .unwrap_or_default();
    let media_type = media_type(body, matches, &path)?;
    let value = HeaderValue::from_str(&media_type).map_err(|_| Failure::usage("that is no media type"))?;
    let max = body.max_bytes.unwrap_or(MAX_BYTES);
    if path == Path::new("-") {
        let bytes = terminal
            .read_input(max)
            .map_err(|error| Failure::usage(error.to_string()))?;
        return Ok((value, bytes.into()));
    }
    let shown = path.display();
    let cannot = |error: io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(cannot)?;
    file.take(max + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > max {
        return Err(Failure::usage(format!(
            "{shown} has more than the {max} bytes that the server takes"
        )));
    }
    Ok((value, bytes.into()))
}

fn media_type(body: &Body, matches: &ArgMatches, path: &Path) -> Result<String, Failure> {
    if let Some(said) = matches.get_one::<String>("global.content-type") {
        return Ok(said.clone());
    }
    if let [only] = body.media_types.as_slice() {
        return Ok(only.clone());
    }
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy().to_lowercase());
    let known = EXTENSIONS
        .iter()
        .find(|(end, _)| extension.as_deref() == Some(end));
    known
        .map(|(_, media_type)| (*media_type).to_owned())
        .filter(|media_type| body.media_types.contains(media_type))
        .ok_or_else(|| {
            let choices = body.media_types.join(" or ");
            Failure::usage(format!("say what the content is: --content-type {choices}"))
        })
}
