//! Which records a word of an event means: the directory's users and groups, service accounts, skills, resources.
//!
//! ```text
//!   (attribute, text) ─ match key ─► no record: the word stands for itself
//!                                    one: the event is judged as that record, by its id and by all its words
//!                                    several: judged as each of them; where they differ nobody can say
//! ```
//!
//! INVARIANT NW-1: what a word means depends on its match key alone, and every record that a register knows is also
//! meant by its id; a name of several records is judged as each of them, and is unknown where they differ.
//! INVARIANT NW-2: one function says where the name of a skill ends and its version begins, for whoever finds it and
//! whoever judges it.
//!
//! Absent on purpose: where records are kept, and which states of them count: who fills a register decides that.

use crate::catalogue::Field;
use crate::digest::document_sha256;
use crate::matching;
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What stands before a group that was told of somebody whom the directory does not know.
const CLAIM: &str = "claimed:";

/// Returns the text that stands in an event for a group that was claimed: somebody told of it, and nobody knows the user.
pub fn claim(group: &str) -> String {
    format!("{CLAIM}{group}")
}

/// Returns the group that a text, or its match key, claims; nothing of one that is no claim.
pub fn claimed(text: &str) -> Option<&str> {
    text.strip_prefix(CLAIM)
}

/// A record that words can mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its id, which policies name.
    pub id: String,
    /// Every word that it has now, as it stands: login name, address, names with and without namespace; not the id.
    pub words: Vec<String>,
    /// Those of `words` that some other record has as well. A condition that names one may mean the other record, and is
    /// unknown for this one. Where its id is among them nobody knows whether it is there at all: it is a claim.
    pub shared: Vec<String>,
    /// Of a user, the ids of the groups that the user is in now.
    pub groups: Option<Vec<String>>,
}

/// The records that the words of some events mean.
#[derive(Debug, Default)]
pub struct Register {
    is_complete: bool,
    shelves: [Shelf; SHELVES],
}

#[derive(Debug, Default)]
struct Shelf {
    records: HashMap<String, Arc<NamedRecord>>,
    meanings: HashMap<Box<str>, Vec<Arc<NamedRecord>>>,
    is_ambiguous: bool,
}

/// A record with its keys.
#[derive(Debug)]
pub struct NamedRecord {
    record: Record,
    pub(crate) id: Face,
    pub(crate) words: Vec<Face>,
}

/// A word of a record.
#[derive(Debug)]
pub(crate) struct Face {
    pub text: Box<str>,
    pub key: Arc<str>,
    /// Whether another record has it as well.
    pub is_shared: bool,
}

const SHELVES: usize = 5;

impl Field {
    /// Returns whether its texts name records of a register.
    pub fn has_register(self) -> bool {
        self.shelf().is_some()
    }

    fn shelf(self) -> Option<usize> {
        Some(match self {
            Self::USER => 0,
            Self::SERVICE_ACCOUNT => 1,
            Self::GROUPS => 2,
            Self::SKILL => 3,
            Self::RESOURCE => 4,
            _ => return None,
        })
    }
}

impl NamedRecord {
    /// Returns its id.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Returns the record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Returns whether it is nothing but claimed: what is asked of it does not hold for sure.
    pub(crate) fn is_claim(&self) -> bool {
        self.id.is_shared
    }

    /// Returns every word; not the id.
    pub(crate) fn words(&self) -> impl Iterator<Item = &Face> {
        self.words.iter()
    }

    /// Returns the id and every word.
    pub(crate) fn faces(&self) -> impl Iterator<Item = &Face> {
        std::iter::once(&self.id).chain(&self.words)
    }
}

impl Register {
    /// Returns a register that knows no record. `is_complete` says that whoever may act has a record: a user or service
    /// account without one is then missing.
    pub fn new(is_complete: bool) -> Self {
        Self {
            is_complete,
            ..Self::default()
        }
    }

