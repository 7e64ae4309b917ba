//! How things stand as one page, in the style of a backtest's: no script, no network, nothing but this text.
//!
//! The same posture is always the same page: nothing here reads a clock.
//!
//! Keeps PG-1, PG-2.

mod charts;
mod lists;
mod tables;

use super::view::{Decisions, Part, Posture, Tally};
use crate::backtests::page::{BEFORE_TITLE, STYLE, section};
use crate::backtests::words::{instant, number, percent};
use provost_words::html::Html;
use std::collections::BTreeMap;
use tables::Table;

/// Rows of a ranking that everybody sees; the others unfold.
pub const SHOWN: usize = 10;
/// LIMIT: rows of a list, so that a page of a large organization can still be read.
pub const MAX_ROWS: usize = 200;
const DAY_MS: i64 = 86_400_000;

/// Returns the page.
pub fn page(posture: &Posture) -> String {
    let mut html = Html::default();
    html.raw(BEFORE_TITLE);
    html.words("title", "", &format!("{}: posture", posture.organization));
    html.raw("<style>\n");
    html.raw(STYLE);
    html.raw(include_str!("style.css"));
    html.raw("</style>\n</head>\n<body>\n");
    html.element("main", &[], |html| {
        top(html, posture);
        decisions(html, posture);
        lists::policies(html, posture);
        lists::accounts(html, posture);
        lists::sessions(html, posture);
        lists::machines(html, posture);
        about(html, posture);
    });
    html.raw("</body>\n</html>\n");
    html.into_string()
}

/// Returns what is known, or says why nothing is.
fn known<'a, T>(html: &mut Html, part: &'a Part<T>) -> Option<&'a T> {
    match part {
        Part::Known(known) => Some(known),
        Part::Withheld(why) => {
            html.element("p", &[("class", "withheld")], |html| {
                html.text("Not shown, because the token of this page may not read it: ");
                html.name(why);
            });
            None
        }
    }
}

fn top(html: &mut Html, posture: &Posture) {
    html.element("header", &[], |html| {
        html.words("p", "kicker", "How things stand");
        html.element("h1", &[], |html| html.name(&posture.organization));
        html.words("p", "headline", &headline(posture));
        figures(html, posture);
        let caveats = caveats(posture);
        if !caveats.is_empty() {
            html.element("div", &[("class", "caveats"), ("role", "note")], |html| {
                html.words("h2", "", "Before you rely on these figures");
                html.element("ul", &[], |html| {
                    for caveat in &caveats {
                        html.words("li", "", caveat);
                    }
                });
            });
        }
    });
}

fn headline(posture: &Posture) -> String {
    let days = if posture.days == 1 {
        "today".to_owned()
    } else {
        format!("in {} days", posture.days)
    };
    let Part::Known(decisions) = &posture.decisions else {
        return format!("As of {}.", instant(&posture.at.to_rfc3339()));
    };
    if decisions.all == 0 {
        return format!("No decision was recorded {days}.");
    }
    let of = |action: &str| decisions.by_action.get(action).copied().unwrap_or(0);
    let (blocked, waited) = (of("block"), of("require_approval"));
    format!(
        "Of {} decisions {days}, {} were blocked ({}) and {} needed approval ({}).",
        number(decisions.all),
        number(blocked),
        percent(blocked, decisions.all),
        number(waited),
        percent(waited, decisions.all),
    )
}

