//! Texts of a module that are compared with names: ids of records, and words that are the same in any spelling.
//!
//! The input names a user by an id, and people write `input.identity.user_id == "ada@acme.test"`. Such a module matched nobody
//! whom the directory knows. Which texts these are is found in the module as it is written:
//!
//! ```text
//!   a == b, a := b, x in c, f(a) for f(x) …   what the two sides hold belongs together
//!   c[k], some k, v in c                      the keys, and the items, of what c holds
//!   startswith(a, b), regex.match(a, b), …    all that they are given belongs together
//! ```
//!
//! Values that belong together are one class (Steensgaard's analysis): names of a rule, arguments, constants and rules of the
//! module are followed, the order of expressions is not. A class that holds an id of the input as well as a text which is none is
//! a comparison. It may hold more than is ever compared, never less, but for what only the control flow carries.
//!
//! INVARIANT RG-6: every way in which a text of a module can meet the id of a record is found when it is compiled,
//! and is a warning that names the member to ask instead. Every way in which a text of the module can meet an id of
//! the input, by a comparison, a membership, a lookup or a built-in, joins their classes.

use super::Diagnostic;
use crate::catalogue::{Field, FieldType};
use crate::event::words_path;
use crate::register::name_key;
use regorus::admitted::{Texts, admitted};
use regorus::unstable::{
    Expr, Literal, Module, Parser, Query, Rule, RuleAssign, RuleBody, RuleHead, Source, Span,
};
use std::collections::{BTreeMap, HashMap};

/// Returns the attributes whose texts are names, and where each stands in the input.
fn names() -> impl Iterator<Item = (Field, Vec<&'static str>)> {
    let names = Field::all().filter(|field| field.is_name());
    names.map(|field| (field, field.name().split('.').collect()))
}

/// A text that is compared with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedLiteral {
    pub field: Field,
    pub text: String,
    pub place: (u32, u32),
    /// The name is also asked in parts, by a built-in: which part of it is meant nobody sees here.
    pub is_in_parts: bool,
}

impl NamedLiteral {
    /// Returns what its author is told; nothing where the text is compared with what it is, a word in some spelling.
    pub fn warning(&self) -> Option<Diagnostic> {
        let words = words_path(self.field)?;
        let id = self.field.name();
        Some(diagnostic(self.place, &self.text, |shown| {
            format!(
                "{shown} is compared with input.{id}, which is an id; ask input.{words}, which holds the id and every \
                 word of the record as match keys. Until then the module is also judged with each word in place of the id, and \
                 matches if it matches for one of them"
            )
        }))
    }
}

fn diagnostic(place: (u32, u32), text: &str, say: impl Fn(&str) -> String) -> Diagnostic {
    let shown: String = text.chars().take(64).collect();
    Diagnostic {
        line: place.0,
        column: place.1,
        message: say(&format!("{shown:?}")),
    }
}

/// What is found in a module.
#[derive(Default)]
pub(super) struct ModuleLiterals {
    /// The texts that are compared with names, in the order of the module. Ids are none of them, and neither are texts that
    /// nobody sees.
    pub literals: Vec<NamedLiteral>,
    /// What the author is told, in the same order.
    pub warnings: Vec<Diagnostic>,
}

/// Returns what of a module is compared with names.
pub(super) fn of(module: &Module, package: &[&str]) -> ModuleLiterals {
    let mut walk = Walk::new(module, package);
    for rule in &module.policy {
        walk.rule(rule);
    }
    walk.found()
}

/// Returns a module as it is written; nothing where it is none.
pub(super) fn parse(source: &str) -> Option<Module> {
    let limits = super::lengths();
    let source = Source::from_contents_with_limits(
        "module.rego".into(),
        source.into(),
        limits.max_file_bytes,
        limits.max_lines,
    )
    .ok()?;
    let mut parser = Parser::new(&source).ok()?;
    parser.set_max_col(limits.max_col);
    parser.enable_rego_v1().ok()?;
    parser.parse().ok()
}

