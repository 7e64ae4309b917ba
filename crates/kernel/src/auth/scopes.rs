//! Which scopes there are, and sets of them. Areas declare their scopes with the roles that hold them; the kernel names none.
//!
//! Names become bits, so a program installs its scopes once, before it reads a right ([`Scopes::install`]). Until then no name
//! is a scope, every set is empty, and nobody may do anything.

use super::Role;
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// LIMIT: scopes of a program, as many as a [`ScopeSet`] has bits.
const MOST: usize = u128::BITS as usize;

/// A part of the product as its callers know it: what stands before the colon of a scope, a tag of the API's description, and
/// what an MCP client can choose (D3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Toolset {
    /// Where it stands in lists, which keep their order for ever; a new one comes last.
    pub place: u8,
    /// Its name.
    pub name: &'static str,
    /// What the readers of the API's description are told of it.
    pub says: &'static str,
    /// Its title on the page on which people consent.
    pub title: &'static str,
    /// What is read and changed there, on that page.
    pub holds: &'static str,
}

/// A right that somebody may have: a toolset and a verb. Admins hold all of them.
///
/// `write` implies `read` of the same toolset. Every other verb is dangerous: nothing implies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// What a verb other than `read` and `write` allows, in words for people who consent to it.
    pub says: &'static str,
    /// The roles beside admins that hold it.
    held_by: &'static [Role],
    /// The roles that hold it only where somebody named it.
    by_name: &'static [Role],
    /// Whether what it gives may outlive whoever uses it.
    is_lasting: bool,
}

/// Returns a scope that admins alone hold.
pub const fn scope(name: &'static str) -> Scope {
    Scope {
        name,
        says: "",
        held_by: &[],
        by_name: &[],
        is_lasting: false,
    }
}

impl Scope {
    /// Says what it allows, for a verb other than `read` and `write`.
    #[must_use]
    pub const fn says(mut self, words: &'static str) -> Self {
        self.says = words;
        self
    }

    /// Gives it to these roles beside admins.
    #[must_use]
    pub const fn held_by(mut self, roles: &'static [Role]) -> Self {
        self.held_by = roles;
        self
    }

    /// Gives it to operators and auditors.
    #[must_use]
    pub const fn readers(self) -> Self {
        self.held_by(&[Role::Operator, Role::Auditor])
    }

    /// Gives it to every role but members, who get what names them.
    #[must_use]
    pub const fn everybody(self) -> Self {
        self.held_by(&[Role::Operator, Role::Auditor, Role::Viewer])
    }

    /// Gives it to these roles where somebody names it, and not with all of the role ([`Role::by_name`]). Admins may stand
    /// among them.
    #[must_use]
    pub const fn by_name(mut self, roles: &'static [Role]) -> Self {
        self.by_name = roles;
        self
    }

    /// Says that what it gives may outlive the session that uses it: tokens, accounts, clients, links of people. A session
    /// behind which no secret is stored never has it ([`ScopeSet::lasting`]).
    #[must_use]
    pub const fn lasting(mut self) -> Self {
        self.is_lasting = true;
        self
    }

    /// Returns the name of its toolset.
    pub fn toolset(&self) -> &'static str {
        self.name.split(':').next().unwrap_or_default()
    }

    fn is_granted_to(&self, role: Role) -> bool {
        role == Role::Admin || self.held_by.contains(&role) || self.by_name.contains(&role)
    }
}

/// The scopes of a program, and the toolsets that they belong to.
#[derive(Debug, PartialEq, Eq)]
pub struct Scopes {
    /// In the order of lists.
    toolsets: Vec<Toolset>,
    /// In alphabetical order: a name is found by bisection, and a set lists itself sorted. A scope's place is its bit; bits
    /// are not stored anywhere.
    declared: Vec<Scope>,
    all: ScopeSet,
    /// The read scope that each scope implies, by place.
    implied: Vec<ScopeSet>,
    /// What each role can use at all.
    granted: [ScopeSet; Role::ALL.len()],
    /// What of it the role can use only by name.
    by_name: [ScopeSet; Role::ALL.len()],
    /// What may give what outlives its user.
    lasting: ScopeSet,
}

static INSTALLED: OnceLock<Scopes> = OnceLock::new();

/// What a program has that has not installed its scopes.
static NONE: Scopes = Scopes {
    toolsets: Vec::new(),
    declared: Vec::new(),
    all: ScopeSet(0),
    implied: Vec::new(),
    granted: [ScopeSet(0); Role::ALL.len()],
    by_name: [ScopeSet(0); Role::ALL.len()],
    lasting: ScopeSet(0),
};

/// Returns the toolsets of the running program, in the order of lists.
pub fn toolsets() -> &'static [Toolset] {
    &Scopes::current().toolsets
}

/// Returns the scopes of the running program, in alphabetical order.
pub fn scopes() -> &'static [Scope] {
    &Scopes::current().declared
}

