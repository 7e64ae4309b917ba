//! Arms: the single parts of what guards. Of `a || b` each side, of a chain of `&&` each link, of a list of words each
//! word, and each check that a function makes on the way. Every one is taken away alone.
//!
//! A test that shows the whole guard need not show every arm of it: a limit that counts for an account and for its caller
//! passes a test of the one when the other is gone.
//!
//! Absent on purpose: arms in SQL and in macros, which the syntax tree does not show; crates
//! that do not know the kernel, where nothing could ask which arm is meant; conditions that bind names.

use std::ops::Range;
use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::groups::{Group, Source};
use super::mutant::{Genre, Mutant};
use crate::failure::{Context, Outcome};

const fn file(file: &'static str) -> Source {
    Source { file, functions: &[] }
}

pub const GROUPS: &[Group] = &[
    Group {
        name: "rights",
        about: "who may do and give what",
        goal: 100,
        sources: &[
            file("crates/kernel/src/auth.rs"),
            file("crates/kernel/src/credential.rs"),
            file("crates/kernel/src/dispatch/identify.rs"),
            file("crates/server/src/areas/decisions/gateway.rs"),
            file("crates/server/src/areas/directory/held/settle.rs"),
            file("crates/server/src/areas/directory/model.rs"),
            file("crates/server/src/areas/directory/restored.rs"),
            file("crates/server/src/areas/directory/rights.rs"),
            file("crates/server/src/areas/directory/users/create.rs"),
            file("crates/server/src/areas/directory/users/status.rs"),
            file("crates/server/src/areas/directory/users/update.rs"),
            file("crates/server/src/areas/mcp_sessions/credential.rs"),
            file("crates/server/src/areas/oauth/clients/create.rs"),
            file("crates/server/src/areas/oauth/clients/model.rs"),
            file("crates/server/src/areas/oauth/clients/update.rs"),
            file("crates/server/src/areas/oauth/grants.rs"),
            file("crates/server/src/areas/oauth/links/allow.rs"),
            file("crates/server/src/areas/oauth/links/create.rs"),
            file("crates/server/src/areas/oauth/links/remove.rs"),
            file("crates/server/src/areas/oauth/token/exchange.rs"),
            file("crates/server/src/areas/oauth/token/exchanged.rs"),
            file("crates/server/src/areas/restore/release.rs"),
            file("crates/server/src/areas/service_accounts/create.rs"),
            file("crates/server/src/areas/service_accounts/rotate.rs"),
            file("crates/server/src/areas/service_accounts/status.rs"),
            file("crates/server/src/areas/service_accounts/update.rs"),
        ],
    },
    Group {
        name: "limits",
        about: "how much and how long",
        goal: 100,
        sources: &[
            file("crates/server/src/areas/directory/imports/model.rs"),
            file("crates/server/src/areas/history/model.rs"),
            file("crates/server/src/areas/history/seal.rs"),
            file("crates/server/src/areas/oauth/token/refresh.rs"),
            file("crates/server/src/areas/settings/write.rs"),
        ],
    },
    Group {
        name: "filters",
        about: "what a question is about",
        goal: 100,
        sources: &[
            file("crates/server/src/areas/history/page.rs"),
            file("crates/server/src/areas/mcp_sessions/find.rs"),
            file("crates/server/src/areas/policies/lost.rs"),
            file("crates/server/src/areas/policies/mentions.rs"),
            file("crates/server/src/areas/subjects/reference.rs"),
            file("crates/server/src/areas/words/find.rs"),
        ],
    },
];

/// Lists the arms of some files below `tree`.
pub fn list<'f>(tree: &Path, files: impl IntoIterator<Item = &'f str>) -> Outcome<Vec<Mutant>> {
    let mut arms = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(tree.join(file)).context(file)?;
        arms.extend(of_file(file, &text)?);
    }
    Ok(arms)
}

fn of_file(file: &str, text: &str) -> Outcome<Vec<Mutant>> {
    let parsed = syn::parse_file(text).context("syn cannot read a file that the compiler can")?;
    let mut search = Search {
        file,
        text,
        function: String::new(),
        found: Vec::new(),
    };
    search.visit_file(&parsed);
    Ok(search.found)
}

struct Search<'a> {
    file: &'a str,
    text: &'a str,
    function: String,
    found: Vec<Mutant>,
}

impl Search<'_> {
    /// Notes that `part` of `whole` becomes `instead`.
    fn add(&mut self, whole: Range<usize>, part: Range<usize>, instead: &str) {
        let taken = squeezed(&self.text[part.clone()]);
        let before = &self.text[..part.start];
        let number = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .map_or(1, |line| line.chars().count() + 1);
        let line = self.text.lines().nth(number - 1).unwrap_or_default().trim();
        let change = format!("{}: take away `{taken}` in {}", self.file, self.function);
        let mut identity = format!("{change} | {line}");
        let times = self
            .found
            .iter()
            .filter(|other| other.change == change && other.line == line);
        let times = times.count();
        if times > 0 {
            identity = format!("{identity} #{}", times + 1);
        }
        let replacement = [
            &self.text[whole.start..part.start],
            instead,
            &self.text[part.end..whole.end],
        ];
        self.found.push(Mutant {
            name: format!(
                "{}:{number}:{column}: take away `{taken}` in {}",
                self.file, self.function
            ),
            file: self.file.to_owned(),
            change,
            line: line.to_owned(),
            identity,
            function: self.function.clone(),
            genre: Genre::Arm,
            replacement: replacement.concat(),
            range: whole,
        });
    }

    fn in_function(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.function, name.to_string());
        visit(self);
        self.function = outer;
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        path.is_ident("test")
            || (path.is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|condition| condition.is_ident("test")))
    })
}

