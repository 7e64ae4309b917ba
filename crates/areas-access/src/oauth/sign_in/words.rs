//! Scopes in the words of people who do not know them.

use provost_kernel::auth::{self, ScopeSet, Toolset};

/// What an application could do in one part of the product.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// The part.
    pub title: &'static str,
    /// Its acts.
    pub acts: Vec<Act>,
}

/// One act.
#[derive(Debug, PartialEq, Eq)]
pub struct Act {
    /// As a sentence without its end.
    pub words: String,
    /// Whether it is one that nothing else includes (D3.2).
    pub is_far_reaching: bool,
}

/// Returns what a set of scopes allows, part by part.
pub fn groups(scopes: ScopeSet) -> Vec<Group> {
    let scopes = scopes.closed();
    let group = |toolset: &Toolset| {
        let Toolset {
            name, title, holds, ..
        } = *toolset;
        let mut acts = Vec::new();
        if scopes.has(&format!("{name}:write")) {
            acts.push(plain(format!("Read and change {holds}")));
        } else if scopes.has(&format!("{name}:read")) {
            acts.push(plain(format!("Read {holds}")));
        }
        let further = auth::scopes()
            .iter()
            .filter(|scope| scope.toolset() == name && !scope.says.is_empty() && scopes.has(scope.name));
        acts.extend(further.map(|scope| Act {
            words: scope.says.to_owned(),
            is_far_reaching: true,
        }));
        (!acts.is_empty()).then_some(Group { title, acts })
    };
    let mut toolsets = auth::toolsets().to_vec();
    toolsets.sort_by_key(|toolset| toolset.name);
    toolsets.iter().filter_map(group).collect()
}

fn plain(words: String) -> Act {
    Act {
        words,
        is_far_reaching: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scope_has_words() {
        provost_server::areas::ALL.install_scopes().unwrap();
        for scope in ScopeSet::all().names() {
            let (name, verb) = scope.split_once(':').unwrap();
            let found = groups(ScopeSet::of(&[scope]));
            assert_eq!(found.len(), 1, "{scope}");
            let toolset = auth::toolsets().iter().find(|toolset| toolset.name == name);
            let expected = toolset.unwrap().title;
            assert_eq!((found[0].title, found[0].acts.len()), (expected, 1), "{scope}");
            assert_eq!(
                found[0].acts[0].is_far_reaching,
                !["read", "write"].contains(&verb),
                "{scope}"
            );
        }
        assert_eq!(groups(ScopeSet::all()).len(), auth::toolsets().len());
        assert_eq!(groups(ScopeSet::default()), []);
    }

    #[test]
    fn what_writes_is_said_to_read_too() {
        provost_server::areas::ALL.install_scopes().unwrap();
        let found = groups(ScopeSet::of(&["policies:write", "policies:backtest"]));
        let words: Vec<_> = found[0].acts.iter().map(|act| act.words.as_str()).collect();
        assert_eq!(
            words,
            [
                "Read and change policies",
                "Run policies against recorded history"
            ]
        );
    }
}
