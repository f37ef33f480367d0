//! The fault suite: a master, a minion, the REST API and a returner under load, one fault per round, and a ledger of everything acknowledged.
//!
//! `tests/faults/run` runs it with more rounds, other seeds or chosen faults; docs/faults.md describes it.

mod clock;
pub mod disk;
mod fault;
mod journal;
mod ledger;
mod load;
mod network;
mod process;
mod random;
mod record;
mod redis;
mod round;
mod store;
mod subscribers;
mod unsynced;
mod web;
mod world;

use std::time::Duration;

use fault::Fault;
use ledger::{Ledger, Round, Verdict};

/// The timeout of a round.
const ROUND: Duration = Duration::from_secs(240);

/// The rounds to run, from the environment that `tests/faults/run` sets.
struct Plan {
    rounds: u64,
    /// The seed of the first round; the next round has the next number.
    seed: u64,
    faults: Vec<Fault>,
}

impl Plan {
    fn from_environment() -> Self {
        let number = |name: &str, default: u64| match std::env::var(name) {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is invalid: expected a number, got '{text}'")),
            Err(_) => default,
        };
        let only = std::env::var("BRINE_FAULTS_ONLY").unwrap_or_default();
        let named = only
            .split(',')
            .filter(|name| !name.is_empty())
            .map(|name| name.parse::<Fault>().unwrap_or_else(|error| panic!("BRINE_FAULTS_ONLY is invalid: {error}")));
        let mut faults: Vec<Fault> = named.collect();
        if faults.is_empty() {
            faults = Fault::routine();
        }
        let rounds = number("BRINE_FAULTS_ROUNDS", Fault::routine().len() as u64);
        Plan { rounds, seed: number("BRINE_FAULTS_SEED", 1), faults }
    }
}

/// Runs the rounds and prints the ledger.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_under_faults() {
    let plan = Plan::from_environment();
    let mut ledger = Ledger::default();
    for number in 0..plan.rounds {
        let fault = plan.faults[usize::try_from(number).unwrap() % plan.faults.len()];
        let round = one(fault, plan.seed.wrapping_add(number)).await;
        eprintln!("round {} of {}: {round}", number + 1, plan.rounds);
        ledger.add(round);
    }
    eprintln!("\n{ledger}");
    assert!(ledger.failed() == 0, "{} of {} rounds failed; the ledger is above", ledger.failed(), plan.rounds);
}

/// Runs one round; a panic and a timeout are failures of the round, not of the suite.
async fn one(fault: Fault, seed: u64) -> Round {
    let started = std::time::Instant::now();
    let mut task = tokio::spawn(round::run(fault, seed));
    let mut round = match tokio::time::timeout(ROUND, &mut task).await {
        Ok(Ok(round)) => round,
        Ok(Err(error)) => {
            Round::without_counts(fault, seed, Verdict::Failed(vec![format!("the round panicked: {error}")]))
        }
        Err(_) => {
            task.abort();
            let _ended = task.await;
            let message = format!("the round did not end within {} s", ROUND.as_secs());
            Round::without_counts(fault, seed, Verdict::Failed(vec![message]))
        }
    };
    round.took = started.elapsed();
    round
}
