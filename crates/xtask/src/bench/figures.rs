//! What the rounds of one engine found, and the goals that it is held against.

use super::machine::Syncs;
use super::report::{Goal, Row, median};
use super::rounds::Series;
use crate::Engine;

/// What the goals are for one engine.
struct Goals {
    reads: f64,
    lists: f64,
    list_cpu_micros: f64,
    mutations: f64,
}

const SQLITE: Goals = Goals {
    reads: 40_000.0,
    lists: 8_000.0,
    list_cpu_micros: 150.0,
    mutations: 12_000.0,
};
const POSTGRES: Goals = Goals {
    reads: 12_000.0,
    lists: 4_000.0,
    list_cpu_micros: 250.0,
    mutations: 5_000.0,
};

/// The table's part of one engine.
pub fn rows(
    of: Engine,
    names: &[&str],
    series: &[Series],
    ungrouped: &Series,
    others: &OtherFigures,
) -> Vec<Row> {
    let engine = of.name();
    let goals = if of == Engine::Postgres {
        &POSTGRES
    } else {
        &SQLITE
    };
    let rate_goals = [
        Goal::AtLeast(goals.reads),
        Goal::None,
        Goal::AtLeast(goals.lists),
        Goal::None,
        Goal::AtLeast(goals.mutations),
    ];
    let mut rows = vec![others.syncs_row(engine)];
    for ((name, series), goal) in names.iter().zip(series).zip(rate_goals) {
        rows.push(series.row(name, of, goal));
    }
    rows.push(ungrouped.row("one commit per mutation, 64 connections", of, Goal::None));

    rows.push(Row::new(
        "grouping gain",
        engine,
        " ×",
        others.gain_goal(of),
        others.gains.clone(),
    ));
    let [reads, _, lists, ..] = series else {
        return rows;
    };
    rows.push(Row::new(
        "p99 of reading one account",
        engine,
        " ms",
        Goal::AtMost(10.0),
        reads.p99.clone(),
    ));
    let list_cpu = Goal::AtMost(goals.list_cpu_micros);
    rows.push(Row::new(
        "CPU of a list",
        engine,
        " µs",
        list_cpu,
        lists.whole_cpu(),
    ));
    rows.push(Row::new(
        "idle memory",
        engine,
        " MiB",
        Goal::AtMost(40.0),
        others.memory.clone(),
    ));
    rows.push(Row::new(
        "empty store to /readyz",
        engine,
        " ms",
        Goal::AtMost(300.0),
        others.ready.clone(),
    ));
    rows
}

/// What is measured besides loads.
pub struct OtherFigures {
    pub memory: Vec<f64>,
    pub ready: Vec<f64>,
    pub syncs: Vec<Syncs>,
    pub gains: Vec<f64>,
}

impl OtherFigures {
    fn syncs_row(&self, engine: &'static str) -> Row {
        let take = |value: fn(&Syncs) -> f64| self.syncs.iter().map(value).collect::<Vec<_>>();
        let rates = take(|syncs| syncs.per_second);
        let mut row = Row::new(
            "raw fdatasync of 4 KiB, one at a time",
            engine,
            "/s",
            Goal::None,
            rates,
        );
        let p50 = median(&take(|syncs| syncs.p50.as_secs_f64() * 1e3));
        let p99 = median(&take(|syncs| syncs.p99.as_secs_f64() * 1e3));
        row.latencies = Some((p50, p99));
        row
    }

    /// On a slow disk one commit per mutation is hopeless, so grouping has to gain more there.
    fn gain_goal(&self, engine: Engine) -> Goal {
        let sync_millis: Vec<_> = self.syncs.iter().map(|syncs| 1e3 / syncs.per_second).collect();
        match engine {
            _ if median(&sync_millis) >= 1.0 => Goal::AtLeast(8.0),
            Engine::Sqlite => Goal::AtLeast(4.0),
            _ => Goal::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn syncs(per_second: f64) -> OtherFigures {
        let syncs = vec![Syncs {
            per_second,
            p50: Duration::ZERO,
            p99: Duration::ZERO,
        }];
        OtherFigures {
            memory: Vec::new(),
            ready: Vec::new(),
            syncs,
            gains: Vec::new(),
        }
    }

    #[test]
    fn a_slow_disk_asks_more_of_grouping() {
        assert!(matches!(syncs(500.0).gain_goal(Engine::Sqlite), Goal::AtLeast(goal) if goal > 7.0));
        assert!(matches!(syncs(500.0).gain_goal(Engine::Postgres), Goal::AtLeast(goal) if goal > 7.0));
        assert!(matches!(syncs(9000.0).gain_goal(Engine::Sqlite), Goal::AtLeast(goal) if goal < 5.0));
        assert!(matches!(syncs(9000.0).gain_goal(Engine::Postgres), Goal::None));
    }
}
