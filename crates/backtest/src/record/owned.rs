//! An event with its texts, as it waits to be written or was read back.

use provost_policy::{Action, Event, Field, FieldType, Occasion, Symbols, Value, Violations, exact_text};
use serde_json::{Map, Value as Json};

/// An event as it was judged, with the decision if there was one; it borrows nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedRecord {
    /// When it happened. Units: milliseconds since the Unix epoch, UTC.
    pub at_ms: i64,
    /// Where it was judged.
    pub occasion: Occasion,
    /// Who sent it: a name of an import, a receiver, or the decisions themselves.
    pub source: Option<String>,
    /// The id of the principal that handed it in; none of events from before that was noted.
    pub principal: Option<String>,
    /// Whether it was imported; none of events from before that was noted ([`Self::is_imported`] knows of these too).
    pub imported: Option<bool>,
    /// The session that it belongs to, in the sender's words.
    pub session: Option<String>,
    /// The call that it belongs to, in the sender's words.
    pub call_id: Option<String>,
    /// The id that the source knows it by.
    pub external_id: Option<String>,
    /// What was decided.
    pub decision: Option<Decision>,
    /// Those that are present, sorted by name.
    pub(super) attributes: Vec<(Field, Attribute)>,
    /// Those that are missing, sorted by name.
    pub(super) missing: Vec<Field>,
}

/// The value of an attribute that is present.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// A text, or content.
    Text(String),
    /// A set of texts, sorted, without repetition.
    Set(Vec<String>),
    /// A number; never a NaN, and zero is never negative.
    Number(f64),
    /// True or false.
    Boolean(bool),
}

/// What was decided on an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The action.
    pub action: Action,
    /// The ids of the policies whose action it was, sorted, without repetition; with the basis `Approved` those too whose question the approval
    /// answered.
    pub policy_ids: Vec<String>,
    /// The id of the policy-set version that decided; none of a decision that was made elsewhere.
    pub policy_set_version: Option<String>,
    /// Whether it was enforced.
    pub mode: Mode,
    /// On what it rests where that are not the policies that it names, or not they alone; none of events from before that was noted (version 3).
    pub basis: Option<Basis>,
}

/// On what a decision rests beside policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The standing of an MCP server: it is denied, whatever policies say.
    Standing,
    /// A device could not say for certain, asked, and heard nothing: it held to the strongest that may have been meant.
    Unanswered,
    /// As `Unanswered`, by policies that were old.
    Expired,
    /// A device had nothing to judge by.
    NoBundle,
    /// A device could not judge.
    Failed,
    /// A bypass of the device let it pass, and no policy is named that would have stopped it.
    Bypass,
    /// Somebody's approval was used: the policies that asked for it are among those that the decision names, and have no part in its action.
    Approved,
}

impl Basis {
    /// Every basis.
    pub const ALL: [Self; 7] = [
        Self::Standing,
        Self::Unanswered,
        Self::Expired,
        Self::NoBundle,
        Self::Failed,
        Self::Bypass,
        Self::Approved,
    ];

    /// Returns the word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::Unanswered => "unanswered",
            Self::Expired => "expired",
            Self::NoBundle => "no_bundle",
            Self::Failed => "failed",
            Self::Bypass => "bypass",
            Self::Approved => "approved",
        }
    }

    /// Returns the basis that has this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|basis| basis.word() == word)
    }
}

/// Whether a decision was enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It was.
    #[default]
    Enforce,
    /// It was only reported.
    Monitor,
    /// It was only reported, because a bypass let everything pass on the device that judged.
    Bypass,
}

impl Mode {
    /// Returns the word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Monitor => "monitor",
            Self::Bypass => "bypass",
        }
    }

    /// Returns the mode that has this word.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Enforce, Self::Monitor, Self::Bypass]
            .into_iter()
            .find(|mode| mode.word() == word)
    }
}

