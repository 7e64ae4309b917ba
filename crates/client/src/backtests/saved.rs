//! Files of JSON that a person names, or standard input.

use crate::cli::{Failure, Terminal};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// LIMIT: more than any run or policy set that a server takes or gives (2 MiB, D1.10).
const MAX_BYTES: u64 = 16 << 20;

/// Returns the JSON of a file; `-` is standard input.
///
/// Errors: usage, when it cannot be read or is not JSON.
pub fn json(path: &Path, terminal: &Terminal) -> Result<Value, Failure> {
    let shown = path.display();
    let cannot = |error: io::Error| Failure::usage(format!("cannot read {shown}: {error}"));
    let bytes = if path == Path::new("-") {
        terminal.read_input(MAX_BYTES).map_err(cannot)?
    } else {
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(cannot)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
        bytes
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!("{shown} has more than {MAX_BYTES} bytes")));
    }
    serde_json::from_slice(&bytes).map_err(|error| Failure::usage(format!("{shown} is not JSON: {error}")))
}
