//! One round: load, fault, recovery, and the comparison of acknowledged items with the actual state.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fault::{Fault, Outcome};
use super::journal::Journal;
use super::ledger::{Count, Round, Verdict};
use super::load::{Load, ran};
use super::random::Random;
use super::record::{Ack, Kind, Record};
use super::world::World;

/// The timeout of jobs and of the returner after the load has ended.
const JOBS_TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum time without progress of the journal while items are missing in it.
const JOURNAL_TIMEOUT: Duration = Duration::from_secs(15);

pub async fn run(fault: Fault, seed: u64) -> Round {
    let mut random = Random::new(seed);
    let mut world = match World::new().await {
        Ok(world) => world,
        Err(reason) => return Round::without_counts(fault, seed, Verdict::Failed(vec![reason])),
    };
    let mut prepared = match fault.prepare(&mut world) {
        Ok(prepared) => prepared,
        Err(reason) => return Round::without_counts(fault, seed, Verdict::Skipped(reason)),
    };
    let record = Arc::new(Record::default());
    let result = async {
        world.start_master().await?;
        world.start_minion().await?;
        world.start_api().await?;
        let load = Load::start(&world, &record).await?;
        let injected = fault.inject(&mut world, &mut prepared, &mut random, &record).await;
        if injected.is_ok() {
            tokio::time::sleep(random.millis(500, 1500)).await;
        }
        load.stop().await?;
        compare(fault, &mut world, &record, injected?).await
    };
    let mut round = match result.await {
        Ok((counts, set_aside, failures)) => {
            let verdict = if failures.is_empty() { Verdict::Passed } else { Verdict::Failed(failures) };
            Round { counts, set_aside, ..Round::without_counts(fault, seed, verdict) }
        }
        Err(error) => Round::without_counts(fault, seed, Verdict::Failed(vec![error])),
    };
    let lost_jobs = round.counts.iter().any(|(_, count)| count.lost > 0);
    if let Verdict::Failed(failures) = &mut round.verdict {
        let logs = world.keep_logs(&format!("{}-{seed}", fault.name()));
        failures.push(format!("logs are in {}", logs.display()));
    } else if lost_jobs {
        world.keep_logs(&format!("{}-{seed}", fault.name()));
    }
    world.kill_all();
    round
}

