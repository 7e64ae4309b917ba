//! `--fail-on 'block_to_allow>0'`: a condition on the figures of a run, for CI.

use super::view::{Results, rank};
use std::cmp::Ordering;
use std::fmt;

/// One condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    name: String,
    comparison: Comparison,
    bound: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Greater,
    AtLeast,
    Less,
    AtMost,
    Equal,
    Unequal,
}

/// The longer ones first, so that `>=` is not read as `>`.
const COMPARISONS: [(&str, Comparison); 6] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
];

impl Gate {
    /// Reads `NAME OPERATOR NUMBER`; spaces are free.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = COMPARISONS.iter().find_map(|(sign, comparison)| {
            let (name, bound) = text.split_once(sign)?;
            Some((name.trim(), *comparison, bound.trim()))
        });
        let (name, comparison, bound) = found.ok_or("an operator is missing: one of > >= < <= == !=")?;
        if !is_name(name) {
            return Err(format!(
                "{name:?} is no figure of a run: changed, unknown, errors, or two actions such as block_to_allow"
            ));
        }
        let is_number = !bound.is_empty() && bound.bytes().all(|byte| byte.is_ascii_digit());
        let bound = is_number.then(|| bound.parse().ok()).flatten();
        Ok(Self {
            name: name.to_owned(),
            comparison,
            bound: bound.ok_or("behind the operator stands a whole number")?,
        })
    }

    /// Says whether the condition is about events that could not be read.
    pub fn is_about_errors(&self) -> bool {
        self.name == "errors"
    }

    /// Returns the figure if the condition holds, which fails the command.
    pub fn caught(&self, results: &Results) -> Option<u64> {
        let value = match self.name.as_str() {
            "changed" => results.changed,
            "unknown" => results.unknown,
            "errors" => results.errors,
            change => results.by_change.get(change).copied().unwrap_or(0),
        };
        let order = value.cmp(&self.bound);
        let holds = match self.comparison {
            Comparison::Greater => order == Ordering::Greater,
            Comparison::AtLeast => order != Ordering::Less,
            Comparison::Less => order == Ordering::Less,
            Comparison::AtMost => order != Ordering::Greater,
            Comparison::Equal => order == Ordering::Equal,
            Comparison::Unequal => order != Ordering::Equal,
        };
        holds.then_some(value)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = COMPARISONS
            .iter()
            .find(|(_, comparison)| *comparison == self.comparison);
        write!(
            f,
            "{}{}{}",
            self.name,
            sign.map_or("", |(sign, _)| sign),
            self.bound
        )
    }
}

/// Two actions that are the same are no change: such a condition would never hold.
fn is_name(name: &str) -> bool {
    let is_change = |(from, to): (&str, &str)| from != to && rank(from).is_some() && rank(to).is_some();
    matches!(name, "changed" | "unknown" | "errors") || name.split_once("_to_").is_some_and(is_change)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        Results {
            changed: 7,
            unknown: 1,
            by_change: [("block_to_allow".to_owned(), 3)].into(),
            ..Results::default()
        }
    }

    fn caught(text: &str) -> Option<u64> {
        Gate::parse(text).unwrap().caught(&results())
    }

    #[test]
    fn every_operator_compares_the_figure() {
        for (text, figure) in [
            ("changed>6", Some(7)),
            ("changed>7", None),
            ("changed >= 7", Some(7)),
            ("changed>=8", None),
            ("changed<8", Some(7)),
            ("changed<7", None),
            (" changed <= 7 ", Some(7)),
            ("changed<=6", None),
            ("changed==7", Some(7)),
            ("changed==6", None),
            ("changed!=6", Some(7)),
            ("changed!=7", None),
            ("unknown>0", Some(1)),
            ("errors>0", None),
            ("block_to_allow>0", Some(3)),
            ("allow_to_require_approval>0", None),
            ("flag_for_review_to_block==0", Some(0)),
        ] {
            assert_eq!(caught(text), figure, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_with_a_reason() {
        for text in [
            "",
            "changed",
            "changed=1",
            ">1",
            "changed>",
            "changed>x",
            "changed>-1",
            "changed>1.5",
            "changed>+1",
            "changed>99999999999999999999",
            "allow_to_allow>0",
            "allow_to_sing>0",
            "block-to-allow>0",
            "Changed>0",
            "changed>1>2",
            "changed>0 && unknown>0",
            "changed=>1",
        ] {
            assert!(!Gate::parse(text).unwrap_err().is_empty(), "{text}");
        }
    }

    #[test]
    fn a_condition_is_shown_as_it_can_be_typed() {
        assert_eq!(
            Gate::parse(" block_to_allow  >=  10 ").unwrap().to_string(),
            "block_to_allow>=10"
        );
    }
}
