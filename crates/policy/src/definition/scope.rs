//! To whom and what a policy applies.
//!
//! ```text
//!   applies = (no one named, or the user, a group or the service account is named)
//!             and for agents, products, devices and resources each: (none named, or it is named)
//! ```
//!
//! So "group engineering, resource ledger" is that group at that resource, and a user or a group is either.
//! An empty scope is everything. Names are compared as they stand: who keeps ids resolves the names before.
//!
//! Source: client contract §3.3 (selector forms), §3.4.

use crate::catalogue::Field;
use crate::read::Object;
use crate::violation::Violations;
use serde_json::Value;

/// One named thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The name or id as written.
    pub name: String,
    /// The directory that tells equal names apart.
    pub directory_id: Option<String>,
}

/// A scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    lists: Vec<(Field, Vec<Reference>)>,
}

/// Which member of a scope names what.
pub const LISTS: [(&str, Field); 7] = [
    ("users", Field::USER),
    ("groups", Field::GROUPS),
    ("serviceAccounts", Field::SERVICE_ACCOUNT),
    ("agents", Field::AGENT),
    ("products", Field::PRODUCT),
    ("devices", Field::DEVICE),
    ("resources", Field::RESOURCE),
];

impl Scope {
    /// Returns the scope that the member `appliesTo` spells.
    pub(super) fn read(definition: Object<'_>, allowed: &[&str], faults: &mut Violations) -> Option<Self> {
        let Some(value) = definition.get("appliesTo") else {
            return Some(Self::default());
        };
        let path = definition.at("appliesTo");
        let object = Object::of(value, &path, faults)?;
        object.only(allowed, faults);
        Some(Self::lists(object, allowed, faults))
    }

    pub(super) fn lists(object: Object<'_>, allowed: &[&str], faults: &mut Violations) -> Self {
        let mut scope = Self::default();
        for (name, field) in LISTS.into_iter().filter(|(name, _)| allowed.contains(name)) {
            let items = object.list(name, 0..=256, faults).unwrap_or_default();
            let mut list: Vec<Reference> = Vec::new();
            for (at, item) in items.iter().enumerate() {
                let path = format!("{}/{at}", object.at(name));
                let may_have_directory = matches!(name, "users" | "groups");
                let Some(reference) = reference(item, &path, may_have_directory, faults) else {
                    continue;
                };
                if list.contains(&reference) {
                    faults.add(path, "stands here twice");
                }
                list.push(reference);
            }
            if !list.is_empty() {
                scope.lists.push((field, list));
            }
        }
        scope
    }

    /// Returns whether it is everything.
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Returns what is named for an attribute; nothing when the scope does not ask for it.
    pub fn named(&self, field: Field) -> &[Reference] {
        let found = self.lists.iter().find(|(f, _)| *f == field);
        found.map_or(&[], |(_, list)| list.as_slice())
    }

    /// Returns the attributes that the scope reads.
    pub fn fields(&self) -> Vec<Field> {
        self.lists.iter().map(|(field, _)| *field).collect()
    }
}

fn reference(
    value: &Value,
    path: &str,
    may_have_directory: bool,
    faults: &mut Violations,
) -> Option<Reference> {
    let length = 1..=4096;
    if !(may_have_directory && value.is_object()) {
        return crate::read::text(value, path, &length, faults).map(|name| Reference {
            name: name.to_owned(),
            directory_id: None,
        });
    }
    let object = Object::of(value, path, faults)?;
    object.only(&["name", "directoryId"], faults);
    let name = object.required_text("name", length.clone(), faults)?;
    let directory = object.text("directoryId", length, faults);
    Some(Reference {
        name: name.to_owned(),
        directory_id: directory.map(str::to_owned),
    })
}
