//! The server's histogram of judging, as `/metrics` tells it.

use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::product::Server;

const NAME: &str = "provost_decision_judge_seconds_bucket{le=\"";

/// Upper bounds in seconds, each with the number of events that took no longer.
#[derive(Debug, Default, PartialEq)]
pub struct Histogram(Vec<(f64, u64)>);

/// Returns what the server has counted so far.
pub fn read(server: &Server) -> Outcome<Histogram> {
    let request = Request {
        token: None,
        ..Request::get("/metrics", "")
    };
    let answer = Connection::new(server.metrics)
        .send(&request)
        .map_err(|lost| lost.why)
        .context("/metrics")?;
    Ok(Histogram::parse(&String::from_utf8_lossy(&answer.body)))
}

impl Histogram {
    fn parse(text: &str) -> Self {
        let bucket = |line: &str| {
            let (bound, count) = line.strip_prefix(NAME)?.split_once("\"} ")?;
            let bound = if bound == "+Inf" {
                f64::INFINITY
            } else {
                bound.parse().ok()?
            };
            Some((bound, count.trim().parse().ok()?))
        };
        Self(text.lines().filter_map(bucket).collect())
    }

    /// Returns what was counted since then.
    pub fn since(&self, before: &Self) -> Self {
        let count = |bound: f64| {
            before
                .0
                .iter()
                .find(|(b, _)| b.total_cmp(&bound).is_eq())
                .map_or(0, |(_, n)| *n)
        };
        Self(
            self.0
                .iter()
                .map(|(bound, n)| (*bound, n - count(*bound)))
                .collect(),
        )
    }

    /// Returns the upper bound of the bucket in which this share of the events is reached; none without events.
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let all = self
            .0
            .last()
            .map(|(_, count)| *count)
            .filter(|count| *count > 0)?;
        let reached = self
            .0
            .iter()
            .find(|(_, count)| *count as f64 >= share * all as f64);
        reached.map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_that_covers_it() {
        let text = "# TYPE provost_decision_judge_seconds histogram\n\
            provost_decision_judge_seconds_bucket{le=\"0.00001\"} 90\n\
            provost_decision_judge_seconds_bucket{le=\"0.0001\"} 199\n\
            provost_decision_judge_seconds_bucket{le=\"+Inf\"} 200\n\
            provost_decision_judge_seconds_sum 0.1\n";
        let after = Histogram::parse(text);
        assert_eq!(after.quantile(0.99), Some(0.0001));
        assert_eq!(after.quantile(0.4), Some(0.00001));
        let before = Histogram(vec![(0.00001, 0), (0.0001, 100), (f64::INFINITY, 100)]);
        assert_eq!(after.since(&before).quantile(0.99), Some(0.0001));
        assert_eq!(after.since(&after).quantile(0.99), None);
    }
}
