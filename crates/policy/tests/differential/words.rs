//! Names: people with several words, words of several people, spellings, strangers; the engine against the naive evaluator.

use crate::case::{Case, verdict};
use crate::naive::{self, Plain, World};
use crate::random::{self, Dice};
use crate::{compile, policies, read, seeds};
use provost_policy::{EventWindow, Scan, Symbols};
use serde_json::Value;
use std::sync::Arc;

/// People and their words, policies that name them, and what they did.
pub struct NamedPerson {
    pub world: World,
    pub policies: Vec<(&'static str, Value)>,
    pub history: Vec<Plain>,
}

pub fn told(seed: u64, events: usize) -> NamedPerson {
    let mut dice = Dice::new(seed);
    let world = random::names(&mut dice);
    let mut policies = policies(&mut dice);
    for (_, policy) in &mut policies {
        random::respell_policy(&mut dice, &world, policy);
    }
    let mut history = random::history(&mut dice, events, false);
    random::respell_history(&mut dice, &world, &mut history);
    random::claim_history(&mut dice, &mut history);
    NamedPerson {
        world,
        policies,
        history,
    }
}

/// Proves DE-1, IX-1, NW-1, WD-5.
#[test]
fn row_columns_and_naive_agree_on_what_names_mean() {
    let (mut unknown, mut plain) = (0, 0);
    let seeds = seeds(0, 500);
    let cases = usize::try_from(seeds.end - seeds.start).unwrap();
    for seed in seeds {
        let NamedPerson {
            world,
            policies,
            history,
        } = told(seed, 80);
        let case = Case::within(&world, &policies, &history);
        case.check_rows(seed);
        case.check_columns(seed, Dice::new(seed).pick(&[1, 7, 64, 80]));
        case.check_projection(seed);
        // What nobody knows is told from what somebody has.
        let nobody = Case::new(&policies, &history);
        let pairs = case.verdicts.iter().zip(&nobody.verdicts);
        plain += pairs.filter(|(a, b)| a != b).count();
        unknown += case.verdicts.iter().filter(|v| v.unknown).count();
    }
    assert!(unknown > 2 * cases && plain > 2 * cases, "{unknown} {plain}");
}

/// Proves CH-4.
#[test]
fn what_is_recalled_of_names_gives_the_decisions_of_the_naive_evaluator() {
    let mut with_history = 0;
    for seed in seeds(20_000, 200) {
        let NamedPerson {
            world,
            policies,
            history,
        } = told(seed, 80);
        let mut register = random::register(&world);
        random::put_claims(&mut register, &world, &history);
        let register = Arc::new(register);
        let set = Arc::new(compile(&policies));
        with_history += usize::from(set.has_history());
        let mut past = EventWindow::weighing(Arc::clone(&set), Dice::new(seed).pick(&[0, 1 << 20]));
        for (at, plain) in history.iter().enumerate() {
            let mut symbols = Symbols::knowing(Arc::clone(&register));
            symbols.intern("a text that no event has, so that no two tables agree");
            let event = read(&mut symbols, plain);
            let chronicle = past.recall(std::slice::from_ref(&event), &mut symbols);
            let outcome = set.judge(&event, &symbols, &chronicle);
            assert_eq!(
                verdict(&outcome),
                naive::judge(&world, &policies, &history, at),
                "seed {seed}, event {at}: {plain:?}"
            );
            assert!(past.observe(&event, &symbols));
        }
    }
    assert!(with_history > 50, "{with_history}");
}

#[test]
fn a_pair_and_a_renewed_table_say_the_same_of_names() {
    for seed in seeds(40_000, 100) {
        let NamedPerson {
            world,
            policies,
            history,
        } = told(seed, 60);
        let case = Case::within(&world, &policies, &history);
        let register = case.symbols.register();
        let other = compile(&policies[..policies.len() / 2]);
        let mut pair = provost_policy::Pair::new(&other, &case.set);
        let mut scan = Scan::new(&case.set);
        let mut symbols = Symbols::knowing(Arc::clone(register));
        let projection = provost_policy::Projection::of(&[&other, &case.set]).knowing(register);
        for (nth, plain) in history.chunks(9).enumerate() {
            let mut renewed = Symbols::knowing(Arc::clone(register));
            for n in 0..nth {
                renewed.intern(&format!("other {n}"));
            }
            scan.renew(&symbols, &mut renewed);
            pair.renew(&symbols, &mut renewed);
            symbols = renewed;
            let events: Vec<_> = plain.iter().map(|event| read(&mut symbols, event)).collect();
            let batch = provost_policy::Batch::of(&events, projection.fields()).unwrap();
            scan.judge(&batch, &symbols);
            assert!(pair.judge_until(&batch, &symbols, &|| false));
            for row in 0..events.len() {
                let expected = &case.verdicts[nth * 9 + row];
                let expected = (expected.action, expected.unknown);
                for scan in [&scan, pair.candidate()] {
                    let (action, unknown) = scan.decision(row);
                    assert_eq!((action.word(), unknown), expected, "seed {seed}, row {row}");
                }
            }
        }
    }
}