/// Says whether a text is an id, or the beginning that all ids of a kind have; also as a pattern for one of them.
fn is_id(text: &str) -> bool {
    let text = text.strip_prefix('^').unwrap_or(text);
    let text = text.strip_suffix('$').unwrap_or(text);
    let kinds = ["usr_", "sa_", "grp_", "ski_", "res_"];
    let rest = kinds.into_iter().find_map(|kind| text.strip_prefix(kind));
    // Crockford's base 32 in lower case (D1.1).
    let is_digit = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase() && !"ilou".contains(c);
    rest.is_some_and(|rest| rest.is_empty() || rest.len() == 26 && rest.chars().all(is_digit))
}

/// Values that belong together.
type Class = usize;

#[derive(Default)]
struct ValueClass {
    /// What stands under a name that is known.
    members: BTreeMap<String, Class>,
    /// What stands under any name or place; of a set its members.
    items: Option<Class>,
    /// The names themselves; of a set its members.
    keys: Option<Class>,
    /// The texts of the module among the values.
    texts: Vec<usize>,
}

#[derive(Default)]
struct Classes {
    parents: Vec<Class>,
    held: Vec<ValueClass>,
}

impl Classes {
    fn fresh(&mut self) -> Class {
        self.parents.push(self.parents.len());
        self.held.push(ValueClass::default());
        self.parents.len() - 1
    }

    fn root(&mut self, class: Class) -> Class {
        let mut at = class;
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    /// Joins two classes, and what they hold. A loop, not a call of itself: the stack is bounded (RG-2).
    fn join(&mut self, a: Class, b: Class) {
        let mut open = vec![(a, b)];
        while let Some((a, b)) = open.pop() {
            let (mut into, mut from) = (self.root(a), self.root(b));
            if into == from {
                continue;
            }
            let size = |held: &ValueClass| held.members.len() + held.texts.len();
            if size(&self.held[into]) < size(&self.held[from]) {
                std::mem::swap(&mut into, &mut from);
            }
            self.parents[from] = into;
            let gone = std::mem::take(&mut self.held[from]);
            let held = &mut self.held[into];
            held.texts.extend(gone.texts);
            let had_items = held.items.is_some();
            for (mine, theirs) in [(&mut held.items, gone.items), (&mut held.keys, gone.keys)] {
                match (*mine, theirs) {
                    (Some(mine), Some(theirs)) => open.push((mine, theirs)),
                    (None, theirs) => *mine = theirs,
                    (Some(_), None) => {}
                }
            }
            let items = held.items;
            if let (Some(items), false) = (items, had_items) {
                open.extend(held.members.values().map(|member| (*member, items)));
            }
            for (name, class) in gone.members {
                open.extend(items.map(|items| (class, items)));
                match held.members.get(&name) {
                    Some(known) => open.push((*known, class)),
                    None => {
                        held.members.insert(name, class);
                    }
                }
            }
        }
    }

    fn member(&mut self, class: Class, name: &str) -> Class {
        let root = self.root(class);
        if let Some(known) = self.held[root].members.get(name) {
            return *known;
        }
        let made = self.fresh();
        self.held[root].members.insert(name.to_owned(), made);
        if let Some(items) = self.held[root].items {
            self.join(made, items);
        }
        made
    }

    fn items(&mut self, class: Class) -> Class {
        let root = self.root(class);
        if let Some(known) = self.held[root].items {
            return known;
        }
        let made = self.fresh();
        self.held[root].items = Some(made);
        let members: Vec<Class> = self.held[root].members.values().copied().collect();
        for member in members {
            self.join(member, made);
        }
        made
    }

    fn keys(&mut self, class: Class) -> Class {
        let root = self.root(class);
        if let Some(known) = self.held[root].keys {
            return known;
        }
        let made = self.fresh();
        self.held[root].keys = Some(made);
        made
    }
}

/// A function of the module.
#[derive(Default)]
struct Function {
    parameters: Vec<Class>,
}

struct Walk {
    classes: Classes,
    texts: Vec<(String, (u32, u32))>,
    /// What built-ins are given that take a text apart, or ask for a part of it.
    in_parts: Vec<Class>,
    input: Class,
    /// What a name means in the whole module: rules, imports, `input`, `data`.
    globals: HashMap<String, Class>,
    /// What a name means in the rule at hand. One that stands in several of its blocks is one here.
    locals: HashMap<String, Class>,
    functions: HashMap<String, Function>,
    package: String,
}

impl Walk {
    fn new(module: &Module, package: &[&str]) -> Self {
        let mut classes = Classes::default();
        let (input, data) = (classes.fresh(), classes.fresh());
        let own = package.iter().fold(data, |at, name| classes.member(at, name));
        let mut walk = Self {
            globals: HashMap::from([("input".to_owned(), input), ("data".to_owned(), data)]),
            locals: HashMap::new(),
            functions: HashMap::new(),
            texts: Vec::new(),
            in_parts: Vec::new(),
            package: format!("data.{}.", package.join(".")),
            classes,
            input,
        };
        for rule in &module.policy {
            let (head, arguments) = match rule.as_ref() {
                Rule::Spec { head, .. } => match head {
                    RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } => (refr, None),
                    RuleHead::Func { refr, args, .. } => (refr, Some(args.len())),
                },
                Rule::Default { refr, args, .. } => (refr, (!args.is_empty()).then_some(args.len())),
            };
            let Some(path) = path(head) else { continue };
            if let Some(first) = path.first() {
                let class = walk.classes.member(own, first);
                walk.globals.insert(first.clone(), class);
            }
            if let Some(count) = arguments {
                let function = walk.functions.entry(path.join(".")).or_default();
                while function.parameters.len() < count {
                    function.parameters.push(walk.classes.fresh());
                }
            }
        }
        for import in &module.imports {
            let Some(path) = path(&import.refr) else { continue };
            let alias = import.r#as.as_ref().map(|name| name.text().to_owned());
            let name = alias.or_else(|| path.last().cloned());
            if let (Some(name), Some("input" | "data")) = (name, path.first().map(String::as_str)) {
                let class = walk.expression(&import.refr);
                walk.globals.insert(name, class);
            }
        }
        walk
    }

