//! Which tools a connection wants to see: a model chooses better among few.
//!
//! A selection only takes away from what the caller may call. Words that no toolset has are refused, because a typo
//! must not look like a missing right; names of tools are not judged, because that would say what exists (ME-2). Without a selection the
//! address lists a default set (ADR 0087).

use http::HeaderMap;
use provost_kernel::auth;
use provost_kernel::dispatch::percent_decode;
use provost_kernel::expose::mcp::is_read_only;
use provost_kernel::operation::Meta;
use provost_kernel::{Code, Error, Result};
use std::borrow::Cow;

const TOOLSETS_HEADER: &str = "x-mcp-toolsets";
const TOOLS_HEADER: &str = "x-mcp-tools";
const READ_ONLY_HEADER: &str = "x-mcp-readonly";
/// LIMIT: characters of a list.
const MAX_CHARS: usize = 4096;

/// What a request selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// A bit for every toolset, by its place. There are no more of them than scopes.
    toolsets: u128,
    tools: Vec<Cow<'static, str>>,
    read_only: bool,
}

fn place(word: &str) -> Option<usize> {
    auth::toolsets().iter().position(|toolset| toolset.name == word)
}

fn bit(word: &str) -> Result<u128> {
    place(word).map(|place| 1 << place).ok_or_else(|| {
        let known: Vec<&str> = auth::toolsets().iter().map(|toolset| toolset.name).collect();
        let message = format!(
            "there is no toolset \"{}\"; there are default, all, {}",
            crate::content::cut(word),
            known.join(", ")
        );
        Error::new(Code::InvalidRequest, message)
    })
}

impl Selection {
    /// Returns the selection of these tools; of all there are, if it is none.
    pub fn of(tools: &'static [&'static str]) -> Self {
        Self {
            toolsets: if tools.is_empty() { u128::MAX } else { 0 },
            tools: tools.iter().copied().map(Cow::Borrowed).collect(),
            read_only: false,
        }
    }

    /// Reads the selection of a request; `default` is what that word, and no selection, stand for.
    ///
    /// Errors: `InvalidRequest` for an unknown toolset, an unknown parameter, or what is said twice differently.
    pub fn read(query: Option<&str>, headers: &HeaderMap, default: &Self) -> Result<Self> {
        let asked = parameters(query)?;
        let of = |name, header| merged(name, &asked, header, headers);
        let toolsets_list = of("toolsets", TOOLSETS_HEADER)?;
        let tools: Vec<Cow<'static, str>> = of("tools", TOOLS_HEADER)?
            .map(|list| words(&list).into_iter().map(Cow::Owned).collect())
            .unwrap_or_default();
        let read_only = match of("readonly", READ_ONLY_HEADER)?.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(invalid("readonly must be true or false")),
        };
        let mut selection = match toolsets_list {
            None if tools.is_empty() => default.clone(),
            None => Self::default(),
            Some(list) => selected(&words(&list), default)?,
        };
        selection.tools.extend(tools);
        selection.read_only = read_only;
        Ok(selection)
    }

    /// Says how an operation is reached that the caller may call and that is not selected.
    pub fn says_where(&self, meta: &Meta) -> String {
        let name = meta.id;
        if self.read_only && !is_read_only(meta) {
            return format!(
                "the tool {name} changes something, and this address lists only tools that do not; leave out readonly to call it"
            );
        }
        format!(
            "the tool {name} is not listed at this address; /mcp?toolsets=default,{} lists it, /mcp?toolsets=all lists every tool \
             (or the header X-MCP-Toolsets; of the program: provost mcp --toolsets all)",
            meta.toolset
        )
    }

    /// Says whether an operation is selected.
    pub fn has(&self, meta: &Meta) -> bool {
        let by_toolset = place(meta.toolset).is_some_and(|place| self.toolsets & (1 << place) != 0);
        (by_toolset || self.tools.iter().any(|tool| tool == meta.id))
            && (!self.read_only || is_read_only(meta))
    }
}

fn selected(words: &[String], default: &Selection) -> Result<Selection> {
    if words.is_empty() {
        return Err(invalid("toolsets names no toolset; leave it out for the default"));
    }
    let mut selection = Selection::default();
    for word in words {
        match word.as_str() {
            "all" => selection.toolsets = u128::MAX,
            "default" => {
                selection.toolsets |= default.toolsets;
                selection.tools.extend(default.tools.iter().cloned());
            }
            word => selection.toolsets |= bit(word)?,
        }
    }
    Ok(selection)
}