    /// Says which records a text of an attribute means; each is from then on also meant by its id.
    ///
    /// A text that was never put, or with no record, stands for itself. Attributes without a register take nothing.
    #[expect(clippy::similar_names, reason = "a shelf is what the register keeps")]
    pub fn put(&mut self, field: Field, text: &str, records: &[Record]) {
        let Some(shelf) = field.shelf().map(|at| &mut self.shelves[at]) else {
            return;
        };
        for record in records {
            let named = shelf.records.entry(record.id.clone()).or_insert_with(|| {
                let face = |text: &str| Face {
                    text: text.into(),
                    key: name_key(field, text).as_ref().into(),
                    is_shared: false,
                };
                let is_shared = |key: &str| record.shared.iter().any(|word| name_key(field, word) == key);
                let words = record.words.iter().map(|word| face(word)).map(|word| Face {
                    is_shared: is_shared(&word.key),
                    ..word
                });
                Arc::new(NamedRecord {
                    id: Face {
                        is_shared: is_shared(&name_key(field, &record.id)),
                        ..face(&record.id)
                    },
                    // A word that nobody sees is none.
                    words: words.filter(|word| !word.key.is_empty()).collect(),
                    record: record.clone(),
                })
            });
            let named = Arc::clone(named);
            let id = Box::from(&*named.id.key);
            for key in [name_key(field, text).into(), id] {
                let meant = shelf.meanings.entry(key).or_default();
                if !meant.iter().any(|known| known.record.id == record.id) {
                    meant.push(Arc::clone(&named));
                    meant.sort_by(|a, b| a.record.id.cmp(&b.record.id));
                    shelf.is_ambiguous |= meant.len() > 1;
                }
            }
        }
    }

    /// Returns the records that a text of an attribute means, by id: none, one or several.
    pub fn meant(&self, field: Field, text: &str) -> &[Arc<NamedRecord>] {
        self.by_key(field, &name_key(field, text))
    }

    /// The same, of a text by its key.
    #[expect(clippy::similar_names, reason = "a shelf is what the register keeps")]
    pub(crate) fn by_key(&self, field: Field, key: &str) -> &[Arc<NamedRecord>] {
        let shelf = field.shelf().map(|at| &self.shelves[at]);
        let meant = shelf.filter(|shelf| !shelf.meanings.is_empty());
        meant
            .and_then(|shelf| shelf.meanings.get(key))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns whether some text of an attribute means several records.
    pub fn is_ambiguous(&self, field: Field) -> bool {
        field.shelf().is_some_and(|at| self.shelves[at].is_ambiguous)
    }

    /// Returns whether nobody can say whom a text of this attribute means that no record has.
    pub fn misses_strangers(&self, field: Field) -> bool {
        self.is_complete && matches!(field, Field::USER | Field::SERVICE_ACCOUNT)
    }

    /// Returns the digest of everything that it says. Units: 64 hexadecimal digits.
    pub fn digest(&self) -> String {
        let shelves: Vec<_> = self.shelves.iter().map(Shelf::said).collect();
        document_sha256(&json!({"complete": self.is_complete, "shelves": shelves}))
    }
}

impl Shelf {
    fn said(&self) -> serde_json::Value {
        let records: BTreeMap<&str, _> = self
            .records
            .iter()
            .map(|(id, named)| {
                let Record {
                    words,
                    shared,
                    groups,
                    ..
                } = &named.record;
                (
                    id.as_str(),
                    json!({"words": words, "shared": shared, "groups": groups}),
                )
            })
            .collect();
        let meanings: BTreeMap<&str, Vec<&str>> = self
            .meanings
            .iter()
            .map(|(key, meant)| (&**key, meant.iter().map(|named| named.id()).collect()))
            .collect();
        json!({"records": records, "meanings": meanings})
    }
}

/// Returns the key by which a text of an attribute is matched: that of a skill leaves the version behind its name away,
/// that of a domain the dot behind it.
///
/// INVARIANT NW-2: this is the only place that says where the name of a skill ends. Whoever finds a record by a word and
/// whoever judges the word ask here, so that no word is one skill to one of them and another to the other.
pub fn name_key(field: Field, text: &str) -> Cow<'_, str> {
    match matching::key(text) {
        Cow::Borrowed(key) => Cow::Borrowed(of_key(field, key)),
        Cow::Owned(key) => Cow::Owned(of_key(field, &key).to_owned()),
    }
}

/// Returns the part of a match key that is the key of an attribute's name.
pub(crate) fn of_key(field: Field, key: &str) -> &str {
    match field {
        Field::SKILL => versionless(key),
        field if field.is_domain() => match key.strip_suffix('.') {
            Some(domain) => domain.trim_end(),
            None => key,
        },
        _ => key,
    }
}