fn figures(html: &mut Html, posture: &Posture) {
    let mut figures: Vec<(&str, String, &str)> = Vec::new();
    if let Part::Known(decisions) = &posture.decisions {
        figures.push(("Decisions", number(decisions.all), "recorded"));
    }
    if let (Part::Known(decisions), Part::Known(policies)) = (&posture.decisions, &posture.policies) {
        let idle = policies
            .iter()
            .filter(|policy| !decisions.by_policy.contains_key(&policy.id))
            .count();
        figures.push(("Policies", number(policies.len() as u64), "switched on"));
        figures.push(("Idle policies", number(idle as u64), "decided nothing"));
    }
    if let Part::Known(accounts) = &posture.accounts {
        let ending = accounts
            .iter()
            .filter(|account| lists::ends_soon(account, posture.at))
            .count();
        figures.push(("Ending soon", number(ending as u64), "accounts within 30 days"));
    }
    if let Part::Known(sessions) = &posture.sessions {
        figures.push(("Sessions", at_least(sessions.total, sessions.is_exact), "active"));
    }
    if let Part::Known(profiles) = &posture.machines {
        let machines = || profiles.iter().flat_map(|profile| &profile.machines);
        let ill = machines().filter(|machine| !machine.is_well()).count();
        figures.push(("Machines", number(machines().count() as u64), "report"));
        figures.push(("Not as published", number(ill as u64), "machines"));
    }
    html.element("dl", &[("class", "figures")], |html| {
        for (name, figure, note) in figures {
            html.element("div", &[], |html| {
                html.words("dt", "", name);
                html.element("dd", &[], |html| {
                    html.text(&figure);
                    html.words("small", "", note);
                });
            });
        }
    });
}

fn at_least(count: u64, is_exact: bool) -> String {
    format!("{}{}", number(count), if is_exact { "" } else { "+" })
}

fn caveats(posture: &Posture) -> Vec<String> {
    let mut all = Vec::new();
    if let Part::Known(decisions) = &posture.decisions {
        if let Some(at) = &decisions.read_to {
            all.push(format!(
                "Only the newest decisions were read, back to {}: --max-events reads more.",
                instant(at)
            ));
        }
        if decisions.unreadable > 0 {
            all.push(format!(
                "{} recorded events could not be read, and the figures lack them.",
                number(decisions.unreadable)
            ));
        }
        if decisions.imported > 0 {
            all.push(format!(
                "{} of the decisions ({}) were imported: somebody told of them, and this server did not make them.",
                number(decisions.imported),
                percent(decisions.imported, decisions.all)
            ));
        }
    }
    let parts = [
        ("decisions", is_withheld(&posture.decisions)),
        ("policies", is_withheld(&posture.policies)),
        ("names of people", is_withheld(&posture.people)),
        ("accounts", is_withheld(&posture.accounts)),
        ("sessions", is_withheld(&posture.sessions)),
        ("machines", is_withheld(&posture.machines)),
    ];
    let left_out: Vec<&str> = parts
        .iter()
        .filter(|(_, is_so)| *is_so)
        .map(|(name, _)| *name)
        .collect();
    if !left_out.is_empty() {
        all.push(format!(
            "This page was made with a token that may not read everything. It leaves out: {}.",
            left_out.join(", ")
        ));
    }
    all
}

fn is_withheld<T>(part: &Part<T>) -> bool {
    matches!(part, Part::Withheld(_))
}

fn decisions(html: &mut Html, posture: &Posture) {
    section(html, "Decisions", "", |html| {
        let Some(found) = known(html, &posture.decisions) else {
            return;
        };
        if found.all == 0 {
            html.words("p", "hint", "There is none in this time.");
            return;
        }
        charts::by_day(html, found);
    });
    let Part::Known(found) = &posture.decisions else {
        return;
    };
    html.element("div", &[("class", "pair")], |html| {
        ranking(
            html,
            "Tools",
            "Tools by decisions about their calls",
            "Tool",
            &found.by_tool,
            |id| (id.to_owned(), None),
        );
        let names = match &posture.people {
            Part::Known(names) => names,
            Part::Withheld(_) => &BTreeMap::new(),
        };
        ranking(
            html,
            "People",
            "People, accounts and devices by decisions about them",
            "Who",
            &found.by_subject,
            |id| match names.get(id) {
                Some(name) => (name.clone(), Some(id.to_owned())),
                None => (id.to_owned(), None),
            },
        );
    });
}

