//! The table: medians beside their goals.

/// What a figure has to be.
#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// For comparison only.
    None,
}

/// One line of the table.
pub struct Row {
    pub measure: String,
    pub engine: &'static str,
    /// The rounds' values; the table shows their median.
    pub values: Vec<f64>,
    pub unit: &'static str,
    pub goal: Goal,
    /// Medians of further columns: p50 and p99 in ms, processor time per request in µs.
    pub latencies: Option<(f64, f64)>,
    pub cpu: String,
}

impl Row {
    pub fn new(
        measure: &str,
        engine: &'static str,
        unit: &'static str,
        goal: Goal,
        values: Vec<f64>,
    ) -> Self {
        Self {
            measure: measure.to_owned(),
            engine,
            values,
            unit,
            goal,
            latencies: None,
            cpu: String::new(),
        }
    }
}

impl Goal {
    /// How often the goal is reached: 1 is just so, 2 is twice as good.
    pub fn ratio(self, value: f64) -> Option<f64> {
        match self {
            Self::AtLeast(goal) => Some(value / goal),
            Self::AtMost(goal) if value > 0.0 => Some(goal / value),
            Self::AtMost(_) | Self::None => None,
        }
    }

    pub fn text(self, unit: &str) -> String {
        match self {
            Self::AtLeast(goal) => format!("≥ {}{unit}", figure(goal)),
            Self::AtMost(goal) => format!("≤ {}{unit}", figure(goal)),
            Self::None => "–".to_owned(),
        }
    }
}

/// The middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// A Markdown table; a ratio below 1 is a goal that is missed.
pub fn table<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let mut text = String::from(
        "| Measure | Engine | Median | p50 ms | p99 ms | CPU µs/request | Goal | Ratio to goal |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let value = median(&row.values);
        let (p50, p99) = row
            .latencies
            .map_or_else(Default::default, |(p50, p99)| (figure(p50), figure(p99)));
        let ratio = row
            .goal
            .ratio(value)
            .map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
        let cells = [
            row.measure.clone(),
            row.engine.to_owned(),
            format!("{}{}", figure(value), row.unit),
            p50,
            p99,
            row.cpu.clone(),
            row.goal.text(row.unit),
            ratio,
        ];
        text.extend(["| ", &cells.join(" | "), " |\n"]);
    }
    text
}

/// Three significant digits for small figures, thousands apart for large ones.
pub fn figure(value: f64) -> String {
    if value < 100.0 {
        let digits = if value < 1.0 { 3 } else { 2 };
        let text = format!("{value:.digits$}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let whole = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_moved_by_one_wild_round() {
        assert!((median(&[3.0, 1.0, 900.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[1.0, 2.0, 3.0, 10.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_missed_goal_has_a_ratio_below_one() {
        let row = |goal, value| Row::new("m", "SQLite", "/s", goal, vec![value]);
        assert!(
            table(&[row(Goal::AtLeast(40_000.0), 20_000.0)])
                .contains("| 20 000/s |  |  |  | ≥ 40 000/s | 0.50 |")
        );
        assert!(table(&[row(Goal::AtMost(10.0), 5.0)]).contains("| ≤ 10/s | 2.00 |"));
        assert!(table(&[row(Goal::None, 5.0)]).contains("| – | – |"));
    }

    #[test]
    fn figures_are_readable() {
        assert_eq!(figure(1_234_567.8), "1 234 568");
        assert_eq!(figure(0.1234), "0.123");
        assert_eq!(figure(12.0), "12");
        assert_eq!(figure(999.6), "1 000");
        assert_eq!(figure(0.0), "0");
    }
}
