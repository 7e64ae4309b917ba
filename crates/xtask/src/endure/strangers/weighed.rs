//! What one kind of request costs over the other, from rounds of a batch of either.

use std::collections::BTreeSet;

use super::counted::{Costs, Site};

/// The instructions of a batch of either kind.
pub type Round = [Costs; 2];

/// What the first kind costs over what the second does.
#[expect(clippy::cast_precision_loss, reason = "a ratio of some millions")]
pub fn ratio(rounds: &[Round]) -> f64 {
    let (mut more, mut whole) = (0, 0);
    for site in sites(rounds) {
        more += difference(rounds, site);
        whole += middle(rounds.iter().map(|round| at(&round[1], site)).collect());
    }
    1.0 + more as f64 / whole as f64
}

/// The place with the largest difference, and how large it is.
pub fn most(rounds: &[Round]) -> Option<(Site, i64)> {
    let differences = sites(rounds)
        .into_iter()
        .map(|site| (site, difference(rounds, site)));
    differences.max_by_key(|(_, more)| more.abs())
}

/// The standard error of the ratio, from how far parts of the rounds agree. The parts are of the whole time, so that what
/// changes with it is in each of them, and of pairs of rounds, because the order of the kinds changes from one to the next.
pub fn standard_error(rounds: &[Round], parts: usize) -> f64 {
    let ratios: Vec<f64> = (0..parts)
        .map(|part| {
            ratio(
                &rounds
                    .iter()
                    .skip(part)
                    .step_by(parts)
                    .cloned()
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    #[expect(clippy::cast_precision_loss, reason = "a handful of parts")]
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (variance / count).sqrt()
}

/// What a place does more for the first kind, in the median of the rounds.
fn difference(rounds: &[Round], site: Site) -> i64 {
    let differences = rounds.iter().map(|[one, other]| at(one, site) - at(other, site));
    middle(differences.collect())
}

fn at(costs: &Costs, site: Site) -> i64 {
    costs
        .get(&site)
        .map_or(0, |cost| i64::try_from(*cost).unwrap_or(i64::MAX))
}

fn sites(rounds: &[Round]) -> BTreeSet<Site> {
    rounds
        .iter()
        .flatten()
        .flat_map(|costs| costs.keys().copied())
        .collect()
}

/// The median: with an even count, halfway between the two in the middle, rounded towards nothing.
fn middle(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    let half = values.len() / 2;
    match values.len() {
        0 => 0,
        count if count % 2 == 1 => values[half],
        _ => i64::midpoint(values[half - 1], values[half]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Site = (3, 1);
    const TIMER: Site = (2, 7);

    /// Rounds in which something comes in the background now and then, and in which reading becomes dearer for good.
    fn rounds(more: u64) -> Vec<Round> {
        let costs = |number: u64, more: u64| {
            let read = if number > 20 { 1_500 } else { 1_000 };
            let mut costs = Costs::from([(READ, read + more)]);
            if number.is_multiple_of(3) {
                costs.insert(TIMER, 700);
            }
            costs
        };
        (0..40)
            .map(|number| [costs(number, more), costs(number + 1, 0)])
            .collect()
    }

    #[test]
    fn what_the_background_adds_falls_out_and_what_a_kind_costs_more_does_not() {
        assert!((ratio(&rounds(0)) - 1.0).abs() < 1e-9);
        let dearer = ratio(&rounds(30));
        assert!((1.02..=1.03).contains(&dearer), "{dearer}");
        assert_eq!(most(&rounds(30)), Some((READ, 30)));
        assert!(standard_error(&rounds(30), 4) < 0.004);
    }

    #[test]
    fn what_differs_from_round_to_round_has_a_large_error() {
        let wild: Vec<Round> = (0..40)
            .map(|number| {
                [
                    Costs::from([(READ, 1_000 + 80 * (number / 2 % 4))]),
                    Costs::from([(READ, 1_000)]),
                ]
            })
            .collect();
        assert!(standard_error(&wild, 4) > 0.01);
    }
}