fn ranking(
    html: &mut Html,
    heading: &str,
    caption: &'static str,
    head: &'static str,
    tallies: &BTreeMap<String, Tally>,
    name: impl Fn(&str) -> (String, Option<String>),
) {
    if tallies.is_empty() {
        return;
    }
    let mut rows: Vec<(&String, &Tally)> = tallies.iter().collect();
    rows.sort_by_key(|(id, tally)| (std::cmp::Reverse(tally.all), *id));
    let heads = [(head, ""), ("Decisions", "count"), ("Stopped", "count")];
    let table = Table::new(caption, &heads);
    let rows: Vec<tables::Row> = rows
        .into_iter()
        .map(|(id, tally)| {
            let (shown, under) = name(id);
            let name = tables::Cell::named(shown, under);
            tables::Row(vec![
                name,
                tables::Cell::plain(number(tally.all)),
                tables::Cell::plain(number(tally.stopped)),
            ])
        })
        .collect();
    section(
        html,
        heading,
        "Stopped: blocked, or waiting for approval.",
        |html| table.add(html, &rows, SHOWN),
    );
}

fn about(html: &mut Html, posture: &Posture) {
    section(html, "About this page", "", |html| {
        html.element("dl", &[("class", "facts")], |html| {
            let fact = |html: &mut Html, name: &str, text: &str, is_command: bool| {
                html.words("dt", "", name);
                html.element("dd", &[], |html| {
                    if is_command {
                        html.words("code", "", text);
                    } else {
                        html.text(text);
                    }
                });
            };
            fact(html, "As of", &instant(&posture.at.to_rfc3339()), false);
            fact(
                html,
                "Days looked at",
                &format!("{}, in UTC, today among them", posture.days),
                false,
            );
            if let Part::Known(Decisions { undecided, .. }) = &posture.decisions
                && *undecided > 0
            {
                fact(html, "Events without a decision", &number(*undecided), false);
            }
            for (name, command) in [
                ("This page again", "provost report posture --html FILE"),
                ("Decisions one by one", "provost history list"),
                ("One policy", "provost policies revisions POLICY"),
                ("A new token", "provost service-accounts rotate ACCOUNT"),
                ("Machines", "provost managed-config targets PROFILE"),
            ] {
                fact(html, name, command, true);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::super::view::{Account, Machine, Policy, Profile, Session, Sessions};
    use super::lists::{ends_soon, state};
    use super::*;
    use provost_words::time::Timestamp;

    /// A posture in which every text is `x`.
    fn of(x: &str) -> Posture {
        let text = || x.to_owned();
        let day: BTreeMap<String, u64> = [(text(), 2), ("block".into(), 1)].into();
        let tally = Tally { all: 3, stopped: 1 };
        Posture {
            organization: text(),
            at: Timestamp::from_ms(1_795_000_000_000),
            days: 30,
            decisions: Part::Known(Decisions {
                all: 3,
                imported: 1,
                undecided: 1,
                by_day: [(20_777, day.clone()), (20_779, BTreeMap::new())].into(),
                by_action: day,
                by_tool: [(text(), tally)].into(),
                by_subject: [(text(), tally)].into(),
                by_policy: BTreeMap::new(),
                read_to: Some(text()),
                unreadable: 1,
            }),
            policies: Part::Known(vec![Policy {
                id: text(),
                name: Some(format!("{x}{x}")),
                family: text(),
                action: text(),
            }]),
            people: Part::Known([(text(), format!("{x}{x}"))].into()),
            accounts: Part::Known(vec![Account {
                id: text(),
                name: format!("{x}{x}"),
                role: text(),
                is_disabled: true,
                is_orphaned: true,
                ends_at: None,
                used_at: None,
            }]),
            sessions: Part::Known(Sessions {
                total: 2,
                is_exact: false,
                newest: vec![Session {
                    actor: text(),
                    client: text(),
                    issued_at: text(),
                    used_at: text(),
                }],
            }),
            machines: Part::Known(vec![Profile {
                name: text(),
                target: text(),
                machines: vec![Machine {
                    name: text(),
                    state: text(),
                    reported_at: text(),
                    message: Some(format!("{x}{x}")),
                }],
            }]),
        }
    }

    /// Returns the markup without texts and without the values of attributes.
    fn markup(page: &str) -> String {
        let (mut markup, mut in_tag, mut in_value) = (String::new(), false, false);
        for c in page.chars() {
            match c {
                '"' if in_tag => in_value = !in_value,
                '<' if !in_value => in_tag = true,
                '>' if !in_value => in_tag = false,
                c if in_tag && !in_value => markup.push(c),
                _ => {}
            }
        }
        markup
    }

    /// Proves PG-1, PG-2.
    #[test]
    fn nothing_of_a_server_is_markup_and_nothing_is_asked_for() {
        let harmless = page(&of("x"));
        for word in [
            "<script", "<link", "<img", "<iframe", "<a ", "href", "url(", "@import", "http:", "https:",
        ] {
            assert!(!harmless.contains(word), "{word}");
        }
        for evil in [
            "<script>alert(1)</script>",
            "\"><img src=x onerror=alert(1)>",
            "</title></style>",
            "\u{202e}<b>",
            "\u{0}\u{1b}[2J",
        ] {
            let page = page(&of(evil));
            assert_eq!(markup(&page), markup(&harmless), "{evil:?}");
            assert!(!page.contains('\u{202e}') && !page.contains('\u{1b}'), "{evil:?}");
        }
    }

    #[test]
    fn what_may_not_be_read_is_said_and_no_zero_stands_for_it() {
        let withheld = || "this needs the scope mcp:read".to_owned();
        let posture = Posture {
            sessions: Part::Withheld(withheld()),
            policies: Part::Withheld(withheld()),
            people: Part::Withheld(withheld()),
            accounts: Part::Withheld(withheld()),
            machines: Part::Withheld(withheld()),
            decisions: Part::Withheld(withheld()),
            ..of("x")
        };
        let page = page(&posture);
        assert_eq!(page.matches("Not shown, because the token").count(), 5);
        assert!(page.contains("decisions, policies, names of people, accounts, sessions, machines."));
        assert!(
            !page.contains("<dt>Sessions") && !page.contains("There is no"),
            "{page}"
        );
    }

    #[test]
    fn an_account_ends_when_its_last_token_does() {
        let now = Timestamp::from_ms(1_795_000_000_000);
        let account = |days: Option<i64>, is_disabled| Account {
            id: "sa_1".into(),
            name: "a".into(),
            role: "auditor".into(),
            is_disabled,
            is_orphaned: false,
            ends_at: days.map(|days| now.plus_ms(days * DAY_MS + 1)),
            used_at: None,
        };
        assert!(ends_soon(&account(Some(5), false), now) && ends_soon(&account(None, false), now));
        assert!(!ends_soon(&account(Some(31), false), now) && !ends_soon(&account(Some(5), true), now));
        assert!(state(&account(Some(5), false), now).starts_with("its last token ends in 5 days, on "));
        assert_eq!(state(&account(None, true), now), "disabled; no token works");
    }

    #[test]
    fn every_table_has_a_caption_and_headings_skip_no_level() {
        let page = page(&of("x"));
        assert_eq!(page.matches("<table").count(), page.matches("<caption").count());
        let headings = page
            .match_indices("<h")
            .filter_map(|(at, _)| page.as_bytes().get(at + 2)?.checked_sub(b'0'));
        let mut last = 0;
        for level in headings.filter(|level| (1..=6).contains(level)) {
            assert!(level <= last + 1, "h{level} behind h{last}");
            last = level;
        }
    }
}
