//! The server's histogram of judging, as `/metrics` tells it.

use crate::failure::{Context, Outcome};
use crate::http::{Connection, Request};
use crate::product::Server;

const NAME: &str = "provost_decision_judge_seconds_bucket{le=\"";
const SUM: &str = "provost_decision_judge_seconds_sum ";

/// How long judging took.
#[derive(Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bounds in seconds, each with the number of events that took no longer.
    buckets: Vec<(f64, u64)>,
    /// Of all events together. Units: seconds.
    sum: f64,
}

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
        let sum = text
            .lines()
            .find_map(|line| line.strip_prefix(SUM)?.trim().parse().ok());
        Self {
            buckets: text.lines().filter_map(bucket).collect(),
            sum: sum.unwrap_or_default(),
        }
    }

    /// Returns what was counted since then.
    pub fn since(&self, before: &Self) -> Self {
        let count = |bound: f64| {
            before
                .buckets
                .iter()
                .find(|(b, _)| b.total_cmp(&bound).is_eq())
                .map_or(0, |(_, n)| *n)
        };
        Self {
            buckets: self
                .buckets
                .iter()
                .map(|(bound, n)| (*bound, n - count(*bound)))
                .collect(),
            sum: self.sum - before.sum,
        }
    }

    /// Returns how long an event took on average, in seconds; none without events.
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    pub fn mean(&self) -> Option<f64> {
        let (_, count) = self.buckets.last()?;
        (*count > 0).then(|| self.sum / *count as f64)
    }

    /// Returns the upper bound of the bucket in which this share of the events is reached; none without events.
    #[expect(clippy::cast_precision_loss, reason = "some millions are exact")]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let all = self
            .buckets
            .last()
            .map(|(_, count)| *count)
            .filter(|count| *count > 0)?;
        let reached = self
            .buckets
            .iter()
            .find(|(_, count)| *count as f64 >= share * all as f64);
        reached.map(|(bound, _)| *bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_that_covers_it_and_the_mean_is_that_of_new_events() {
        let text = "# TYPE provost_decision_judge_seconds histogram\n\
            provost_decision_judge_seconds_bucket{le=\"0.00001\"} 90\n\
            provost_decision_judge_seconds_bucket{le=\"0.0001\"} 199\n\
            provost_decision_judge_seconds_bucket{le=\"+Inf\"} 200\n\
            provost_decision_judge_seconds_sum 0.1\n";
        let after = Histogram::parse(text);
        assert_eq!(after.quantile(0.99), Some(0.0001));
        assert_eq!(after.quantile(0.4), Some(0.00001));
        assert!(after.mean().is_some_and(|mean| (mean - 0.0005).abs() < 1e-9));
        let before = Histogram {
            buckets: vec![(0.00001, 0), (0.0001, 100), (f64::INFINITY, 100)],
            sum: 0.05,
        };
        assert!(
            after
                .since(&before)
                .mean()
                .is_some_and(|mean| (mean - 0.0005).abs() < 1e-9)
        );
        assert_eq!(after.since(&before).quantile(0.99), Some(0.0001));
        assert_eq!(
            (after.since(&after).quantile(0.99), after.since(&after).mean()),
            (None, None)
        );
    }
}