    fn found(mut self) -> ModuleLiterals {
        let mut found = ModuleLiterals::default();
        for (field, path) in names() {
            let held = self.held_at(field, &path);
            let in_parts = std::mem::take(&mut self.in_parts);
            let is_in_parts = in_parts.iter().any(|class| self.classes.root(*class) == held);
            self.in_parts = in_parts;
            for text in &self.classes.held[held].texts {
                let (text, place) = self.texts[*text].clone();
                if !is_id(&text) && !name_key(field, &text).is_empty() {
                    found.literals.push(NamedLiteral {
                        field,
                        text,
                        place,
                        is_in_parts,
                    });
                }
            }
            let Some(words) = words_path(field) else { continue };
            // Of every kind of record a set.
            let path: Vec<&str> = words.split('.').collect();
            let held = self.held_at(Field::GROUPS, &path);
            for text in &self.classes.held[held].texts {
                let (text, place) = &self.texts[*text];
                let key = name_key(field, text);
                if key != *text && !key.is_empty() {
                    found.warnings.push(diagnostic(*place, text, |shown| {
                        format!(
                            "{shown} is compared with input.{words}, which holds match keys alone, and none of them is that; \
                             write {key:?}"
                        )
                    }));
                }
            }
        }
        found.literals.sort_by_key(|a| (a.place, a.field));
        found.literals.dedup();
        let warnings = found.literals.iter().filter_map(NamedLiteral::warning);
        found.warnings.extend(warnings);
        found.warnings.sort_by_key(|a| (a.line, a.column));
        found.warnings.dedup();
        found
    }

