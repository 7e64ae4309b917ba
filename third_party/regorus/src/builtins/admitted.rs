// Part of Provost's copy, not of regorus: see DIFFERENCE.md.

//! The built-ins that a module can call, in one table: how large the result of a call can be, what a call costs, what it
//! refuses, and how it joins texts. Compiler, machine and host read this table; a built-in that is not in it cannot be called.
//!
//! What holds of every row:
//!
//! - A call reads each of its operands as a whole, with all that lies below (RG-4).
//! - An operand without a value gives a result without a value, and refuses nothing.
//! - What a call refuses is undefined, as in OPA, and is noted (RG-3). What would become larger than the row allows ends the
//!   evaluation, whether it stands under `not` or not: it is no answer of the built-in, and OPA would have one.
//! - Nothing reads a clock, the network, a file or a random number.
//!
//! Keeps RG-3, RG-7.

/// LIMIT: bytes of a text that a built-in makes out of others.
pub const TEXT_BYTES: usize = 4 << 20;
/// LIMIT: elements of a range of numbers.
pub const RANGE_ELEMENTS: usize = 1 << 16;
/// LIMIT: nodes of a document that is read out of a text.
pub const DOCUMENT_NODES: usize = 1 << 18;
/// LIMIT: levels of a document that is read out of a text.
pub const DOCUMENT_LEVELS: usize = 128;
/// LIMIT: bytes of a number that is read out of a text: its digits are read each time through those before.
pub const NUMBER_BYTES: usize = 4_096;
/// LIMIT: nodes, as a tree, of all paths and values that `walk` goes through.
pub const WALK_NODES: u64 = 1 << 20;

/// How large a result can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// One boolean or number.
    One,
    /// No more than the operands together.
    Given,
    /// A text of at most [`TEXT_BYTES`].
    Text,
    /// At most [`RANGE_ELEMENTS`] numbers.
    Range,
    /// A document of at most [`DOCUMENT_NODES`] and [`DOCUMENT_LEVELS`].
    Document,
    /// Paths and values of at most [`WALK_NODES`].
    Walk,
}

impl Size {
    /// Returns the bound in words.
    pub const fn said(self) -> &'static str {
        match self {
            Self::One => "one value",
            Self::Given => "what it is given",
            Self::Text => "4 MiB of text",
            Self::Range => "65 536 elements",
            Self::Document => "262 144 nodes, 128 levels",
            Self::Walk => "1 048 576 nodes, all paths and values counted",
        }
    }

    /// Returns whether a result can be larger than the operands, so that it is charged too.
    pub const fn grows(self) -> bool {
        !matches!(self, Self::One | Self::Given)
    }
}

/// What a call walks, in nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// It looks at the outermost value alone.
    Outermost,
    /// Each member of the first operand once.
    Members,
    /// Each member of both operands once.
    BothMembers,
    /// All operands as trees.
    Whole,
    /// The key, or the path of keys, at each level.
    Key,
    /// Each key of the first operand twice.
    Keys,
    /// The first operand for each step of a search among its members.
    Sorting,
    /// The first operand for each of its members: the result so far is walked once more for each.
    Folding,
    /// Each text of the one with each of the other.
    Pairs,
    /// An array is looked for at each place of another one.
    Subset,
    /// All operands for each step of a search.
    Paths,
    /// Each character of the first is looked for among those of the second.
    Trimming,
    /// The second is looked for at each place of the first.
    Places,
    /// A pattern is made ready, which stands in this operand, from 0.
    Pattern(usize),
    /// A number is written digit by digit, each time through all of them.
    Digits,
    /// All operands as trees, and large numbers in them digit by digit.
    Written,
    /// A text is read character by character.
    Read,
    /// Every path and value below the operand.
    Walk,
}

impl Cost {
    /// Returns the cost in words.
    pub const fn said(self) -> &'static str {
        match self {
            Self::Outermost => "none",
            Self::Members => "the members of the first operand",
            Self::BothMembers => "the members of both operands",
            Self::Whole => "the operands",
            Self::Key => "the key, 20 times",
            Self::Keys => "the first operand twice",
            Self::Sorting => "the first operand for each step of a search in it",
            Self::Folding => "the first operand for each of its members",
            Self::Pairs => "the operands, and a quarter for each pair of texts",
            Self::Subset => "the first operand for each place of the second",
            Self::Paths => "the operands for each step of a search in them",
            Self::Trimming => "the bytes of both multiplied, by 64",
            Self::Places => "a quarter of the first operand's bytes, and the bytes of both multiplied, by 64",
            Self::Pattern(_) => "1000 for the pattern, four for each of its bytes, the operands",
            Self::Digits => "the size of the number, squared",
            Self::Written => "the operands, large numbers squared",
            Self::Read => "an eighth of the text's bytes",
            Self::Walk => "every path and value",
        }
    }
}

