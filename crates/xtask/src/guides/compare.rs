//! Compares what a page shows with what was said, and keeps what the shown names stand for.

use std::collections::BTreeMap;

use super::tokens::{Kind, Token, tokens};

/// What the names that a page shows stand for in this run.
#[derive(Default)]
pub struct Glossary {
    /// Ids and tokens of the page, and those that were given in their place.
    names: BTreeMap<String, String>,
}

impl Glossary {
    /// Makes a name of the page stand for another one.
    pub fn stands_for(&mut self, shown: &str, really: &str) {
        self.names.insert(shown.to_owned(), really.to_owned());
    }

    /// Returns a text of the page as it is typed in this run.
    pub fn in_command(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (shown, really) in &self.names {
            text = text.replace(shown, really);
        }
        text
    }

    /// Compares; from then on the ids that are shown stand for those that were said.
    ///
    /// Errors: the first place where they part.
    pub fn compare(&mut self, shown: &str, said: &str) -> Result<(), String> {
        let (shown, said) = (tokens(&self.in_command(shown)), tokens(said));
        let pairs = matched(&shown, &said)?;
        for (wanted, given) in pairs {
            let is_name = matches!(wanted.kind, Kind::Id(_) | Kind::Secret) || wanted.text.len() >= 40;
            if is_name && wanted.text != given.text {
                self.stands_for(&wanted.text, &given.text);
            }
        }
        Ok(())
    }
}

/// Returns which shown word stands for which of those that were said.
fn matched<'a>(shown: &'a [Token], said: &'a [Token]) -> Result<Vec<(&'a Token, &'a Token)>, String> {
    // fits[i][j]: the shown words from i on fit those from j on that were said.
    let width = said.len() + 1;
    let mut fits = vec![false; (shown.len() + 1) * width];
    fits[shown.len() * width + said.len()] = true;
    for i in (0..shown.len()).rev() {
        for j in (0..=said.len()).rev() {
            fits[i * width + j] = if shown[i].kind == Kind::Anything {
                fits[(i + 1) * width + j] || (j < said.len() && fits[i * width + j + 1])
            } else {
                j < said.len() && is_like(&shown[i], &said[j]) && fits[(i + 1) * width + j + 1]
            };
        }
    }
    if !fits[0] {
        return Err(parting(shown, said));
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < shown.len() {
        if shown[i].kind != Kind::Anything {
            pairs.push((&shown[i], &said[j]));
            (i, j) = (i + 1, j + 1);
        } else if fits[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    Ok(pairs)
}

/// Says how far the shown words fit.
fn parting(shown: &[Token], said: &[Token]) -> String {
    // The places of what was said that the shown words up to here may lead to.
    let mut places = vec![0];
    for (i, token) in shown.iter().enumerate() {
        let next: Vec<usize> = if token.kind == Kind::Anything {
            let first = places.first().copied().unwrap_or_default();
            (first..=said.len()).collect()
        } else {
            places
                .iter()
                .filter(|j| said.get(**j).is_some_and(|word| is_like(token, word)))
                .map(|j| j + 1)
                .collect()
        };
        if next.is_empty() {
            let there = places.first().copied().unwrap_or_default();
            return format!("shown {:?}, said {:?}", around(shown, i), around(said, there));
        }
        places = next;
    }
    let there = places.last().copied().unwrap_or_default();
    format!("nothing is shown of {:?}", around(said, there))
}

fn around(words: &[Token], place: usize) -> String {
    let texts: Vec<&str> = words
        .iter()
        .skip(place)
        .take(8)
        .map(|word| word.text.as_str())
        .collect();
    texts.join(" ")
}

fn is_like(shown: &Token, said: &Token) -> bool {
    match &shown.kind {
        Kind::Word if shown.text.contains('…') => fits_parts(&shown.text, &said.text),
        Kind::Word => said.kind == Kind::Word && shown.text == said.text,
        // An id that this page showed before is that one.
        Kind::Id(_) if !shown.text.contains('…') && shown.text == said.text => true,
        kind => *kind == said.kind,
    }
}

/// Whether a word is made of these parts, with anything where `…` stands.
fn fits_parts(shown: &str, said: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(rest) = parts.next().and_then(|first| said.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    let mut rest = rest;
    for part in middle {
        let Some(place) = rest.find(part) else {
            return false;
        };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_and_dots_may_be_others_and_words_may_not() {
        let said = "{\"id\":\"sa_01m7vtxjtx8qjtcka6tev678wv\",\"name\":\"deploy\",\"at\":\"2026-11-20T13:24:14.169Z\",\"x\":[1,2]}";
        for shown in [
            "{ \"id\": \"sa_01m7vv9kh2kev1h5hjrtv1gvsk\", \"name\": \"deploy\", \"at\": \"2027-01-01T00:00:00.000Z\", \"x\": [1, 2] }",
            "{\"id\":\"…\",\"name\":\"dep…\",…}",
            "…\"name\":\"deploy\"…",
        ] {
            assert_eq!(Glossary::default().compare(shown, said), Ok(()), "{shown}");
        }
        for shown in [
            "{…\"name\":\"other\"…}",
            "{\"id\":\"sat_01m7vv9kh2kev1h5hjrtv1gvsk\",…}",
            "…\"x\":[1]}",
            "{",
        ] {
            Glossary::default().compare(shown, said).unwrap_err();
        }
    }

    #[test]
    fn an_id_that_was_shown_stands_for_the_one_that_was_said() {
        let mut meant = Glossary::default();
        let (shown, said) = ("sa_01m7vtxjtx8qjtcka6tev678wv", "sa_01m7vv9kh2kev1h5hjrtv1gvsk");
        meant
            .compare(&format!("made {shown}"), &format!("made {said}"))
            .unwrap();
        assert_eq!(meant.in_command(&format!("get {shown}")), format!("get {said}"));
    }

    #[test]
    fn the_place_where_they_part_is_said() {
        let parted = Glossary::default()
            .compare("one two four", "one two three")
            .unwrap_err();
        assert_eq!(parted, "shown \"four\", said \"three\"");
        let rest = Glossary::default().compare("one", "one two").unwrap_err();
        assert_eq!(rest, "nothing is shown of \"two\"");
    }
}