/// Waits for the jobs, restarts the master, and compares its journal and the minion's files with the record.
async fn compare(
    fault: Fault,
    world: &mut World,
    record: &Record,
    outcome: Outcome,
) -> Result<(Vec<(Kind, Count)>, u64, Vec<String>), String> {
    let (owed, set_aside): (Vec<Ack>, Vec<Ack>) =
        record.acks().into_iter().partition(|ack| outcome.damage.is_none_or(|damage| ack.at > damage));
    let of = |kind: Kind| owed.iter().filter(move |ack| ack.kind == kind);
    let (reactions, jobs) = (world.path("reactions"), world.path("jobs"));
    // Reactions that failed for longer than the reactor retries are dead letters, which an operator retries.
    world.runner(&["reactor.retry", "all"]).await?;
    let start = Instant::now();
    loop {
        let (reacted, completed) = (ran(&reactions), ran(&jobs));
        let complete = of(Kind::LocalReaction).all(|ack| reacted.contains_key(&ack.number))
            && of(Kind::Job).all(|ack| completed.contains_key(&ack.number));
        if complete || start.elapsed() > JOBS_TIMEOUT {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.check_daemons()?;
    world.stop_master().await?;
    world.start_master().await?;
    let everything = |journal: &Journal| {
        of(Kind::Event).all(|ack| journal.events.contains_key(&ack.number))
            && of(Kind::Return).all(|ack| journal.returns.contains_key(&ack.number))
            && of(Kind::RunnerReaction).all(|ack| journal.reacted.contains_key(&ack.number))
            && of(Kind::Hook).all(|ack| journal.hooks.contains_key(&ack.number))
    };
    let journal = Journal::read(world, JOURNAL_TIMEOUT, everything).await?;
    let start = Instant::now();
    let stored = loop {
        let stored = world.redis.events().await;
        if of(Kind::Event).all(|ack| stored.contains_key(&ack.number)) || start.elapsed() > JOBS_TIMEOUT {
            break stored;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // Times in the journal are the master's, and meaningless if its clock jumps.
    let by_master = (fault != Fault::ClockJumps).then_some(outcome.recovered);
    // A killed job does not run again: its minion reports it as interrupted.
    let ran_or_reported = |file| {
        let mut all = ran(file);
        for (number, times) in &journal.interrupted {
            all.entry(*number).or_insert_with(|| times.clone());
        }
        all
    };
    let mut counts = Vec::new();
    for kind in Kind::ALL {
        let count = match kind {
            Kind::Event => Count::of(of(kind), &journal.events, None),
            Kind::Return => Count::of(of(kind), &journal.returns, None),
            Kind::Push => Count::of(of(kind), &journal.pushed, None),
            Kind::RunnerReaction => Count::of(of(kind), &journal.reacted, by_master),
            Kind::LocalReaction => Count::of(of(kind), &ran_or_reported(&reactions), Some(outcome.recovered)),
            Kind::Job => Count::of(of(kind), &ran_or_reported(&jobs), Some(outcome.recovered)),
            Kind::Hook => Count::of(of(kind), &journal.hooks, None),
            Kind::EventReturn => {
                let events: Vec<Ack> = of(Kind::Event).copied().collect();
                Count::of(events.iter(), &stored, None)
            }
            Kind::Subscriber => received(&journal, &outcome.received),
            // A store that was moved aside took the numbers with it.
            Kind::Stream if outcome.damage.is_some() => Count::default(),
            Kind::Stream => received(&journal, &[record.stream()]),
        };
        if count.acknowledged > 0 {
            counts.push((kind, count));
        }
    }
    let failures = failures(fault, &counts);
    Ok((counts, set_aside.iter().filter(|ack| ack.kind != Kind::Push).count() as u64, failures))
}

/// Compares the events received by subscribers with the journal, from the first event of each to its last.
fn received(journal: &Journal, all: &[Vec<u64>]) -> Count {
    let mut count = Count::default();
    for seqs in all {
        let (Some(first), Some(last)) = (seqs.first(), seqs.last()) else { continue };
        let mut times: HashMap<u64, u64> = HashMap::new();
        for seq in seqs {
            *times.entry(*seq).or_default() += 1;
        }
        count.doubled += times.values().filter(|times| **times > 1).count() as u64;
        for seq in journal.seqs.iter().filter(|seq| (first..=last).contains(seq)) {
            count.acknowledged += 1;
            count.lost += u64::from(!times.contains_key(seq));
        }
    }
    count
}

/// Returns the failures among a round's counts.
fn failures(fault: Fault, counts: &[(Kind, Count)]) -> Vec<String> {
    let mut failures = Vec::new();
    for (kind, count) in counts {
        let may_be_lost = match kind {
            Kind::Push => fault.may_lose_pushes(),
            _ => false,
        };
        if count.lost > 0 && !may_be_lost {
            failures.push(format!("{} of {} {} lost", count.lost, count.acknowledged, kind.name()));
        }
        let once = matches!(kind, Kind::Event | Kind::Return | Kind::Push | Kind::Subscriber | Kind::Stream);
        if count.doubled > 0 && once {
            failures.push(format!("{} of {} {} doubled", count.doubled, count.acknowledged, kind.name()));
        }
    }
    // Without load, every comparison would succeed.
    for kind in
        [Kind::Event, Kind::Return, Kind::RunnerReaction, Kind::LocalReaction, Kind::Job, Kind::Push, Kind::Hook]
    {
        if !counts.iter().any(|(of, count)| *of == kind && count.acknowledged > 0) {
            failures.push(format!("no {} were acknowledged", kind.name()));
        }
    }
    failures
}