impl Scopes {
    /// Returns the scopes of these toolsets.
    ///
    /// Errors: `Internal` for a declaration that is wrong or stands there twice, and for more than 128 scopes.
    pub fn of(toolsets: Vec<Toolset>, scopes: Vec<Scope>) -> Result<Self> {
        let (mut toolsets, mut scopes) = (toolsets, scopes);
        toolsets.sort_by_key(|toolset| (toolset.place, toolset.name));
        scopes.sort_by_key(|scope| scope.name);
        check(&toolsets, &scopes)?;
        let set = |wanted: &dyn Fn(&Scope) -> bool| {
            let places = scopes.iter().enumerate();
            places
                .filter(|(_, scope)| wanted(scope))
                .fold(ScopeSet(0), |set, (place, _)| ScopeSet(set.0 | 1 << place))
        };
        let implied = |scope: &Scope| {
            let read = scope
                .name
                .strip_suffix(":write")
                .map(|toolset| format!("{toolset}:read"));
            set(&|other| Some(other.name) == read.as_deref())
        };
        Ok(Self {
            all: set(&|_| true),
            implied: scopes.iter().map(implied).collect(),
            granted: Role::ALL.map(|role| set(&|scope| scope.is_granted_to(role))),
            by_name: Role::ALL.map(|role| set(&|scope| scope.by_name.contains(&role))),
            lasting: set(&|scope| scope.is_lasting),
            toolsets,
            declared: scopes,
        })
    }

    /// Makes these the scopes of the running program, for as long as it runs. The same scopes may be installed again.
    ///
    /// Errors: `Internal` when the program has other scopes; those stay.
    pub fn install(self) -> Result<()> {
        match INSTALLED.set(self) {
            Err(other) if INSTALLED.get() != Some(&other) => Err(Error::internal(
                "the program has scopes already, and they are others; one program serves one list of areas",
            )),
            _ => Ok(()),
        }
    }

    #[cfg(not(test))]
    fn current() -> &'static Self {
        INSTALLED.get().unwrap_or(&NONE)
    }

    /// Tests of the kernel have scopes of their own.
    #[cfg(test)]
    fn current() -> &'static Self {
        INSTALLED.get_or_init(super::tests::scopes)
    }

    pub(super) fn granted_to(role: Role) -> ScopeSet {
        Self::current().granted[role as usize]
    }

    pub(super) fn by_name_to(role: Role) -> ScopeSet {
        Self::current().by_name[role as usize]
    }

    fn one(&self, name: &str) -> ScopeSet {
        let place = self.declared.binary_search_by_key(&name, |scope| scope.name);
        ScopeSet(place.map_or(0, |place| 1 << place))
    }
}