/// Returns `[namespace/]name` of `[namespace/]name[@version]`: the name ends at the first `@` that neither begins the text
/// nor stands in its scope (`@scope/`). What stands behind it may be anything, also a slash.
fn versionless(key: &str) -> &str {
    let is_scope = |slash: &usize| !key[1..*slash].contains('@');
    let scope = key.starts_with('@').then(|| key.find('/')).flatten();
    let start = scope.filter(is_scope).map_or(0, |slash| slash + 1);
    // A name is never empty: a sign at its beginning is a part of it.
    let name = key[start..].char_indices().skip(1);
    let mut signs = name.filter(|(_, letter)| *letter == '@');
    match signs.next() {
        Some((at, _)) => key[..start + at].trim_end(),
        None => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ada() -> Record {
        Record {
            id: "usr_1".into(),
            words: vec!["Ada".into(), "ada@acme.test".into(), "\u{200b}".into()],
            ..Record::default()
        }
    }

    fn ids(register: &Register, field: Field, text: &str) -> Vec<String> {
        let meant = register.meant(field, text).iter();
        meant.map(|named| named.id().to_owned()).collect()
    }

    #[test]
    fn a_record_is_meant_by_its_words_in_any_spelling_and_by_its_id() {
        let mut register = Register::new(false);
        register.put(Field::USER, "ada@acme.test", &[ada()]);
        for text in [" ADA@acme.test", "usr_1", "USR_1"] {
            assert_eq!(ids(&register, Field::USER, text), ["usr_1"], "{text}");
        }
        // The other words were not asked about, and other attributes have registers of their own.
        assert!(register.meant(Field::USER, "ada").is_empty());
        assert!(register.meant(Field::SERVICE_ACCOUNT, "usr_1").is_empty());
        assert_eq!(register.meant(Field::USER, "usr_1")[0].words.len(), 2);
    }

    #[test]
    fn several_records_stay_several_and_in_order() {
        let mut register = Register::new(false);
        let other = Record {
            id: "usr_0".into(),
            ..ada()
        };
        register.put(Field::USER, "ada", &[ada()]);
        register.put(Field::USER, "ADA", &[other, ada()]);
        assert_eq!(ids(&register, Field::USER, "ada"), ["usr_0", "usr_1"]);
        register.put(Field::DEVICE, "ada", &[ada()]);
        assert!(register.meant(Field::DEVICE, "ada").is_empty());
    }

    /// Proves NW-2.
    #[test]
    fn a_version_behind_a_skill_is_no_part_of_its_key() {
        for (text, key) in [
            ("Deploy@1.0.0", "deploy"),
            ("@acme/deploy@1.0.0", "@acme/deploy"),
            ("@acme/deploy", "@acme/deploy"),
            ("deploy@sha256:00", "deploy"),
            ("deploy", "deploy"),
            ("deploy @1", "deploy"),
            ("@deploy", "@deploy"),
            ("deploy@feature/x", "deploy"),
            ("deploy@a@b/c", "deploy"),
            ("@acme/deploy@sha512-a/b==", "@acme/deploy"),
            ("com.acme/deploy@2/@3", "com.acme/deploy"),
            ("ski_1@x/y", "ski_1"),
            ("@acme@1/deploy", "@acme"),
            ("@acme/@deploy@1", "@acme/@deploy"),
            ("@", "@"),
            ("@/", "@/"),
        ] {
            assert_eq!(name_key(Field::SKILL, text), key);
        }
        assert_eq!(name_key(Field::USER, "Ada@acme.test"), "ada@acme.test");
    }

    #[test]
    fn the_digest_tells_registers_apart() {
        let digest = |fill: &dyn Fn(&mut Register)| {
            let mut register = Register::new(false);
            fill(&mut register);
            register.digest()
        };
        let one = digest(&|register| register.put(Field::USER, "ada", &[ada()]));
        assert_eq!(
            one,
            digest(&|register| register.put(Field::USER, " ADA", &[ada()]))
        );
        assert_ne!(one, digest(&|_| {}));
        assert_ne!(one, Register::new(true).digest());
        let in_groups = Record {
            groups: Some(vec!["grp_1".into()]),
            ..ada()
        };
        assert_ne!(
            one,
            digest(&|register| register.put(Field::USER, "ada", std::slice::from_ref(&in_groups)))
        );
    }
}