/// The two operators whose sides are arms, and what a side is when it is not asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Either,
    Both,
}

impl Chain {
    fn of(operator: &syn::BinOp) -> Option<Self> {
        match operator {
            syn::BinOp::Or(_) => Some(Self::Either),
            syn::BinOp::And(_) => Some(Self::Both),
            _ => None,
        }
    }

    fn neutral(self) -> &'static str {
        match self {
            Self::Either => "false",
            Self::Both => "true",
        }
    }

    /// Collects the links of a chain; returns false when one of them binds names.
    fn links<'e>(self, expression: &'e syn::Expr, links: &mut Vec<&'e syn::Expr>) -> bool {
        match expression {
            syn::Expr::Let(_) => false,
            syn::Expr::Binary(binary) if Self::of(&binary.op) == Some(self) => {
                self.links(&binary.left, links) && self.links(&binary.right, links)
            }
            syn::Expr::Binary(binary) if Self::of(&binary.op).is_some() => {
                links.push(expression);
                let mut inner = Vec::new();
                Self::of(&binary.op).is_none_or(|chain| chain.links(expression, &mut inner))
            }
            _ => {
                links.push(expression);
                true
            }
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        if !is_test(&node.attrs) {
            visit::visit_item_mod(self, node);
        }
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.in_function(&node.sig.ident, |search| visit::visit_item_fn(search, node));
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.in_function(&node.sig.ident, |search| visit::visit_impl_item_fn(search, node));
    }

    fn visit_expr_binary(&mut self, node: &'ast syn::ExprBinary) {
        let Some(chain) = Chain::of(&node.op) else {
            return visit::visit_expr_binary(self, node);
        };
        let (whole, mut links) = (node.span().byte_range(), Vec::new());
        let can_be_asked = chain.links(&node.left, &mut links) && chain.links(&node.right, &mut links);
        if can_be_asked {
            for link in &links {
                self.add(whole.clone(), link.span().byte_range(), chain.neutral());
            }
        }
        for link in links {
            self.visit_expr(link);
        }
    }

    fn visit_expr_method_call(&mut self, node: &'ast syn::ExprMethodCall) {
        if let syn::Expr::Array(array) = &*node.receiver
            && node.method == "contains"
            && array.elems.len() > 1
        {
            for pair in array.elems.pairs() {
                let element = pair.value().span().byte_range();
                // The comma goes with it.
                let rest = &self.text[element.end..];
                let comma = rest.len() - rest.trim_start().len();
                let has_comma = rest[comma..].starts_with(',');
                let end = if has_comma {
                    element.end + comma + 1
                } else {
                    element.end
                };
                self.add(node.span().byte_range(), element.start..end, "");
            }
        }
        visit::visit_expr_method_call(self, node);
    }

    fn visit_stmt(&mut self, node: &'ast syn::Stmt) {
        if let syn::Stmt::Expr(whole @ syn::Expr::Try(_), Some(_)) = node {
            let range = whole.span().byte_range();
            self.add(range.clone(), range, "()");
        }
        visit::visit_stmt(self, node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    fn arms(text: &str) -> Vec<(String, String)> {
        let found = of_file("a.rs", text).unwrap();
        let said = |arm: Mutant| (arm.change, squeezed(&arm.replacement));
        found.into_iter().map(said).collect()
    }

    fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(String, String)> {
        expected
            .into_iter()
            .map(|(taken, text)| (format!("a.rs: take away `{taken}` in f"), text.to_owned()))
            .collect()
    }

    #[test]
    fn each_side_of_a_chain_is_taken_away_alone() {
        assert_eq!(
            arms("fn f() -> bool { a || (b && c) || d == e }"),
            pairs([
                ("a", "false || (b && c) || d == e"),
                ("(b && c)", "a || false || d == e"),
                ("d == e", "a || (b && c) || false"),
                ("b", "true && c"),
                ("c", "b && true"),
            ])
        );
    }

    #[test]
    fn each_word_of_a_list_and_each_check_is_taken_away_alone() {
        assert_eq!(
            arms("fn f() { check(a)?; let b = [X, Y].contains(&c); g()?; }"),
            pairs([
                ("check(a)?", "()"),
                ("X,", "[ Y].contains(&c)"),
                ("Y", "[X, ].contains(&c)"),
                ("g()?", "()"),
            ])
        );
    }

    #[test]
    fn what_binds_names_and_what_tests_do_is_no_arm() {
        assert_eq!(arms("fn f() { if let Some(x) = a && x {} }"), []);
        assert_eq!(arms("#[cfg(test)] mod tests { fn f() -> bool { a || b } }"), []);
        assert_eq!(arms("const fn f() -> u8 { a + b }"), []);
    }

    #[test]
    fn equal_arms_of_equal_lines_are_told_apart() {
        let found = of_file("a.rs", "fn f() {\n    g()?;\n    g()?;\n}\n").unwrap();
        let first = "a.rs: take away `g()?` in f | g()?;";
        let identities: Vec<&str> = found.iter().map(|arm| arm.identity.as_str()).collect();
        assert_eq!(identities, [first.to_owned(), format!("{first} #2")]);
        assert_eq!(found[1].name, "a.rs:3:5: take away `g()?` in f");
    }

    #[test]
    fn every_file_that_is_named_has_arms() {
        let sources = GROUPS.iter().flat_map(|group| group.sources);
        let without = sources.filter(|source| list(&process::root(), [source.file]).unwrap().is_empty());
        let without: Vec<&str> = without.map(|source| source.file).collect();
        assert_eq!(without, [""; 0]);
    }
}
