//! What the tree of a document costs, known before there is one: a file of two mebibytes can say a million things, of which each takes
//! hundreds of bytes once it is a value.

/// LIMIT: bytes that the tree of a document may take. Ours: an eighth of what the agent's unit gives it.
pub(super) const MOST: usize = 8 << 20;
/// A value in a list or in an object, with its share of what a list keeps for the next ones. Measured. Units: bytes.
pub(super) const NODE: usize = 128;
/// The first leaf of an object, which has room for eleven members. Measured. Units: bytes.
pub(super) const OBJECT: usize = 704;
/// How much more a tree of TOML takes: its parser keeps the tokens, the events and a tree of its own. Measured.
const OF_TOML: usize = 3;

/// Counts what a tree takes.
#[derive(Default)]
pub(super) struct Cost(usize);

impl Cost {
    /// Adds a part of it, and says whether it may be taken.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        self.0 <= MOST
    }
}

/// Says whether the tree of a JSON text may be made. Until the text is wrong, its strings are those of the parser.
pub(super) fn fits_json(text: &str) -> bool {
    let (mut cost, mut is_string, mut is_escaped) = (Cost::default(), false, false);
    text.bytes().all(|byte| {
        if is_string {
            is_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            return true;
        }
        match byte {
            b'"' => {
                is_string = true;
                true
            }
            b'{' => cost.take(OBJECT),
            b'[' | b',' | b':' => cost.take(NODE),
            _ => true,
        }
    })
}

/// Says whether what a token of a TOML text begins with may be taken beside all that was. A table stands behind each bracket and dot.
pub(super) fn takes_toml(cost: &mut Cost, first: char) -> bool {
    match first {
        '[' | '{' | '.' => cost.take(OF_TOML * OBJECT),
        ' ' | '\t' | '\r' => cost.take(1),
        _ => cost.take(OF_TOML * NODE / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_string_costs_nothing() {
        let words = format!(r#"{{"a": "{}", "b\"": "[[[[\\"}}"#, "{[,:".repeat(1 << 18));
        assert!(fits_json(&words));
        let values = format!(r#"{{"a\\": [{}0]}}"#, "0,".repeat(MOST / NODE));
        assert!(!fits_json(&values));
        assert!(!fits_json(&"{".repeat(MOST / OBJECT + 1)));
    }
}