    /// Returns the class of what stands at a path of the input; of a set, that of its members.
    fn held_at(&mut self, field: Field, path: &[&str]) -> Class {
        let input = self.input;
        let at = path.iter().fold(input, |at, name| self.classes.member(at, name));
        let at = if field.kind() == FieldType::Set {
            self.classes.items(at)
        } else {
            at
        };
        self.classes.root(at)
    }

    fn rule(&mut self, rule: &Rule) {
        self.locals.clear();
        match rule {
            Rule::Default {
                refr, args, value, ..
            } => {
                let class = self.expression(refr);
                self.parameters(refr, args);
                let value = self.expression(value);
                self.classes.join(class, value);
            }
            Rule::Spec { head, bodies, .. } => {
                let class = match head {
                    RuleHead::Compr { refr, assign, .. } => {
                        let class = self.expression(refr);
                        self.assigned(class, assign.as_ref());
                        class
                    }
                    RuleHead::Set { refr, key, .. } => {
                        let class = self.expression(refr);
                        if let Some(key) = key {
                            let key = self.expression(key);
                            self.is_set_of(class, key);
                        }
                        class
                    }
                    RuleHead::Func {
                        refr, args, assign, ..
                    } => {
                        let class = self.expression(refr);
                        self.parameters(refr, args);
                        self.assigned(class, assign.as_ref());
                        class
                    }
                };
                for RuleBody { assign, query, .. } in bodies {
                    self.query(query);
                    self.assigned(class, assign.as_ref());
                }
            }
        }
    }

    fn assigned(&mut self, class: Class, assign: Option<&RuleAssign>) {
        if let Some(assign) = assign {
            let value = self.expression(&assign.value);
            self.classes.join(class, value);
        }
    }

    fn parameters(&mut self, head: &Expr, args: &[regorus::unstable::Ref<Expr>]) {
        let name = path(head).unwrap_or_default().join(".");
        for (place, arg) in args.iter().enumerate() {
            let class = self.expression(arg);
            let parameter = self.functions.get(&name).and_then(|f| f.parameters.get(place));
            if let Some(parameter) = parameter.copied() {
                self.classes.join(class, parameter);
            }
        }
    }

