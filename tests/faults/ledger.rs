//! The ledger: counts of acknowledged, lost, duplicated and late items by round, kind and fault.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::fault::Fault;
use super::record::{Ack, Kind};

/// The time after the recovery from which an acknowledged item counts as late.
pub const LATE: u64 = 10_000;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub acknowledged: u64,
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
}

impl Count {
    /// Compares acknowledgements with the times (milliseconds since 1970) at which each number was seen. Without a
    /// recovery time nothing counts as late.
    pub fn of<'a>(acks: impl Iterator<Item = &'a Ack>, seen: &HashMap<u64, Vec<u64>>, recovered: Option<u64>) -> Self {
        let mut count = Count::default();
        for ack in acks {
            count.acknowledged += 1;
            let times = seen.get(&ack.number).map(Vec::as_slice).unwrap_or_default();
            match times.iter().min() {
                None => count.lost += 1,
                Some(first) => {
                    count.doubled += u64::from(times.len() > 1);
                    count.late += u64::from(recovered.is_some_and(|at| *first > at.max(ack.at) + LATE));
                }
            }
        }
        count
    }

    fn add(&mut self, other: Count) {
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.late += other.late;
    }
}

pub enum Verdict {
    Passed,
    Skipped(String),
    Failed(Vec<String>),
}

/// The result of one round.
pub struct Round {
    pub fault: Fault,
    pub seed: u64,
    pub counts: Vec<(Kind, Count)>,
    /// Items acknowledged before the store was damaged; they are in the file that was moved aside.
    pub set_aside: u64,
    pub verdict: Verdict,
    pub took: Duration,
}

impl Round {
    pub fn without_counts(fault: Fault, seed: u64, verdict: Verdict) -> Self {
        Round { fault, seed, counts: Vec::new(), set_aside: 0, verdict, took: Duration::ZERO }
    }

    /// Returns the command that repeats the round.
    fn command(&self) -> String {
        format!("tests/faults/run --only {} --seed {} --rounds 1", self.fault.name(), self.seed)
    }
}

impl fmt::Display for Round {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (seed {}) {:.1} s: ", self.fault.name(), self.seed, self.took.as_secs_f64())?;
        match &self.verdict {
            Verdict::Passed => write!(out, "passed")?,
            Verdict::Skipped(reason) => write!(out, "skipped: {reason}")?,
            Verdict::Failed(reasons) => write!(out, "FAILED: {}; repeat with {}", reasons.join("; "), self.command())?,
        }
        for (kind, count) in &self.counts {
            write!(out, ", {} {}", count.acknowledged, kind.name())?;
            for (number, word) in [(count.lost, "lost"), (count.doubled, "doubled"), (count.late, "late")] {
                if number > 0 {
                    write!(out, " ({number} {word})")?;
                }
            }
        }
        if self.set_aside > 0 {
            write!(out, ", {} set aside with the damaged store", self.set_aside)?;
        }
        Ok(())
    }
}

#[derive(Default)]
pub struct Ledger(Vec<Round>);

impl Ledger {
    pub fn add(&mut self, round: Round) {
        self.0.push(round);
    }

    pub fn failed(&self) -> usize {
        self.0.iter().filter(|round| matches!(round.verdict, Verdict::Failed(_))).count()
    }

    fn skipped(&self) -> usize {
        self.0.iter().filter(|round| matches!(round.verdict, Verdict::Skipped(_))).count()
    }

    fn total(&self, kind: Kind) -> Count {
        let mut total = Count::default();
        for (_, count) in self.0.iter().flat_map(|round| &round.counts).filter(|(of, _)| *of == kind) {
            total.add(*count);
        }
        total
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{:<18}{:>14}{:>8}{:>9}{:>7}", "kind", "acknowledged", "lost", "doubled", "late")?;
        let mut all = Count::default();
        for kind in Kind::ALL {
            let Count { acknowledged, lost, doubled, late } = self.total(kind);
            let name = if kind == Kind::Push { "pushed events *" } else { kind.name() };
            writeln!(out, "{name:<18}{acknowledged:>14}{lost:>8}{doubled:>9}{late:>7}")?;
            if kind != Kind::Push {
                all.add(Count { acknowledged, lost, doubled, late });
            }
        }
        writeln!(out, "* sent, without acknowledgement: those in flight may be lost with the master\n")?;
        writeln!(out, "{:<24}{:>7}{:>8}{:>9}{:>9}", "fault", "rounds", "failed", "skipped", "longest")?;
        for fault in Fault::ALL {
            let of: Vec<&Round> = self.0.iter().filter(|round| round.fault == fault).collect();
            if of.is_empty() {
                continue;
            }
            let failed = of.iter().filter(|round| matches!(round.verdict, Verdict::Failed(_))).count();
            let skipped = of.iter().filter(|round| matches!(round.verdict, Verdict::Skipped(_))).count();
            let longest = of.iter().map(|round| round.took.as_secs_f64()).fold(0.0, f64::max);
            writeln!(out, "{:<24}{:>7}{failed:>8}{skipped:>9}{longest:>7.1} s", fault.name(), of.len())?;
        }
        writeln!(out)?;
        for round in &self.0 {
            match &round.verdict {
                Verdict::Failed(reasons) => {
                    writeln!(out, "failed: {}: {}", round.fault.name(), reasons.join("; "))?;
                    writeln!(out, "        repeat with: {}", round.command())?;
                }
                Verdict::Skipped(reason) => writeln!(out, "skipped: {}: {reason}", round.fault.name())?,
                Verdict::Passed => {}
            }
        }
        let set_aside: u64 = self.0.iter().map(|round| round.set_aside).sum();
        write!(
            out,
            "{} rounds, {} failed, {} skipped: of {} acknowledged {} lost, {} doubled, {} late; {set_aside} in stores that were \
             damaged on purpose and moved aside",
            self.0.len(),
            self.failed(),
            self.skipped(),
            all.acknowledged,
            all.lost,
            all.doubled,
            all.late,
        )
    }
}

#[test]
fn counts_compare_acknowledgements_with_observations() {
    let ack = |number, at| Ack { kind: Kind::LocalReaction, number, at };
    let acks = [ack(1, 0), ack(2, 0), ack(3, 0), ack(4, 50_000), ack(5, 0)];
    let seen = [(1, vec![5]), (2, vec![6, 7]), (4, vec![60_000]), (5, vec![10_101, 10_102]), (9, vec![1])];
    let seen: HashMap<u64, Vec<u64>> = seen.into_iter().collect();
    for (recovered, late) in [(None, 0), (Some(100), 1), (Some(102), 0)] {
        let expected = Count { acknowledged: 5, lost: 1, doubled: 2, late };
        assert_eq!(Count::of(acks.iter(), &seen, recovered), expected, "{recovered:?}");
    }
}