impl OwnedRecord {
    /// Returns an event that was judged, from its table of symbols; whatever else is known of it is set afterwards.
    pub fn of(event: &Event, symbols: &Symbols) -> Self {
        let mut attributes = Vec::with_capacity(event.values().len());
        let mut missing = Vec::new();
        for (field, value) in event.values() {
            let text = |symbol| symbols.text(symbol).to_owned();
            attributes.push((
                *field,
                match *value {
                    Value::Absent => continue,
                    Value::Missing => {
                        missing.push(*field);
                        continue;
                    }
                    // Its words follow from the tool's input again.
                    Value::Text(symbol) | Value::Line { whole: symbol, .. } => Attribute::Text(text(symbol)),
                    Value::Set(set) => {
                        let mut members: Vec<String> = symbols.set(set).iter().copied().map(text).collect();
                        members.sort_unstable();
                        Attribute::Set(members)
                    }
                    Value::Number(number) => Attribute::Number(number),
                    Value::Boolean(is) => Attribute::Boolean(is),
                },
            ));
        }
        Self {
            attributes,
            missing,
            ..Self::empty(event.at_ms(), event.occasion())
        }
    }

    /// Returns the event whose attributes a flat document spells; see [`Event::read`].
    ///
    /// Units: milliseconds since the Unix epoch, UTC.
    /// Errors: a name that is not of the catalogue, a value of another type, an attribute both given and missing;
    /// pointers are relative to the attributes, those into `missing` begin with `/missing/`.
    pub fn read(
        at_ms: i64,
        occasion: Occasion,
        attributes: &Map<String, Json>,
        missing: &[&str],
    ) -> Result<Self, Violations> {
        let mut symbols = Symbols::new();
        let event = Event::read(&mut symbols, at_ms, occasion, attributes, missing)?;
        Ok(Self::of(&event, &symbols))
    }

    pub(super) fn empty(at_ms: i64, occasion: Occasion) -> Self {
        Self {
            at_ms,
            occasion,
            source: None,
            principal: None,
            imported: None,
            session: None,
            call_id: None,
            external_id: None,
            decision: None,
            attributes: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Returns the event as policies judge it, in this table of symbols.
    pub fn event(&self, symbols: &mut Symbols) -> Event {
        let mut event = Event::new(self.at_ms, self.occasion);
        for (field, attribute) in &self.attributes {
            let value = match attribute {
                Attribute::Text(text) => Value::Text(symbols.intern(text)),
                Attribute::Set(members) => Value::Set(symbols.intern_set(members.iter().map(String::as_str))),
                Attribute::Number(number) => Value::Number(*number),
                Attribute::Boolean(is) => Value::Boolean(*is),
            };
            event.set(*field, value);
        }
        for field in &self.missing {
            event.set(*field, Value::Missing);
        }
        event.follow_input(symbols);
        event
    }

    /// Returns an attribute that is present.
    pub fn attribute(&self, field: Field) -> Option<&Attribute> {
        let at = self.attributes.binary_search_by_key(&field, |(of, _)| *of);
        at.ok().map(|at| &self.attributes[at].1)
    }

    /// Returns the attributes that are present, sorted by name.
    pub fn attributes(&self) -> &[(Field, Attribute)] {
        &self.attributes
    }

    /// Returns the attributes that are missing, sorted by name.
    pub fn missing(&self) -> &[Field] {
        &self.missing
    }

    /// Returns the attributes as the flat document that reads as this event.
    ///
    /// Content that is a JSON object or array is given as such.
    pub fn flat(&self) -> Map<String, Json> {
        let json = |field: Field, attribute: &Attribute| match attribute {
            Attribute::Text(text) if field.kind() == FieldType::Content => document(text),
            Attribute::Text(text) => text.as_str().into(),
            Attribute::Set(members) => members.as_slice().into(),
            Attribute::Number(number) => (*number).into(),
            Attribute::Boolean(is) => (*is).into(),
        };
        let each = self.attributes.iter();
        each.map(|(field, attribute)| (field.name().to_owned(), json(*field, attribute)))
            .collect()
    }
}

/// Returns the document that a text is the canonical form of, else the text.
fn document(text: &str) -> Json {
    // A text that is refused here stays the text that it is.
    if text.starts_with(['{', '['])
        && let Ok(document) = serde_json::from_str::<Json>(text)
        && exact_text(&document) == text
    {
        return document;
    }
    text.into()
}