/// Refuses declarations that contradict each other or leave something out.
fn check(toolsets: &[Toolset], scopes: &[Scope]) -> Result<()> {
    let wrong = |what: &str, name: &str| Err(Error::internal(format!("{what}: {name}")));
    if scopes.len() > MOST {
        return Err(Error::internal(format!("there are more than {MOST} scopes")));
    }
    let mut names = BTreeSet::new();
    for toolset in toolsets {
        if !names.insert(toolset.name) {
            return wrong("a toolset is declared twice", toolset.name);
        }
        if toolset.title.is_empty() || toolset.holds.is_empty() {
            return wrong("a toolset has no words for people who consent", toolset.name);
        }
        for verb in ["read", "write"] {
            let name = format!("{}:{verb}", toolset.name);
            if !scopes.iter().any(|scope| scope.name == name) {
                return wrong("a toolset lacks a scope", &name);
            }
        }
    }
    for pair in scopes.windows(2) {
        if pair[0].name == pair[1].name {
            return wrong("a scope is declared twice", pair[0].name);
        }
    }
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    for scope in scopes {
        let Some((toolset, verb)) = scope.name.split_once(':').filter(|(_, verb)| is_word(verb)) else {
            return wrong("a scope is not named as toolset:verb", scope.name);
        };
        if !names.contains(toolset) {
            return wrong("a scope belongs to a toolset that nobody declares", scope.name);
        }
        if scope.says.is_empty() != ["read", "write"].contains(&verb) {
            return wrong(
                "every scope but those that read and write says what it allows",
                scope.name,
            );
        }
    }
    Ok(())
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ScopeSet(u128);

impl ScopeSet {
    /// Returns every scope.
    pub fn all() -> Self {
        Scopes::current().all
    }

    /// Returns every scope that only looks.
    pub fn reads() -> Self {
        let names: Vec<&str> = Self::all()
            .names()
            .filter(|name| name.ends_with(":read"))
            .collect();
        Self::of(&names)
    }

    /// Returns every scope with which something can be made that outlives the session which uses it.
    pub fn lasting() -> Self {
        Scopes::current().lasting
    }

    /// Returns the set of these names; unknown names are left out.
    pub fn of(names: &[&str]) -> Self {
        names.iter().fold(Self(0), |set, name| set.or(Self::one(name)))
    }

    /// Returns the set behind a stored, space-separated list. Names that no longer exist grant nothing.
    pub fn from_store(text: &str) -> Self {
        text.split(' ').fold(Self(0), |set, name| set.or(Self::one(name)))
    }

    /// Returns the set of one name; the empty set for a name that is unknown.
    fn one(name: &str) -> Self {
        Scopes::current().one(name)
    }

    /// Says whether a name is a scope.
    pub fn is_known(name: &str) -> bool {
        Self::one(name) != Self(0)
    }

    /// Adds `x:read` for every `x:write`.
    #[must_use]
    pub fn closed(self) -> Self {
        let implied = &Scopes::current().implied;
        self.places().fold(self, |set, place| set.or(implied[place]))
    }

    fn places(self) -> impl Iterator<Item = usize> {
        (0..MOST).filter(move |place| self.0 & (1 << place) != 0)
    }

    /// Returns what both sets hold.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns what either set holds.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set without what another holds.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Says whether the set holds a scope.
    pub fn has(self, name: &str) -> bool {
        self.0 & Self::one(name).0 != 0
    }

    /// Says whether the set holds everything that `other` holds.
    pub const fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns the names in alphabetical order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let scopes = scopes();
        self.places().map(|place| scopes[place].name)
    }

    /// Returns the names as a sorted list.
    pub fn to_list(self) -> Vec<&'static str> {
        self.names().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolset(name: &'static str) -> Toolset {
        Toolset {
            place: 0,
            name,
            says: "",
            title: "Things",
            holds: "things",
        }
    }

    fn made(toolsets: &[Toolset], scopes: &[Scope]) -> Result<Scopes> {
        Scopes::of(toolsets.to_vec(), scopes.to_vec())
    }

    #[test]
    fn what_is_declared_wrong_is_refused() {
        let things = toolset("things");
        let [reads, writes] = [scope("things:read").readers(), scope("things:write")];
        let turns = scope("things:turn").says("Turn things");
        assert!(made(&[things], &[writes, reads, turns]).is_ok());
        for (toolsets, scopes, said) in [
            (
                &[things, things][..],
                &[reads, writes][..],
                "a toolset is declared twice: things",
            ),
            (
                &[things],
                &[reads, writes, reads],
                "a scope is declared twice: things:read",
            ),
            (&[things], &[reads], "a toolset lacks a scope: things:write"),
            (&[], &[reads], "nobody declares: things:read"),
            (
                &[things],
                &[reads, writes, scope("things:Turn").says("Turn")],
                "toolset:verb: things:Turn",
            ),
            (
                &[things],
                &[reads, writes, scope("turn").says("Turn")],
                "toolset:verb: turn",
            ),
            (
                &[things],
                &[reads, writes, scope("things:turn")],
                "what it allows: things:turn",
            ),
            (
                &[things],
                &[reads.says("Read"), writes],
                "what it allows: things:read",
            ),
            (&[Toolset { title: "", ..things }], &[reads, writes], "no words"),
            (&[Toolset { holds: "", ..things }], &[reads, writes], "no words"),
        ] {
            let refused = made(toolsets, scopes).unwrap_err();
            assert!(refused.private().unwrap().contains(said), "{said}");
        }
    }

    #[test]
    fn a_program_has_128_scopes_and_not_one_more() {
        let letter = |n: usize| char::from(b'a' + u8::try_from(n).unwrap());
        let verb = |n: usize| format!("things:turn_{}{}", letter(n / 26), letter(n % 26));
        let scopes = |count: usize| {
            let named = (0..count - 2).map(|n| scope(verb(n).leak()).says("Turn things"));
            named
                .chain([scope("things:read"), scope("things:write")])
                .collect::<Vec<_>>()
        };
        let most = made(&[toolset("things")], &scopes(MOST)).unwrap();
        assert_eq!(most.all, ScopeSet(u128::MAX));
        assert_eq!(most.granted[Role::Admin as usize], most.all);
        let last = most.one(most.declared[MOST - 1].name);
        assert_eq!((last, last.and(most.all)), (ScopeSet(1 << (MOST - 1)), last));
        assert!(made(&[toolset("things")], &scopes(MOST + 1)).is_err());
    }

    #[test]
    fn without_scopes_nobody_may_do_anything() {
        assert_eq!(NONE.one("audit:read"), ScopeSet::default());
        assert_eq!(NONE.all, ScopeSet::default());
        assert!(
            NONE.granted
                .iter()
                .chain(&NONE.by_name)
                .all(|set| *set == ScopeSet::default())
        );
    }

    #[test]
    fn scopes_are_installed_once() {
        assert!(ScopeSet::is_known("audit:read"));
        assert!(super::super::tests::scopes().install().is_ok());
        assert!(made(&[], &[]).unwrap().install().is_err());
        assert!(ScopeSet::is_known("audit:read"));
    }

    #[test]
    fn toolsets_stand_in_their_places() {
        let declared = [("b", 2), ("c", 1), ("a", 2)].map(|(name, place)| Toolset {
            place,
            ..toolset(name)
        });
        let scopes = ["a:read", "a:write", "b:read", "b:write", "c:read", "c:write"].map(scope);
        let sorted = made(&declared, &scopes).unwrap().toolsets;
        let names: Vec<_> = sorted.iter().map(|toolset| toolset.name).collect();
        assert_eq!(names, ["c", "a", "b"]);
    }
}
