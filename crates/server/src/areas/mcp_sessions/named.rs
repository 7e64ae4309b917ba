//! Finds the sessions that a substring names: those of the actors and clients that have it, and those whose ids do.
//!
//! Of actors and clients there are few beside their sessions, and each stands in the store once (ADR 0026). An id is
//! chance behind its time, so that few have any three letters of it.
//!
//! Keeps MS-3: no session is missing that the scan would find, and none is there twice.

use super::find::{Filter, MAX_TOTAL};
use super::merged_pages::PLAN_ONCE;
use super::model::SessionId;
use super::{merged, pages, ranges};
use provost_kernel::db::{Engine, Param, Statement};
use provost_kernel::id::TypedId;
use provost_kernel::{Cx, Error, Result, params};
use std::collections::BTreeSet;

/// So many of the newest actors tell which trigrams are rare.
const SAMPLE: i64 = 100;
/// So many trigrams are looked up: those that more would rule out are few, and each costs.
const MAX_TRIGRAMS: usize = 5;
/// So many clients are read one by one when they have more sessions than are counted.
const MAX_CLIENTS: usize = 8;
/// Substrings shorter than this have no trigram. Units: characters, folded.
const MIN_INDEXED: usize = 3;
/// So much of a part of an id is looked up: its end, as ids begin with their time.
const MAX_PART: usize = 8;

/// What a substring names.
pub enum Named {
    /// These, newest first, and how many there are in all. Of more than [`MAX_TOTAL`] it is the newest, as many as were
    /// wanted.
    Newest(Vec<i64>, i64),
    /// More than [`MAX_TOTAL`]: the newest are soon met.
    Many,
    /// The scopes that the filter asks for have too many kinds.
    Unknown,
}

/// Returns the newest sessions of the filter that have this text, or all of them.
pub fn newest(cx: &mut Cx<'_>, filter: &Filter<'_>, text: &str, wanted: i64) -> Result<Named> {
    let Some(kinds) = ranges::kinds(cx, filter)? else {
        return Ok(Named::Unknown);
    };
    let mut search = Search::of(cx, filter, kinds.as_deref(), text);
    let clients = search.clients(cx)?;
    // Far pages, and what the store does not count, are read.
    let is_counted = filter.account.is_none() && clients.len() <= MAX_CLIENTS && wanted <= MAX_TOTAL;
    let of_clients = if is_counted {
        ranges::known(cx, filter, &clients, kinds.as_deref())?
    } else {
        0
    };
    let are_many = of_clients > MAX_TOTAL;
    if are_many {
        for client in &clients {
            let filter = Filter {
                client: Some(client),
                text: None,
                ..*filter
            };
            search
                .found
                .extend(newest_of_client(cx, &filter, kinds.as_deref(), wanted)?);
        }
    } else if !clients.is_empty() {
        let of_client = match filter.account {
            None => &pages::NAMED_BY_CLIENT,
            Some(_) => &pages::NAMED_BY_CLIENT_OF_ACCOUNT,
        };
        if search.read(cx, of_client, None)? {
            return Ok(Named::Many);
        }
    }
    if search.by_actor(cx)? || search.by_id(cx)? {
        return Ok(Named::Many);
    }
    let found = search.found;
    let counted = i64::try_from(found.len()).unwrap_or(i64::MAX);
    Ok(Named::Newest(found, if are_many { of_clients } else { counted }))
}

/// The numbers of a client's newest sessions.
fn newest_of_client(
    cx: &mut Cx<'_>,
    filter: &Filter<'_>,
    kinds: Option<&[i64]>,
    wanted: i64,
) -> Result<Vec<i64>> {
    if cx.tx().engine() == Engine::Sqlite {
        return Ok(ranges::merged(cx, filter, kinds, wanted, 0)?.0);
    }
    // Nothing is being written down: a list with a text is read in another way then.
    let found = merged::page(cx, filter, wanted, 0)?.unwrap_or_default();
    Ok(found.sessions.into_iter().map(|session| session.seq).collect())
}

/// One substring and what was found of it.
struct Search<'a> {
    values: Vec<Param<'a>>,
    text: &'a str,
    found: Vec<i64>,
}

impl<'a> Search<'a> {
    fn of(cx: &Cx<'a>, filter: &Filter<'a>, kinds: Option<&[i64]>, text: &'a str) -> Self {
        let kinds = kinds.map(|kinds| {
            kinds
                .iter()
                .fold(String::from(" "), |list, kind| format!("{list}{kind} "))
        });
        let (org, now) = (cx.org(), cx.now());
        let state = filter.status.map(|status| status.state().code());
        // What has run out and is not written down stands among the active ones.
        let states = match state {
            Some(state) if state < 2 => (state, state),
            _ => (0, 2),
        };
        let values = params![
            org,
            now,
            states.0,
            states.1,
            state,
            kinds,
            filter.client,
            filter.account,
            containing(text),
            MAX_TOTAL + 1,
        ];
        Self {
            values: values.to_vec(),
            text,
            found: Vec::new(),
        }
    }