fn words(list: &str) -> Vec<String> {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

fn parameters(query: Option<&str>) -> Result<Vec<(String, String)>> {
    let pairs = query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty());
    let mut parameters: Vec<(String, String)> = Vec::new();
    for pair in pairs {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decoded = |text: &str| percent_decode(&text.replace('+', " "));
        let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
            return Err(invalid("the query is not valid percent-encoded UTF-8"));
        };
        if !["toolsets", "tools", "readonly"].contains(&name.as_str()) {
            let message = "this query parameter does not exist here; known: toolsets, tools, readonly";
            return Err(Error::new(Code::UnknownParameter, message));
        }
        if parameters.iter().any(|(known, _)| *known == name) {
            return Err(invalid("a query parameter is given twice"));
        }
        parameters.push((name, value));
    }
    Ok(parameters)
}

fn merged(
    name: &str,
    asked: &[(String, String)],
    header: &str,
    headers: &HeaderMap,
) -> Result<Option<String>> {
    let mut found = asked
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.clone());
    for value in headers.get_all(header) {
        let value = value
            .to_str()
            .map_err(|_| invalid("a header that selects tools is not text"))?;
        if found.as_ref().is_some_and(|found| found != value) {
            return Err(invalid(format!("{name} is said twice, differently")));
        }
        found = Some(value.to_owned());
    }
    if found.as_ref().is_some_and(|list| list.len() > MAX_CHARS) {
        return Err(invalid(format!("{name} is too long")));
    }
    Ok(found)
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Code::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_kernel::auth::{Scopes, Toolset, scope};

    const TOOLSETS: [&str; 3] = ["audit", "inventory", "policies"];

    fn install_scopes() {
        let toolset = |name| Toolset {
            place: 0,
            name,
            says: "",
            title: "Things",
            holds: "things",
        };
        let scopes = [
            "audit:read",
            "audit:write",
            "inventory:read",
            "inventory:write",
            "policies:read",
            "policies:write",
        ];
        let made = Scopes::of(TOOLSETS.map(toolset).to_vec(), scopes.map(scope).to_vec());
        made.and_then(Scopes::install).unwrap();
    }

    fn read(query: &str, headers: &[(&'static str, &'static str)]) -> Result<Selection> {
        install_scopes();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Selection::read(Some(query), &map, &Selection::of(&["getThing", "listThings"]))
    }

    #[test]
    fn lists_come_from_the_query_or_a_header() {
        let audit = read("toolsets=audit", &[]).unwrap();
        assert_eq!(audit, read("", &[(TOOLSETS_HEADER, "audit")]).unwrap());
        assert_eq!(
            audit,
            read("toolsets=audit", &[(TOOLSETS_HEADER, "audit")]).unwrap()
        );
        assert_eq!(read("", &[]).unwrap(), read("toolsets=default", &[]).unwrap());
        let both = read("toolsets=audit%2C+policies", &[]).unwrap();
        assert_eq!(both.toolsets, bit("audit").unwrap() | bit("policies").unwrap());
        assert!(both.tools.is_empty());
        let more = read("toolsets=default,audit", &[]).unwrap();
        assert_eq!(
            (more.toolsets, more.tools),
            (bit("audit").unwrap(), read("", &[]).unwrap().tools)
        );
        assert_eq!(read("toolsets=all", &[]).unwrap().toolsets, u128::MAX);
        assert!(read("readonly=true", &[]).unwrap().read_only);
        assert!(read("", &[(READ_ONLY_HEADER, "true")]).unwrap().read_only);
        let tools = read("", &[(TOOLS_HEADER, "a, b")]).unwrap();
        assert_eq!((tools.toolsets, tools.tools), (0, vec!["a".into(), "b".into()]));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for query in [
            "toolsets=audti",
            "toolsets=",
            "toolsets=,",
            "toolset=audit",
            "readonly=yes",
            "toolsets=%ff",
            "readonly=true&readonly=true",
        ] {
            assert_eq!(read(query, &[]).unwrap_err().code().status(), 400, "{query}");
        }
        assert!(read("toolsets=audit", &[(TOOLSETS_HEADER, "policies")]).is_err());
        let message = read("toolsets=audti", &[]).unwrap_err();
        assert!(message.message().contains("\"audti\"") && message.message().contains("policies"));
    }
}