/// What a call does with texts that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texts {
    /// It says of a value what it is, and nothing that depends on which text it is.
    Indifferent,
    /// It compares texts, or reads one, and its answer holds no part of them.
    Compares,
    /// Its answer may hold parts of them.
    Keeps,
}

/// A built-in that a module can call.
#[derive(Clone, Copy, Debug)]
pub struct Admitted {
    pub name: &'static str,
    /// What one call can make.
    pub size: Size,
    /// What one call walks before it is done; a result that can grow costs its size four times more.
    pub cost: Cost,
    pub texts: Texts,
    /// What it has no value for.
    pub refuses: &'static str,
}

/// Returns the row of a built-in, if a module can call it.
pub fn admitted(name: &str) -> Option<&'static Admitted> {
    let at = ADMITTED.binary_search_by(|row| row.name.cmp(name)).ok()?;
    ADMITTED.get(at)
}

const fn row(name: &'static str, size: Size, cost: Cost, texts: Texts, refuses: &'static str) -> Admitted {
    Admitted {
        name,
        size,
        cost,
        texts,
        refuses,
    }
}

const TYPE: &str = "an operand of another type";
const NOTHING: &str = "nothing";
const FRACTION: &str = "an operand of another type, a fraction";
const PATTERN: &str = "an operand of another type, a pattern that is none";

use Cost as C;
use Size as S;
use Texts as T;

