//! Changed decisions over time, beside what was evaluated: two rows of bars over the same days.
//!
//! Each row has a scale of its own. On a common one a change in three of a hundred decisions would not be seen.

use super::super::view::DayRow;
use super::super::words::{date, number};
use super::section;
use provost_words::html::{Html, scaled, share};
use provost_words::time::Timestamp;

const DAY_MS: i64 = 86_400_000;
/// More bars than these are too thin on a telephone; then one stands for several days.
const MAX_BARS: i64 = 100;
const WIDTHS: [i64; 5] = [1, 7, 30, 90, 365];
/// Fewer bars than these are drawn as if there were as many, lest one fill the page.
const MIN_SLOTS: u64 = 14;
/// A span that no retention allows: the days are not what they should be.
const MAX_DAYS: i64 = 20_000;

/// What one bar stands for.
#[derive(Debug, PartialEq, Eq)]
struct Bar {
    first_day: i64,
    last_day: i64,
    changed: u64,
    evaluated: u64,
}

/// Adds the section; nothing where no day is known.
pub fn add(html: &mut Html, rows: &[DayRow]) {
    let Some((bars, width)) = bars(rows) else { return };
    let (each, every) = match width {
        1 => ("per day".to_owned(), "days".to_owned()),
        7 => ("per week".to_owned(), "weeks".to_owned()),
        days => (format!("per {days} days"), format!("periods of {days} days")),
    };
    section(html, "Over time", "", |html| {
        html.element("figure", &[], |html| {
            html.words("h3", "", &format!("Decisions that would have changed, {each}"));
            chart(html, &bars, 150, "bar-changed", |bar| bar.changed);
            ends(html, &bars);
            html.words("h3", "", &format!("Events evaluated, {each}"));
            chart(html, &bars, 70, "bar-evaluated", |bar| bar.evaluated);
            ends(html, &bars);
            html.words("figcaption", "", &in_words(&bars, &every));
        });
        table(html, &bars);
    });
}

/// Returns the bars of every day from the first to the last, and how many days each stands for.
fn bars(rows: &[DayRow]) -> Option<(Vec<Bar>, i64)> {
    let days: Vec<(i64, &DayRow)> = rows
        .iter()
        .filter_map(|row| Some((day_number(&row.day)?, row)))
        .collect();
    let first = days.iter().map(|(day, _)| *day).min()?;
    let last = days.iter().map(|(day, _)| *day).max()?;
    let span = last - first + 1;
    if span > MAX_DAYS {
        return None;
    }
    let is_enough = |width: &i64| (span + width - 1) / width <= MAX_BARS;
    let width = WIDTHS.into_iter().find(is_enough).unwrap_or(365);
    let mut bars: Vec<Bar> = (0..(span + width - 1) / width)
        .map(|place| Bar {
            first_day: first + place * width,
            last_day: (first + (place + 1) * width - 1).min(last),
            changed: 0,
            evaluated: 0,
        })
        .collect();
    for (day, row) in days {
        let bar = usize::try_from((day - first) / width)
            .ok()
            .and_then(|place| bars.get_mut(place))?;
        bar.changed = bar.changed.saturating_add(row.changed);
        bar.evaluated = bar.evaluated.saturating_add(row.evaluated);
    }
    Some((bars, width))
}

fn day_number(day: &str) -> Option<i64> {
    let midnight = Timestamp::parse(&format!("{}T00:00:00Z", day.get(..10)?))?;
    Some(midnight.as_ms().div_euclid(DAY_MS))
}

fn day_text(day: i64) -> String {
    date(&Timestamp::from_ms(day * DAY_MS).to_rfc3339())
}

impl Bar {
    fn days(&self) -> String {
        if self.first_day == self.last_day {
            return day_text(self.first_day);
        }
        format!("{} to {}", day_text(self.first_day), day_text(self.last_day))
    }
}

fn chart(html: &mut Html, bars: &[Bar], height: u64, class: &str, count: fn(&Bar) -> u64) {
    let greatest = bars.iter().map(count).max().unwrap_or(0);
    let top = round_up(greatest);
    let slots = (bars.len() as u64).max(MIN_SLOTS);
    let plot = height - 20;
    let total = height.to_string();
    // The words beside the chart say what it shows, and the table below has every figure.
    let svg = [
        ("width", "100%"),
        ("height", total.as_str()),
        ("aria-hidden", "true"),
        ("focusable", "false"),
    ];
    html.element("svg", &svg, |html| {
        let mut marks = vec![top];
        if top.is_multiple_of(2) && plot > 60 {
            marks.push(top / 2);
        }
        let y = |mark: u64| height - scaled(mark, top, plot, 1);
        for mark in &marks {
            rule(html, &y(*mark).to_string(), "grid");
        }
        for (place, bar) in (0_u64..).zip(bars) {
            let value = count(bar);
            if value == 0 {
                continue;
            }
            let tall = scaled(value, top, plot, 2);
            // Ten units a slot, eight of them the bar.
            let x = share(place * 10 + 1, slots * 10);
            let wide = share(8, slots * 10);
            let (y, tall) = ((height - tall).to_string(), tall.to_string());
            let at = [
                ("x", x.as_str()),
                ("y", &y),
                ("width", &wide),
                ("height", &tall),
                ("class", class),
            ];
            html.element("rect", &at, |html| {
                let words = format!(
                    "{}: {} would have changed, of {}",
                    bar.days(),
                    number(bar.changed),
                    number(bar.evaluated)
                );
                html.words("title", "", &words);
            });
        }
        rule(html, &total, "axis");
        for mark in marks {
            let above = (y(mark) - 4).to_string();
            html.element("text", &[("x", "0"), ("y", &above)], |html| {
                html.text(&number(mark));
            });
        }
    });
}

