//! Path templates: which operation a path names, and what its parameters are.
//!
//! ```text
//!   /skills/{itemRef}/install        {itemRef} is one segment
//!   /policy-authority/{*id}/claim    {*id} is one segment or more, up to the words behind it: a, a/b, a/claim
//! ```
//!
//! A greedy parameter is for ids that may hold slashes: clients that escape a slash and clients that do not name the
//! same record. Every segment is decoded once, then they are joined; documents show it as any other parameter.
//!
//! INVARIANT RT-1: of the templates that fit a path and have the method, the one with most words behind its greedy
//! parameter answers; so every id can be named, whatever it ends in, by saying those words once more.
//!
//! Absent on purpose: two greedy parameters in one template.

use crate::dispatch::percent_decode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Word(&'static str),
    One(&'static str),
    Many(&'static str),
}

/// The path of an operation behind the organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

impl Template {
    /// Reads a path as operations declare it.
    pub fn of(path: &'static str) -> Self {
        let part = |text: &'static str| match text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
            None => Part::Word(text),
            Some(name) => name.strip_prefix('*').map_or(Part::One(name), Part::Many),
        };
        Self(path.split('/').skip(1).map(part).collect())
    }

    /// Returns the route under which the HTTP framework finds it; templates that differ behind a greedy parameter
    /// have the same one.
    pub fn route(&self) -> String {
        let mut route = String::new();
        for part in &self.0 {
            match part {
                Part::Word(word) => route.extend(["/", word]),
                Part::One(name) => route.extend(["/{", name, "}"]),
                Part::Many(name) => {
                    route.extend(["/{*", name, "}"]);
                    break;
                }
            }
        }
        route
    }

    /// Returns how many words stand behind the greedy parameter.
    pub fn words_behind(&self) -> usize {
        let many = self.0.iter().position(|part| matches!(part, Part::Many(_)));
        many.map_or(0, |at| self.0.len() - at - 1)
    }

    /// Returns the parameters that these raw segments spell, or nothing when the template does not fit them.
    pub fn read(&self, segments: &[&str]) -> Option<Vec<(&'static str, String)>> {
        let is_greedy = self.0.iter().any(|part| matches!(part, Part::Many(_)));
        let more = segments.len().checked_sub(self.0.len())?;
        if more > 0 && !is_greedy {
            return None;
        }
        let mut parameters = Vec::new();
        let mut rest = segments;
        for part in &self.0 {
            let taken = if matches!(part, Part::Many(_)) {
                more + 1
            } else {
                1
            };
            let (own, behind) = rest.split_at_checked(taken)?;
            rest = behind;
            match part {
                Part::Word(word) if own != [*word] => return None,
                Part::Word(_) => {}
                Part::One(name) | Part::Many(name) => parameters.push((*name, joined(own))),
            }
        }
        Some(parameters)
    }
}

/// Decodes each segment once. One that cannot be decoded becomes a character that no id has (D1.1).
fn joined(segments: &[&str]) -> String {
    let decoded: Vec<String> = segments
        .iter()
        .map(|text| percent_decode(text).unwrap_or_else(|| "\u{fffd}".into()))
        .collect();
    decoded.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(template: &'static str, path: &str) -> Option<String> {
        let segments: Vec<&str> = path.split('/').collect();
        let found = Template::of(template).read(&segments)?;
        Some(
            found
                .into_iter()
                .map(|(_, value)| value)
                .collect::<Vec<_>>()
                .join("|"),
        )
    }

    #[test]
    fn a_parameter_is_one_segment() {
        assert_eq!(read("/a/{x}/b/{y}", "a/1/b/%2F%41").as_deref(), Some("1|/A"));
        assert_eq!(read("/a/{x}", "a/%zz").as_deref(), Some("\u{fffd}"));
        for path in ["a", "a/1/2", "b/1", "a/1/"] {
            assert_eq!(read("/a/{x}", path), None, "{path}");
        }
        assert_eq!(Template::of("/a/{x}/b").route(), "/a/{x}/b");
    }

    /// Proves RT-1.
    #[test]
    fn a_greedy_parameter_takes_all_up_to_the_words_behind() {
        let claim = "/authority/{*id}/claim";
        for (path, id) in [
            ("authority/a/claim", "a"),
            ("authority/a/b/claim", "a/b"),
            ("authority/a%2Fb/claim", "a/b"),
            ("authority/a/claim/claim", "a/claim"),
            ("authority/claim/claim", "claim"),
            ("authority/a%252Fb/claim", "a%2Fb"),
            ("authority/.:@-/claim", ".:@-"),
            ("authority//claim", ""),
        ] {
            assert_eq!(read(claim, path).as_deref(), Some(id), "{path}");
        }
        for path in [
            "authority/claim",
            "authority/a",
            "authority/a/claim/",
            "authority/a%2Fclaim",
        ] {
            assert_eq!(read(claim, path), None, "{path}");
        }
        assert_eq!(
            read("/authority/{*id}", "authority/a/claim").as_deref(),
            Some("a/claim")
        );
        assert_eq!(read("/authority/{*id}", "authority/a//").as_deref(), Some("a//"));
        assert_eq!(Template::of(claim).route(), "/authority/{*id}");
        assert_eq!(
            (
                Template::of(claim).words_behind(),
                Template::of("/a/{*id}").words_behind()
            ),
            (1, 0)
        );
    }
}
