//! From when to when a backtest looks. The server's clock counts: it refuses a window that ends in its future.

use crate::cli::{Client, Failure, Request, of_http_date};
use clap::{Arg, ArgMatches, value_parser};
use provost_words::time::{Clock, SystemClock, Timestamp};
use serde_json::{Value, json};

const DAY_SECS: i64 = 86_400;
/// Returns the flags.
pub fn args() -> Vec<Arg> {
    let instant = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("TIME")
            .value_parser(parsed)
            .help(help)
    };
    vec![
        Arg::new("days")
            .long("days")
            .value_name("N")
            .value_parser(value_parser!(u16).range(1..=3650))
            .conflicts_with("from")
            .help("Looks at this many days before --to [default: 90]"),
        instant(
            "from",
            "The beginning of the window: 2026-08-22 or 2026-08-22T09:00:00Z",
        ),
        instant(
            "to",
            "The end of the window, which is not part of it [default: now]",
        ),
    ]
}

/// Returns the window.
///
/// Errors: usage, when it ends before it begins; whatever asking the server for its time comes to.
pub async fn window(matches: &ArgMatches, client: &Client<'_>) -> Result<Value, Failure> {
    let given = |id: &str| matches.get_one::<Timestamp>(id).copied();
    let to = match given("to") {
        Some(to) => to,
        None => now(client).await?,
    };
    let days = matches.get_one::<u16>("days").copied().unwrap_or(90);
    let from = given("from").unwrap_or_else(|| to.plus_secs(-i64::from(days) * DAY_SECS));
    if from >= to {
        return Err(Failure::usage("the window ends before it begins"));
    }
    Ok(json!({ "from": from, "to": to }))
}

/// Returns what the server's clock says, in whole seconds, so never its future; this machine's without it.
async fn now(client: &Client<'_>) -> Result<Timestamp, Failure> {
    let answer = client.send(&Request::get(&["capabilities"])).await?;
    let date = answer.header("date").and_then(of_http_date);
    Ok(date.unwrap_or_else(|| SystemClock::new().now()))
}

fn parsed(text: &str) -> Result<Timestamp, String> {
    let is_day = text.len() == 10;
    let found = if is_day {
        Timestamp::parse(&format!("{text}T00:00:00Z"))
    } else {
        Timestamp::parse(text)
    };
    found.ok_or_else(|| "a time is a day (2026-08-22) or RFC 3339 (2026-08-22T09:00:00Z)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_or_an_instant() {
        assert_eq!(
            parsed("2026-08-22").unwrap().to_string(),
            "2026-08-22T00:00:00.000Z"
        );
        assert_eq!(
            parsed("2026-08-22T09:00:00+02:00").unwrap().to_string(),
            "2026-08-22T07:00:00.000Z"
        );
        for text in ["", "yesterday", "2026-13-01", "2026-08-22T09:00"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
