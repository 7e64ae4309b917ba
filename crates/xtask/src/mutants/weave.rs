//! All mutants of a file in one text: at each place the text asks which mutant is meant, and is the original otherwise.
//!
//! INVARIANT: with no mutant meant the woven text does what the original does, and with one it does what the original
//! does after that one replacement; the others are not part of it.
//!
//! A `const fn` becomes an ordinary one, unless a constant needs it.
//!
//! Absent on purpose: what has to be known when it is compiled, and operators of conditions with `let`. These mutants are
//! handed back with the reason.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::mutant::{Genre, Mutant};
use crate::failure::{Context, Outcome};

/// A file with all its mutants.
pub struct Woven {
    pub text: String,
    /// Numbers, and the lines that a mutant alone has. Lines count from one.
    pub lines: Vec<(usize, Range<usize>)>,
    /// Those that are not part of it, and why.
    pub apart: Vec<(usize, Apart)>,
}

/// Why a mutant cannot be woven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// A condition with `let` has no other operator than `&&`, so that the mutant would not compile either.
    Impossible,
    /// It has to be known when it is compiled.
    Constant,
    /// Its function returns `impl …`, and a choice has one type.
    Hidden,
    /// Nothing in the syntax tree is where cargo-mutants saw something.
    Unplaced,
}

/// Weaves the mutants of one file, each with its number, into the file's text; `question` is the path of the function
/// that says whether a number is meant, and `constant` names the functions that constants need.
pub fn weave(
    text: &str,
    mutants: &[(usize, &Mutant)],
    question: &str,
    constant: &BTreeSet<String>,
) -> Outcome<Woven> {
    let file = syn::parse_file(text).context("syn cannot read a file that the compiler can")?;
    let mut tree = Tree {
        needed: constant.clone(),
        ..Tree::default()
    };
    tree.visit_file(&file);
    let (mut sites, mut apart): (Vec<Site>, _) = (Vec::new(), Vec::new());
    sites.extend(tree.words.iter().map(|word| Site {
        range: word.clone(),
        kind: Kind::Word,
        variants: Vec::new(),
    }));
    for (number, mutant) in mutants {
        match tree.site(mutant, text) {
            Ok((range, kind, variant)) => {
                let variant = (*number, variant);
                match sites
                    .iter_mut()
                    .find(|site| site.range == range && site.kind == kind)
                {
                    Some(site) => site.variants.push(variant),
                    None => sites.push(Site {
                        range,
                        kind,
                        variants: vec![variant],
                    }),
                }
            }
            Err(why) => apart.push((*number, why)),
        }
    }
    // The outer ones first; of two about the same text the body of a function is outside.
    sites.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end), site.kind));
    let mut weaver = Weaver {
        original: text,
        question,
        text: String::new(),
        lines: Vec::new(),
    };
    weaver.write(0..text.len(), &sites);
    let Weaver { text, lines, .. } = weaver;
    Ok(Woven { text, lines, apart })
}

/// The forms that a choice takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The statements of a function.
    Body,
    /// The condition of an arm, or an expression.
    Expression,
    /// The place behind the pattern of an arm without a condition.
    Arm,
    /// A word that is left out.
    Word,
}

/// A place with its choices.
struct Site {
    range: Range<usize>,
    kind: Kind,
    variants: Vec<(usize, String)>,
}

struct Weaver<'a> {
    original: &'a str,
    question: &'a str,
    text: String,
    lines: Vec<(usize, Range<usize>)>,
}

impl Weaver<'_> {
    /// Writes a part of the original with the sites in it.
    fn write(&mut self, range: Range<usize>, sites: &[Site]) {
        let mut written = range.start;
        let mut next = 0;
        while let Some(site) = sites.get(next) {
            let inside = sites[next + 1..]
                .iter()
                .take_while(|other| other.range.end <= site.range.end)
                .count();
            self.text.push_str(&self.original[written..site.range.start]);
            self.choose(site, &sites[next + 1..next + 1 + inside]);
            written = site.range.end;
            next += 1 + inside;
        }
        self.text.push_str(&self.original[written..range.end]);
    }

    fn choose(&mut self, site: &Site, inside: &[Site]) {
        if site.kind == Kind::Word {
            return;
        }
        if site.kind == Kind::Arm {
            for (number, _) in &site.variants {
                self.mark(*number, |weaver| {
                    let question = weaver.question;
                    let _ = write!(weaver.text, " if !{question}({number})");
                });
            }
            return;
        }
        let is_expression = site.kind == Kind::Expression;
        self.text.push_str(if is_expression { "(" } else { "" });
        for (number, variant) in &site.variants {
            let question = self.question;
            let _ = writeln!(self.text, "if {question}({number}) {{");
            self.mark(*number, |weaver| weaver.text.push_str(variant));
            self.text.push_str("\n} else ");
        }
        self.text.push_str("{\n");
        self.write(site.range.clone(), inside);
        self.text.push_str(if is_expression { "\n})" } else { "\n}" });
    }

    /// Keeps which lines a mutant has.
    fn mark(&mut self, number: usize, write: impl FnOnce(&mut Self)) {
        let line = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let first = line(&self.text);
        write(self);
        let last = line(&self.text);
        self.lines.push((number, first..last + 1));
    }
}