/// Every built-in that a module can call, by name.
pub static ADMITTED: [Admitted; 83] = [
    row("__builtin_sets.intersection", S::Given, C::Whole, T::Keeps, TYPE),
    row("__builtin_sets.union", S::Given, C::Whole, T::Keeps, TYPE),
    row("abs", S::One, C::Whole, T::Keeps, TYPE),
    row("array.concat", S::Given, C::BothMembers, T::Keeps, TYPE),
    row("array.reverse", S::Given, C::Members, T::Keeps, TYPE),
    row("array.slice", S::Given, C::Members, T::Keeps, FRACTION),
    row("base64.decode", S::Given, C::Read, T::Keeps, "an operand of another type, what is no base64 with its padding, bytes that are no UTF-8"),
    row("base64.encode", S::Text, C::Read, T::Keeps, TYPE),
    row("bits.and", S::One, C::Whole, T::Keeps, FRACTION),
    row("bits.negate", S::One, C::Whole, T::Keeps, FRACTION),
    row("bits.or", S::One, C::Whole, T::Keeps, FRACTION),
    row("bits.xor", S::One, C::Whole, T::Keeps, FRACTION),
    row("ceil", S::One, C::Whole, T::Keeps, TYPE),
    row("concat", S::Text, C::Whole, T::Keeps, "an operand of another type, a member that is no text"),
    row("contains", S::One, C::Whole, T::Compares, TYPE),
    row("count", S::One, C::Outermost, T::Indifferent, TYPE),
    row("endswith", S::One, C::Whole, T::Compares, TYPE),
    row("floor", S::One, C::Whole, T::Keeps, TYPE),
    row("format_int", S::Given, C::Digits, T::Keeps, "an operand of another type, a base that is not 2, 8, 10 or 16"),
    row("glob.match", S::One, C::Pattern(0), T::Compares, PATTERN),
    row("glob.quote_meta", S::Given, C::Pattern(0), T::Keeps, TYPE),
    row("indexof", S::One, C::Whole, T::Compares, TYPE),
    row("indexof_n", S::Given, C::Places, T::Compares, TYPE),
    row("intersection", S::Given, C::Folding, T::Keeps, TYPE),
    row("is_array", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("is_boolean", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("is_null", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("is_number", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("is_object", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("is_set", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("is_string", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("json.filter", S::Given, C::Paths, T::Keeps, TYPE),
    row("json.is_valid", S::One, C::Read, T::Compares, NOTHING),
    row("json.marshal", S::Text, C::Written, T::Keeps, "a fraction, a number beyond 64 bits, a member whose name is no text"),
    row("json.remove", S::Given, C::Paths, T::Keeps, TYPE),
    row("json.unmarshal", S::Document, C::Read, T::Keeps, "an operand of another type, a text that is no JSON"),
    row("lower", S::Given, C::Whole, T::Keeps, TYPE),
    row("max", S::Given, C::Whole, T::Keeps, TYPE),
    row("min", S::Given, C::Whole, T::Keeps, TYPE),
    row("net.cidr_contains", S::One, C::Read, T::Compares, "an operand of another type, a first operand that is no CIDR, a second one that is neither a CIDR nor an address"),
    row("numbers.range", S::Range, C::Whole, T::Indifferent, FRACTION),
    row("object.filter", S::Given, C::Paths, T::Keeps, TYPE),
    row("object.get", S::Given, C::Key, T::Keeps, TYPE),
    row("object.keys", S::Given, C::Keys, T::Keeps, TYPE),
    row("object.remove", S::Given, C::Paths, T::Keeps, TYPE),
    row("object.subset", S::One, C::Subset, T::Compares, TYPE),
    row("object.union", S::Given, C::Whole, T::Keeps, TYPE),
    row("object.union_n", S::Given, C::Folding, T::Keeps, "an operand of another type, a member that is no object"),
    row("regex.find_all_string_submatch_n", S::Text, C::Pattern(0), T::Keeps, "an operand of another type, a fraction, a pattern that is none"),
    row("regex.find_n", S::Given, C::Pattern(0), T::Keeps, PATTERN),
    row("regex.is_valid", S::One, C::Pattern(0), T::Indifferent, NOTHING),
    row("regex.match", S::One, C::Pattern(0), T::Compares, PATTERN),
    row("regex.replace", S::Text, C::Pattern(1), T::Keeps, PATTERN),
    row("regex.split", S::Given, C::Pattern(0), T::Keeps, PATTERN),
    row("replace", S::Text, C::Whole, T::Keeps, TYPE),
    row("round", S::One, C::Whole, T::Keeps, TYPE),
    row("semver.compare", S::One, C::Read, T::Compares, "an operand of another type, a text that is no version of three numbers"),
    row("semver.is_valid", S::One, C::Read, T::Compares, "a text that begins with a `v`"),
    row("sort", S::Given, C::Sorting, T::Keeps, TYPE),
    row("split", S::Given, C::Whole, T::Keeps, TYPE),
    row("sprintf", S::Text, C::Written, T::Keeps, "an operand of another type, a verb or flag that the guide does not list"),
    row("startswith", S::One, C::Whole, T::Compares, TYPE),
    row("strings.any_prefix_match", S::One, C::Pairs, T::Compares, TYPE),
    row("strings.any_suffix_match", S::One, C::Pairs, T::Compares, TYPE),
    row("strings.count", S::One, C::Whole, T::Compares, TYPE),
    row("strings.reverse", S::Given, C::Whole, T::Keeps, TYPE),
    row("substring", S::Given, C::Whole, T::Keeps, "an operand of another type, a negative offset"),
    row("sum", S::One, C::Whole, T::Keeps, "an operand of another type, a member that is no number"),
    row("time.parse_rfc3339_ns", S::One, C::Read, T::Compares, "an operand of another type, a text that is no RFC 3339 time, a time outside of 1677 to 2262"),
    row("to_number", S::One, C::Read, T::Compares, "an array, an object, a set, a text that is no decimal number"),
    row("trace", S::One, C::Outermost, T::Indifferent, TYPE),
    row("trim", S::Given, C::Trimming, T::Keeps, TYPE),
    row("trim_left", S::Given, C::Trimming, T::Keeps, TYPE),
    row("trim_prefix", S::Given, C::Whole, T::Keeps, TYPE),
    row("trim_right", S::Given, C::Trimming, T::Keeps, TYPE),
    row("trim_space", S::Given, C::Whole, T::Keeps, TYPE),
    row("trim_suffix", S::Given, C::Whole, T::Keeps, TYPE),
    row("type_name", S::One, C::Outermost, T::Indifferent, NOTHING),
    row("union", S::Given, C::Folding, T::Keeps, TYPE),
    row("units.parse_bytes", S::One, C::Read, T::Compares, "an operand of another type, a text that is no amount of bytes"),
    row("upper", S::Given, C::Whole, T::Keeps, TYPE),
    row("urlquery.decode", S::Given, C::Read, T::Keeps, "an operand of another type, an escape that is none, bytes that are no UTF-8"),
    row("walk", S::Walk, C::Walk, T::Keeps, NOTHING),
];
