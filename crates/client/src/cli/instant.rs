//! Durations and instants as people type them: `20d`, `1h` ago, `2026-11-20`, RFC 3339.

use provost_words::time::Timestamp;

/// LIMIT: nobody means a hundred years.
const MAX_SECS: i64 = 100 * 365 * 86_400;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Reads `90s`, `30m`, `12h`, `20d`, `2w`.
///
/// Units: seconds. Errors: a sentence with the form.
pub(super) fn duration_secs(text: &str) -> Result<i64, String> {
    let wrong = || "a duration is a number with its unit: 90s, 30m, 12h, 20d, 2w".to_owned();
    let (place, _) = text.char_indices().next_back().ok_or_else(wrong)?;
    let (count, unit) = text.split_at(place);
    let secs = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    let count: i64 = count.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    let secs = count.checked_mul(secs).filter(|secs| *secs <= MAX_SECS);
    secs.ok_or_else(wrong)
}

/// Reads an instant: RFC 3339, a day (its beginning in UTC), or a duration before now.
///
/// Errors: a sentence with the forms.
pub(super) fn instant(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    if let Ok(secs) = duration_secs(text) {
        return Ok(now.plus_secs(-secs));
    }
    let is_day = text.len() == 10;
    let found = if is_day {
        Timestamp::parse(&format!("{text}T00:00:00Z"))
    } else {
        Timestamp::parse(text)
    };
    found.ok_or_else(|| {
        "a time is RFC 3339 (2026-08-22T09:00:00Z), a day (2026-08-22), or how long ago it was (1h, 7d)"
            .to_owned()
    })
}

/// Reads `Fri, 20 Nov 2026 12:37:43 GMT` (RFC 9110).
pub fn of_http_date(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split(' ').collect();
    let [_, day, month, year, time, "GMT"] = words.as_slice() else {
        return None;
    };
    let month = MONTHS.iter().position(|name| name == month)? + 1;
    Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, secs) in [
            ("90s", 90),
            ("30m", 1800),
            ("12h", 43_200),
            ("20d", 1_728_000),
            ("2w", 1_209_600),
            ("0s", 0),
        ] {
            assert_eq!(duration_secs(text), Ok(secs), "{text}");
        }
        for text in [
            "",
            "d",
            "20",
            "-1d",
            "+1d",
            "1.5h",
            "20 d",
            "1y",
            "20D",
            "9999999999999999999d",
            "99999d",
            "1é",
        ] {
            assert!(duration_secs(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_instant_may_be_said_by_how_long_ago_it_was() {
        let now = Timestamp::parse("2026-11-26T12:00:00.000Z").unwrap();
        for (text, at) in [
            ("1h", "2026-11-26T11:00:00.000Z"),
            ("7d", "2026-11-19T12:00:00.000Z"),
            ("2026-08-22", "2026-08-22T00:00:00.000Z"),
            ("2026-08-22T09:00:00+02:00", "2026-08-22T07:00:00.000Z"),
        ] {
            assert_eq!(instant(text, now).unwrap().to_string(), at, "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "2026-08-22T09:00", "1y"] {
            assert!(instant(text, now).is_err(), "{text}");
        }
    }

    #[test]
    fn the_date_of_an_answer_is_an_instant() {
        let at = of_http_date("Fri, 20 Nov 2026 12:37:43 GMT").unwrap();
        assert_eq!(at.to_string(), "2026-11-20T12:37:43.000Z");
        for text in [
            "",
            "Fri, 20 Nov 2026 12:37:43 CET",
            "20 Nov 2026",
            "Fri, 20 Foo 2026 12:37:43 GMT",
        ] {
            assert_eq!(of_http_date(text), None, "{text}");
        }
    }
}