/// The places of a syntax tree that mutants name.
#[derive(Default)]
struct Tree {
    /// Operators with their expressions.
    operators: Vec<(Range<usize>, Range<usize>)>,
    /// Operators of conditions that bind names.
    binding: Vec<Range<usize>>,
    /// Arms without a condition, with the end of their patterns; and with one, with its place.
    arms: Vec<(usize, Range<usize>, Kind)>,
    constant: Vec<Range<usize>>,
    /// The functions that constants need.
    needed: BTreeSet<String>,
    /// The `const` of the other functions.
    words: Vec<Range<usize>>,
}

impl Tree {
    /// Where the choice about a mutant stands, and the text that is chosen.
    fn site(&self, mutant: &Mutant, text: &str) -> std::result::Result<(Range<usize>, Kind, String), Apart> {
        let range = mutant.range.clone();
        let is_in = |outer: &Range<usize>| outer.start <= range.start && range.end <= outer.end;
        if self.constant.iter().any(is_in) {
            return Err(Apart::Constant);
        }
        match mutant.genre {
            Genre::FnValue if mutant.change.contains(" -> impl ") => Err(Apart::Hidden),
            Genre::FnValue => Ok((range, Kind::Body, mutant.replacement.clone())),
            Genre::MatchArmGuard | Genre::Arm => Ok((range, Kind::Expression, mutant.replacement.clone())),
            Genre::BinaryOperator | Genre::UnaryOperator => {
                if self.binding.contains(&range) {
                    return Err(Apart::Impossible);
                }
                let found = self.operators.iter().find(|(operator, _)| *operator == range);
                let (_, whole) = found.ok_or(Apart::Unplaced)?;
                let variant = [
                    &text[whole.start..range.start],
                    &mutant.replacement,
                    &text[range.end..whole.end],
                ];
                Ok((whole.clone(), Kind::Expression, variant.concat()))
            }
            Genre::MatchArm => {
                let found = self.arms.iter().find(|(start, ..)| *start == range.start);
                let (_, place, kind) = found.ok_or(Apart::Unplaced)?;
                Ok((place.clone(), *kind, "false".to_owned()))
            }
            Genre::StructField => Err(Apart::Unplaced),
        }
    }

    fn add_constant(&mut self, part: &impl Spanned) {
        self.constant.push(part.span().byte_range());
    }

    fn add_function(&mut self, signature: &syn::Signature, whole: &impl Spanned) {
        match &signature.constness {
            Some(_) if self.needed.contains(&signature.ident.to_string()) => self.add_constant(whole),
            Some(word) => self.words.push(word.span().byte_range()),
            None => {}
        }
    }
}