/// Draws a line across the whole chart.
pub(crate) fn rule(html: &mut Html, y: &str, class: &str) {
    let at = [
        ("x1", "0"),
        ("x2", "100%"),
        ("y1", y),
        ("y2", y),
        ("class", class),
    ];
    html.element("line", &at, |_| {});
}

/// Says when the first and the last bar are; where few bars leave room, the last stands further left.
fn ends(html: &mut Html, bars: &[Bar]) {
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else {
        return;
    };
    let slots = (bars.len() as u64).max(MIN_SLOTS);
    let room = format!("width:max(15rem,{})", share(bars.len() as u64, slots));
    html.element("p", &[("class", "ends"), ("style", &room)], |html| {
        html.words("span", "", &day_text(first.first_day));
        if first.first_day != last.last_day {
            html.words("span", "", &day_text(last.last_day));
        }
    });
}

fn in_words(bars: &[Bar], every: &str) -> String {
    let changed = bars.iter().filter(|bar| bar.changed > 0).count() as u64;
    let most = bars
        .iter()
        .max_by_key(|bar| (bar.changed, std::cmp::Reverse(bar.first_day)));
    match most.filter(|bar| bar.changed > 0) {
        None => "Nothing would have changed at any time.".to_owned(),
        Some(bar) => format!(
            "Most changes: {} of {} events, {}. Changes on {} of {} {every}.",
            number(bar.changed),
            number(bar.evaluated),
            bar.days(),
            number(changed),
            number(bars.len() as u64)
        ),
    }
}

fn table(html: &mut Html, bars: &[Bar]) {
    html.element("details", &[("class", "figures-of-chart")], |html| {
        html.words("summary", "", "The same as a table");
        html.element("table", &[], |html| {
            html.words("caption", "", "Evaluated and changed over time");
            html.raw("<thead><tr><th scope=\"col\">When (UTC)</th><th scope=\"col\" class=\"count\">Changed</th><th scope=\"col\" class=\"count\">Evaluated</th></tr></thead>\n");
            html.element("tbody", &[], |html| {
                for bar in bars.iter().filter(|bar| bar.evaluated > 0) {
                    html.element("tr", &[], |html| {
                        html.element("th", &[("scope", "row")], |html| html.text(&bar.days()));
                        html.words("td", "count", &number(bar.changed));
                        html.words("td", "count", &number(bar.evaluated));
                    });
                }
            });
        });
    });
}

/// Returns the next of 1, 2, 4, 5, 6, 8, 10, 20, …, which is at least 1.
fn round_up(value: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for step in [1, 2, 4, 5, 6, 8] {
            match unit.checked_mul(step) {
                Some(round) if round >= value => return round,
                Some(_) => {}
                None => return value,
            }
        }
        match unit.checked_mul(10) {
            Some(next) => unit = next,
            None => return value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(day: &str, changed: u64, evaluated: u64) -> DayRow {
        DayRow {
            day: day.to_owned(),
            evaluated,
            changed,
        }
    }

    fn page(rows: &[DayRow]) -> String {
        let mut html = Html::default();
        add(&mut html, rows);
        html.into_string()
    }

    #[test]
    fn days_without_events_keep_their_place() {
        let (bars, width) = bars(&[row("2026-02-27", 1, 9), row("2026-03-02", 2, 3)]).unwrap();
        assert_eq!((bars.len(), width), (4, 1));
        assert_eq!(
            bars[1],
            Bar {
                first_day: bars[0].first_day + 1,
                last_day: bars[0].first_day + 1,
                changed: 0,
                evaluated: 0
            }
        );
        assert_eq!((bars[3].changed, bars[3].days().as_str()), (2, "2 Mar 2026"));
    }

    #[test]
    fn a_long_time_is_drawn_in_longer_bars_and_nothing_is_lost() {
        let rows: Vec<DayRow> = (0..400)
            .map(|day| row(&Timestamp::from_ms(day * DAY_MS).to_rfc3339()[..10], 1, 2))
            .collect();
        let (bars, width) = bars(&rows).unwrap();
        assert_eq!((width, bars.len()), (7, 58));
        assert_eq!(bars.iter().map(|bar| bar.changed).sum::<u64>(), 400);
        assert_eq!(bars[57].days(), "4 Feb 1971");
        assert!(page(&rows).contains("per week"));
    }

    #[test]
    fn days_that_are_none_draw_nothing() {
        assert_eq!(page(&[]), "");
        assert_eq!(page(&[row("<script>", 1, 1), row("é", 1, 1)]), "");
        assert_eq!(page(&[row("0001-01-01", 1, 1), row("2026-01-01", 1, 1)]), "");
    }

    #[test]
    fn one_day_is_one_thin_bar_with_a_date() {
        let html = page(&[row("2026-11-20", 3, 10)]);
        assert!(html.contains("width=\"5.714%\""), "{html}");
        assert!(html.contains("20 Nov 2026: 3 would have changed, of 10"));
    }

    #[test]
    fn scales_end_at_round_numbers() {
        assert_eq!(
            [0, 1, 3, 7, 11, 81, 6_000_001].map(round_up),
            [1, 1, 4, 8, 20, 100, 8_000_000]
        );
        assert_eq!(round_up(u64::MAX), u64::MAX);
    }
}