    /// The clients that have the text, of those that the filter leaves; one more than are read one by one says that
    /// there are more.
    fn clients(&self, cx: &mut Cx<'_>) -> Result<Vec<String>> {
        let most = i64::try_from(MAX_CLIENTS + 1).unwrap_or(i64::MAX);
        let [org, client, pattern] = [0, 6, 8].map(|place| self.values[place].clone());
        let values = [org, pattern, client, Param::from(most)];
        cx.query(&pages::NAMED_CLIENTS, &values, |row| row.get(0))
    }

    /// Adds what a statement finds, each once and newest first; says whether that is more than are counted.
    fn read(&mut self, cx: &mut Cx<'_>, statement: &'static Statement, words: Option<&str>) -> Result<bool> {
        let mut values = self.values.clone();
        values.extend(words.map(|words| Param::from(words.to_owned())));
        let read = cx.query_opt(statement, &values, |row| row.get::<Option<String>>(0))?;
        let is_more = |found: usize| i64::try_from(found).is_ok_and(|found| found > MAX_TOTAL);
        let before = self.found.len();
        for number in read.flatten().unwrap_or_default().split_ascii_whitespace() {
            self.found.push(number.parse().map_err(Error::internal)?);
        }
        let is_cut = is_more(self.found.len() - before);
        // Whoever is named twice counts once.
        self.found.sort_unstable_by(|a, b| b.cmp(a));
        self.found.dedup();
        Ok(is_cut || is_more(self.found.len()))
    }

    fn by_actor(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        let is_indexed = self.text.chars().count() >= MIN_INDEXED;
        if cx.tx().engine() == Engine::Postgres {
            let part = if is_indexed {
                rare_part(cx, self.text)?
            } else {
                self.text.to_owned()
            };
            // The actors are found first, whatever the text is: to plan that takes longer than to do it.
            cx.queue(&PLAN_ONCE, params![])?;
            return self.read(cx, &pages::NAMED_BY_ACTOR, Some(&containing(&part)));
        }
        if is_indexed {
            let words = rare_trigrams(cx, self.text)?;
            return self.read(cx, &pages::NAMED_BY_ACTOR, Some(&words));
        }
        self.read(cx, &pages::NAMED_BY_SHORT_ACTOR, Some(""))
    }

    fn by_id(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        if !may_be_in_an_id(self.text) {
            return Ok(false);
        }
        let is_indexed = self.text.chars().count() >= MIN_INDEXED;
        let (statement, words) = match cx.tx().engine() {
            _ if !is_indexed => (&pages::NAMED_BY_SHORT_ID, String::new()),
            Engine::Sqlite => (&pages::NAMED_BY_ID, anded(trigrams(end_of(self.text)))),
            Engine::Postgres => (&pages::NAMED_BY_ID, containing(end_of(self.text))),
        };
        if cx.tx().engine() == Engine::Sqlite {
            return self.read(cx, statement, Some(&words));
        }
        cx.queue(&pages::PLAN_ANEW, params![])?;
        let is_more = self.read(cx, statement, Some(&words))?;
        cx.queue(&PLAN_ONCE, params![])?;
        Ok(is_more)
    }
}

/// Says whether every session's id has this folded text: it is a part of what all ids begin with.
pub fn is_in_every_id(text: &str) -> bool {
    lead().contains(text)
}

/// What ids begin with.
fn lead() -> String {
    format!("{}_", SessionId::PREFIX)
}

/// Says whether an id can have this folded text: letters that its alphabet lacks tell that most names are none.
fn may_be_in_an_id(text: &str) -> bool {
    let (before, rest) = match text.split_once('_') {
        Some((before, rest)) => (before, rest),
        None => ("", text),
    };
    let is_digit = |c: char| c.is_ascii_digit() || (c.is_ascii_lowercase() && !"ilou".contains(c));
    let is_lead = before.is_empty() || SessionId::PREFIX.ends_with(before);
    // A text without a `_` may stand before it as well; that is in every id and not looked for.
    is_lead && rest.chars().all(is_digit)
}

/// Returns the end of a text, all of it if it is short.
fn end_of(text: &str) -> &str {
    let skipped = text.chars().count().saturating_sub(MAX_PART);
    text.char_indices()
        .nth(skipped)
        .map_or(text, |(at, _)| &text[at..])
}

fn trigrams(text: &str) -> BTreeSet<String> {
    let chars: Vec<char> = text.chars().collect();
    let parts = chars.windows(MIN_INDEXED).map(|part| part.iter().collect());
    parts.collect()
}