    fn query(&mut self, query: &Query) {
        for statement in &query.stmts {
            match &statement.literal {
                Literal::SomeVars { .. } => {}
                Literal::SomeIn {
                    key,
                    value,
                    collection,
                    ..
                } => self.membership(key.as_deref(), value, collection),
                Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => {
                    self.expression(expr);
                }
                Literal::Every {
                    key,
                    value,
                    domain,
                    query,
                    ..
                } => {
                    let domain = self.expression(domain);
                    let (items, value) = (self.classes.items(domain), self.name(value));
                    self.classes.join(items, value);
                    if let Some(key) = key {
                        let (keys, key) = (self.classes.keys(domain), self.name(key));
                        self.classes.join(keys, key);
                    }
                    self.query(query);
                }
            }
            for with in &statement.with_mods {
                let (target, value) = (self.expression(&with.refr), self.expression(&with.r#as));
                self.classes.join(target, value);
            }
        }
    }

    fn membership(&mut self, key: Option<&Expr>, value: &Expr, collection: &Expr) {
        let collection = self.expression(collection);
        let (items, value) = (self.classes.items(collection), self.expression(value));
        self.classes.join(items, value);
        if let Some(key) = key {
            let (keys, key) = (self.classes.keys(collection), self.expression(key));
            self.classes.join(keys, key);
        }
    }

    fn name(&mut self, span: &Span) -> Class {
        let name = span.text();
        if name == "_" {
            return self.classes.fresh();
        }
        if let Some(known) = self.globals.get(name).or_else(|| self.locals.get(name)) {
            return *known;
        }
        let made = self.classes.fresh();
        self.locals.insert(name.to_owned(), made);
        made
    }

    fn text(&mut self, text: &str, span: &Span) -> Class {
        let class = self.classes.fresh();
        self.classes.held[class].texts.push(self.texts.len());
        // The span of a quoted text begins behind the quote.
        let before = span.start.checked_sub(1).and_then(|at| {
            let source = span.source.contents().as_bytes();
            source.get(usize::try_from(at).ok()?).copied()
        });
        let is_quoted = matches!(before, Some(b'"' | b'`'));
        let column = span.col - u32::from(is_quoted && span.col > 1);
        self.texts.push((text.to_owned(), (span.line, column)));
        class
    }

    /// Says that a class is a set of these members.
    fn is_set_of(&mut self, class: Class, member: Class) {
        let (items, keys) = (self.classes.items(class), self.classes.keys(class));
        self.classes.join(items, member);
        self.classes.join(keys, member);
    }

    fn expression(&mut self, expression: &Expr) -> Class {
        match expression {
            Expr::String { span, value, .. } | Expr::RawString { span, value, .. } => match value.as_string()
            {
                Ok(text) => self.text(text, span),
                Err(_) => self.classes.fresh(),
            },
            Expr::Number { .. } | Expr::Bool { .. } | Expr::Null { .. } => self.classes.fresh(),
            Expr::Var { span, .. } => self.name(span),
            Expr::Array { items, .. } => {
                let class = self.classes.fresh();
                for (place, item) in items.iter().enumerate() {
                    let (at, item) = (
                        self.classes.member(class, &place.to_string()),
                        self.expression(item),
                    );
                    self.classes.join(at, item);
                }
                class
            }
            Expr::Set { items, .. } => {
                let class = self.classes.fresh();
                for item in items {
                    let item = self.expression(item);
                    self.is_set_of(class, item);
                }
                class
            }
            Expr::Object { fields, .. } => {
                let class = self.classes.fresh();
                for (_, key, value) in fields {
                    let value = self.expression(value);
                    let at = match literal(key) {
                        Some(name) => self.classes.member(class, &name),
                        None => self.classes.items(class),
                    };
                    self.classes.join(at, value);
                    let (keys, key) = (self.classes.keys(class), self.expression(key));
                    self.classes.join(keys, key);
                }
                class
            }
            Expr::ArrayCompr { term, query, .. } => {
                self.query(query);
                let (class, term) = (self.classes.fresh(), self.expression(term));
                let items = self.classes.items(class);
                self.classes.join(items, term);
                class
            }
            Expr::SetCompr { term, query, .. } => {
                self.query(query);
                let (class, term) = (self.classes.fresh(), self.expression(term));
                self.is_set_of(class, term);
                class
            }
            Expr::ObjectCompr {
                key, value, query, ..
            } => {
                self.query(query);
                let class = self.classes.fresh();
                let (keys, key) = (self.classes.keys(class), self.expression(key));
                self.classes.join(keys, key);
                let (items, value) = (self.classes.items(class), self.expression(value));
                self.classes.join(items, value);
                class
            }
            Expr::Call { fcn, params, .. } => self.call(fcn, params),
            Expr::UnaryExpr { expr, .. } => self.expression(expr),
            Expr::RefDot { refr, field, .. } => {
                let of = self.expression(refr);
                self.step(of, field.0.text(), &field.0)
            }
            Expr::RefBrack { refr, index, .. } => {
                let of = self.expression(refr);
                if let Some(name) = literal(index) {
                    return self.step(of, &name, index.span());
                }
                let (keys, index) = (self.classes.keys(of), self.expression(index));
                self.classes.join(keys, index);
                self.classes.items(of)
            }
            Expr::BinExpr { lhs, rhs, .. } | Expr::ArithExpr { lhs, rhs, .. } => {
                // Of sets: what one holds is held by the other, or by the result.
                let (class, other) = (self.expression(lhs), self.expression(rhs));
                self.classes.join(class, other);
                class
            }
            Expr::BoolExpr { lhs, rhs, .. } | Expr::AssignExpr { lhs, rhs, .. } => {
                let (class, other) = (self.expression(lhs), self.expression(rhs));
                self.classes.join(class, other);
                self.classes.fresh()
            }
            Expr::Membership {
                key,
                value,
                collection,
                ..
            } => {
                self.membership(key.as_deref(), value, collection);
                self.classes.fresh()
            }
        }
    }

    /// Returns what stands under a name. In a set the name is asked for as a member.
    fn step(&mut self, of: Class, name: &str, span: &Span) -> Class {
        let (keys, key) = (self.classes.keys(of), self.text(name, span));
        self.classes.join(keys, key);
        self.classes.member(of, name)
    }

    fn call(&mut self, function: &Expr, arguments: &[regorus::unstable::Ref<Expr>]) -> Class {
        let name = path(function).unwrap_or_default().join(".");
        let own = name.strip_prefix(&self.package).unwrap_or(&name).to_owned();
        let given: Vec<Class> = arguments
            .iter()
            .map(|argument| self.expression(argument))
            .collect();
        if let Some(known) = self.functions.get(&own) {
            let parameters = known.parameters.clone();
            // A last one more is what the result is compared with.
            let surplus = given.get(parameters.len()).copied();
            for (given, parameter) in given.into_iter().zip(parameters) {
                self.classes.join(given, parameter);
            }
            let result = self.expression(function);
            if let Some(surplus) = surplus {
                self.classes.join(result, surplus);
            }
            return result;
        }
        let texts = admitted(&name).map_or(Texts::Keeps, |row| row.texts);
        match (name.as_str(), arguments) {
            _ if texts == Texts::Indifferent => self.classes.fresh(),
            ("object.get", [_, key, _]) => self.get(&given, key),
            ("object.keys", _) => {
                let class = self.classes.fresh();
                let keys = given.first().map(|of| self.classes.keys(*of));
                if let Some(keys) = keys {
                    self.is_set_of(class, keys);
                }
                class
            }
            _ => {
                let all = self.classes.fresh();
                for given in given {
                    self.mix(all, given);
                }
                self.in_parts.push(all);
                if texts == Texts::Compares {
                    self.classes.fresh()
                } else {
                    all
                }
            }
        }
    }

    /// Returns what `object.get` gives: a member, one below it, or the last operand.
    fn get(&mut self, given: &[Class], key: &Expr) -> Class {
        let steps = match key {
            Expr::Array { items, .. } => items.iter().map(|item| literal(item)).collect::<Option<Vec<_>>>(),
            key => literal(key).map(|name| vec![name]),
        };
        let found = if let Some(steps) = steps {
            steps
                .iter()
                .fold(given[0], |at, name| self.classes.member(at, name))
        } else {
            let all = self.classes.fresh();
            self.mix(all, given[0]);
            self.mix(all, given[1]);
            all
        };
        self.classes.join(found, given[2]);
        found
    }

    /// Joins a value, and all that it holds at any depth, with others.
    fn mix(&mut self, all: Class, given: Class) {
        self.classes.join(all, given);
        let (items, keys) = (self.classes.items(all), self.classes.keys(all));
        self.classes.join(all, items);
        self.classes.join(all, keys);
    }
}

/// Returns the name that an index is, if it is one.
fn literal(index: &Expr) -> Option<String> {
    match index {
        Expr::String { value, .. } | Expr::RawString { value, .. } => {
            Some(value.as_string().ok()?.to_string())
        }
        Expr::Number { span, .. } => Some(span.text().to_owned()),
        _ => None,
    }
}

/// Returns the steps of a reference that has no variables but the first; what stands behind the first computed one is left out.
pub(super) fn path(reference: &Expr) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut at = reference;
    loop {
        match at {
            Expr::Var { span, .. } => {
                steps.push(span.text().to_owned());
                steps.reverse();
                return Some(steps);
            }
            Expr::RefDot { refr, field, .. } => {
                steps.push(field.0.text().to_owned());
                at = refr;
            }
            Expr::RefBrack { refr, index, .. } => {
                match literal(index) {
                    Some(name) => steps.push(name),
                    None => steps.clear(),
                }
                at = refr;
            }
            _ => return None,
        }
    }
}