/// Whether a condition binds names on its own level.
fn binds(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Tree {
    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let operator = node.op.span().byte_range();
        if binds(&node.left) || binds(&node.right) {
            self.binding.push(operator);
        } else {
            self.operators.push((operator, node.span().byte_range()));
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let whole = node.span().byte_range();
        self.operators.push((node.op.span().byte_range(), whole));
        visit::visit_expr_unary(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        let start = node.span().byte_range().start;
        let (place, kind) = match &node.pat {
            syn::Pat::Guard(guarded) => (guarded.guard.span().byte_range(), Kind::Expression),
            pattern => {
                let end = pattern.span().byte_range().end;
                (end..end, Kind::Arm)
            }
        };
        self.arms.push((start, place, kind));
        visit::visit_arm(self, node);
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.add_function(&node.sig, node);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.add_function(&node.sig, node);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_item_const(&mut self, node: &'ast syn::ItemConst) {
        self.add_constant(node);
    }

    fn visit_item_static(&mut self, node: &'ast syn::ItemStatic) {
        self.add_constant(node);
    }

    fn visit_impl_item_const(&mut self, node: &'ast syn::ImplItemConst) {
        self.add_constant(node);
    }

    fn visit_trait_item_const(&mut self, node: &'ast syn::TraitItemConst) {
        self.add_constant(node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant of the first place where `original` stands behind `before`.
    fn mutant(text: &str, before: &str, original: &str, replacement: &str, genre: Genre) -> Mutant {
        let start = text.find(before).unwrap() + before.len();
        let start = start + text[start..].find(original).unwrap();
        Mutant {
            range: start..start + original.len(),
            replacement: replacement.into(),
            genre,
            ..Mutant::sample(original)
        }
    }

    fn woven(text: &str, mutants: &[Mutant]) -> Woven {
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        weave(text, &numbered, "is", &BTreeSet::from(["needed".to_owned()])).unwrap()
    }

    fn squeezed(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_kind_of_mutant_has_its_choice_and_the_original_stays() {
        let text = "fn f(a: u8, b: u8) -> bool { !g(a) && a == b }";
        let all = [
            mutant(text, "{ ", "!g(a) && a == b", "true", Genre::FnValue),
            mutant(text, "g(a) ", "&&", "||", Genre::BinaryOperator),
            mutant(text, "a ", "==", "!=", Genre::BinaryOperator),
            mutant(text, "{ ", "!", "", Genre::UnaryOperator),
        ];
        let woven = woven(text, &all);
        assert!(woven.apart.is_empty());
        assert_eq!(
            squeezed(&woven.text),
            "fn f(a: u8, b: u8) -> bool { if is(0) { true } else { (if is(1) { !g(a) || a == b } else { \
             (if is(3) { g(a) } else { !g(a) }) && (if is(2) { a != b } else { a == b }) }) } }"
        );
        for (number, lines) in &woven.lines {
            let own: Vec<&str> = woven
                .text
                .lines()
                .skip(lines.start - 1)
                .take(lines.len())
                .collect();
            let expected = ["true", "!g(a) || a == b", "a != b", "g(a)"][*number];
            assert_eq!(own, [expected], "{}", woven.text);
        }
        syn::parse_file(&woven.text).unwrap();
    }

    #[test]
    fn an_arm_that_is_deleted_matches_nothing() {
        let text = "fn f(a: u8) -> u8 { match a { 1 => 2, 3 if a > 0 => 4, _ => 5 } }";
        let all = [
            mutant(text, "{ ", "1 => 2,", "", Genre::MatchArm),
            mutant(text, "2, ", "3 if a > 0 => 4,", "", Genre::MatchArm),
            mutant(text, "if ", "a > 0", "true", Genre::MatchArmGuard),
            mutant(text, "if a ", ">", ">=", Genre::BinaryOperator),
        ];
        assert_eq!(
            squeezed(&woven(text, &all).text),
            "fn f(a: u8) -> u8 { match a { 1 if !is(0) => 2, 3 if (if is(1) { false } else if is(2) { true } \
             else if is(3) { a >= 0 } else { a > 0 }) => 4, _ => 5 } }"
        );
    }

    #[test]
    fn a_function_that_hides_its_type_has_no_choice() {
        let text = "fn f() -> impl Iterator<Item = u8> { g() }";
        let mut hidden = mutant(text, "{ ", "g()", "::std::iter::empty()", Genre::FnValue);
        hidden.change = "a.rs: replace f -> impl Iterator<Item = u8> with ::std::iter::empty()".into();
        let woven = woven(text, &[hidden]);
        assert_eq!(
            (woven.apart, woven.text),
            (vec![(0, Apart::Hidden)], text.to_owned())
        );
    }

    #[test]
    fn a_function_that_no_constant_needs_is_an_ordinary_one() {
        let text = "pub const fn f() -> u8 { 3 }";
        let woven = woven(text, &[mutant(text, "{ ", "3", "0", Genre::FnValue)]);
        assert!(woven.apart.is_empty());
        assert_eq!(
            squeezed(&woven.text),
            "pub fn f() -> u8 { if is(0) { 0 } else { 3 } }"
        );
    }

    #[test]
    fn what_is_known_when_compiled_and_what_binds_names_stays_apart() {
        let text =
            "const A: u8 = 1 + 2; const fn needed() -> u8 { 3 } fn g() { if let Some(x) = h() && x == 1 {} }";
        let all = [
            mutant(text, "1 ", "+", "-", Genre::BinaryOperator),
            mutant(text, "{ ", "3", "0", Genre::FnValue),
            mutant(text, "h() ", "&&", "||", Genre::BinaryOperator),
            mutant(text, "x ", "==", "!=", Genre::BinaryOperator),
        ];
        let woven = woven(text, &all);
        let expected = [(0, Apart::Constant), (1, Apart::Constant), (2, Apart::Impossible)];
        assert_eq!(woven.apart, expected);
        assert!(woven.text.contains("const fn needed"), "{}", woven.text);
        assert!(squeezed(&woven.text).contains("= h() && (if is(3) { x != 1 } else { x == 1 }) {}"));
    }
}