/// Returns a question to SQLite's index: the trigrams of a text that fewest of the newest actors have. Asked for the
/// whole text it would read what it holds of every trigram, and of common ones that is most of it.
fn rare_trigrams(cx: &mut Cx<'_>, text: &str) -> Result<String> {
    let sample = sample(cx)?;
    let mut counted: Vec<(usize, String)> = trigrams(text)
        .into_iter()
        .map(|part| (having(&sample, &part), part))
        .collect();
    counted.sort();
    let rare = counted.iter().take_while(|(count, _)| is_rare(*count, &sample));
    let wanted = rare.count().clamp(1, MAX_TRIGRAMS);
    counted.truncate(wanted);
    Ok(anded(counted.into_iter().map(|(_, part)| part)))
}

/// The same for PostgreSQL, whose index is asked for a part of the text: the rarest trigram and the rare ones before it; the
/// whole text if none is rare. Of those that the sample does not tell apart numbers are taken, and the end: what names
/// begin with many share.
fn rare_part(cx: &mut Cx<'_>, text: &str) -> Result<String> {
    let sample = sample(cx)?;
    Ok(rarest(
        text,
        |part| having(&sample, part),
        |count| is_rare(count, &sample),
    ))
}

fn rarest(text: &str, having: impl Fn(&str) -> usize, is_rare: impl Fn(usize) -> bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    let ranks: Vec<(usize, bool)> = chars
        .windows(MIN_INDEXED)
        .map(|part| {
            let has_digit = part.iter().any(char::is_ascii_digit);
            // Other signs end a word in PostgreSQL's index, and are not in it.
            let is_indexed = part.iter().all(|c| c.is_alphanumeric() || *c == ' ');
            let count = if is_indexed {
                having(&part.iter().collect::<String>())
            } else {
                usize::MAX
            };
            (count, !has_digit)
        })
        .collect();
    let best = (0..ranks.len()).rev().min_by_key(|place| ranks[*place]);
    let Some(best) = best.filter(|best| is_rare(ranks[*best].0)) else {
        return text.to_owned();
    };
    let before = (0..best).rev().take_while(|place| is_rare(ranks[*place].0));
    let before = before.take(MAX_TRIGRAMS - 1).count();
    chars[best - before..best + MIN_INDEXED].iter().collect()
}

/// The texts of the newest actors.
fn sample(cx: &mut Cx<'_>) -> Result<Vec<String>> {
    let org = cx.org();
    cx.query(&pages::SAMPLE, params![org, SAMPLE], |row| row.get(0))
}

fn having(sample: &[String], part: &str) -> usize {
    sample.iter().filter(|known| known.contains(part)).count()
}

/// One that every fourth has rules out less than it costs.
fn is_rare(count: usize, sample: &[String]) -> bool {
    count <= sample.len() / 4
}

/// In the index's language quotes alone mean something within quotes.
fn anded(parts: impl IntoIterator<Item = String>) -> String {
    let quoted = parts
        .into_iter()
        .map(|part| format!("\"{}\"", part.replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(" AND ")
}

/// Returns a pattern for what contains a text.
pub fn containing(text: &str) -> String {
    format!("%{}%", escaped(text))
}

/// Returns a pattern that matches exactly this text.
pub fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use provost_kernel::entropy::UnitRng;
    use provost_kernel::{Timestamp, text::name_key};

    #[test]
    fn the_rarest_part_of_a_text_is_asked_for() {
        let sample = ["agent 0000001", "agent 0000002", "person number7 of department 9"];
        let part = |text: &str| {
            rarest(
                text,
                |part| sample.iter().filter(|known| known.contains(part)).count(),
                |count| count <= sample.len() / 4,
            )
        };
        assert_eq!(part("agent 0000345"), "00345", "what everybody has is left out");
        assert_eq!(part("department 17"), "t 17", "numbers tell more than words");
        assert_eq!(part("number11010 of"), "11010 o", "five trigrams are enough");
        assert_eq!(part("client-07"), "clien", "a sign between words is in no index");
        assert_eq!(part("-07"), "-07");
        assert_eq!(
            part("quite another name"),
            "er name",
            "the end tells more than the beginning"
        );
        assert_eq!(part("robot"), "robot");
        assert_eq!(part("agent 000"), "agent 000", "nothing of it is rare");
        assert_eq!(part("é 000x"), "00x");
    }

    /// Proves MS-3.
    #[test]
    fn whatever_is_in_an_id_may_be() {
        let mut rng = UnitRng::new([5; 32]);
        for n in 0..200 {
            let id = SessionId::mint(Timestamp::from_ms(1_795_144_500_000 + n * 77_777_777), &mut rng);
            let id = name_key(id.as_str());
            for begin in 0..id.len() {
                for end in begin + 1..=id.len() {
                    let part = &id[begin..end];
                    assert!(may_be_in_an_id(part) || is_in_every_id(part), "{part} of {id}");
                    assert!(part.ends_with(end_of(part)) && end_of(part).len() == part.len().min(MAX_PART));
                }
            }
        }
        for never in [
            "sa_0123",
            "usr_01",
            "robot",
            "department 7",
            "mcps_01_",
            "x_mcps",
            "é",
            "01-",
        ] {
            assert!(!may_be_in_an_id(never) && !is_in_every_id(never), "{never}");
        }
    }
}
