//! The progress of each member: the events received here, those the reactor has handled, and their sequence numbers on
//! both buses.

use std::collections::{HashMap, VecDeque};

use crate::message::EventPosition;

/// The maximum number of received events whose local sequence numbers are remembered.
const MAX_REMEMBERED: usize = 65_536;

/// The maximum number of former incarnations of a member that are remembered.
const MAX_FORMER: usize = 64;

/// The incarnation of the sender of a message, compared with the known one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incarnation {
    /// It is the known one, or the first one.
    Current,
    /// The member has lost its store and numbers its events anew.
    New,
    /// The message is an old one of a former incarnation, or from before this member knew the sender.
    Refused,
}

/// The positions as they are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoredPositions {
    /// The last received event of each other member: member, incarnation, sequence number.
    pub received: Vec<(String, String, u64)>,
    /// The former incarnations: member, incarnation.
    pub former: Vec<(String, String)>,
    /// The last event of each member whose reactions have been carried out.
    pub handled: Vec<EventPosition>,
}

/// The positions of one member, without time or locks.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    /// The last event of each other member that is on this bus, with the member's incarnation.
    received: HashMap<String, (String, u64)>,
    /// The former incarnations of each other member, the newest last.
    former: HashMap<String, VecDeque<String>>,
    /// The last event of each member whose reactions have been carried out.
    handled: HashMap<String, u64>,
    /// The newest received events by local sequence number, ascending.
    by_number: VecDeque<(u64, EventPosition)>,
    by_position: HashMap<EventPosition, u64>,
    /// The local sequence number up to which `handled` includes the progress of the local reactor.
    followed: u64,
}

impl Positions {
    /// Restores the stored positions after a restart.
    pub fn restore(stored: StoredPositions) -> Self {
        let mut positions = Positions { handled: stored.handled.into_iter().collect(), ..Self::default() };
        for (member, incarnation, seq) in stored.received {
            positions.received.insert(member, (incarnation, seq));
        }
        for (member, incarnation) in stored.former {
            positions.former.entry(member).or_default().push_back(incarnation);
        }
        positions
    }

    /// Returns the positions to store.
    pub fn stored(&self) -> StoredPositions {
        let received =
            self.received.iter().map(|(member, (incarnation, seq))| (member.clone(), incarnation.clone(), *seq));
        let former = self.former.iter().flat_map(|(member, incarnations)| {
            incarnations.iter().map(move |incarnation| (member.clone(), incarnation.clone()))
        });
        StoredPositions { received: received.collect(), former: former.collect(), handled: self.handled() }
    }

    /// Returns the positions up to which reactions are completed, by member.
    pub fn handled(&self) -> Vec<EventPosition> {
        let mut all: Vec<EventPosition> = self.handled.iter().map(|(member, seq)| (member.clone(), *seq)).collect();
        all.sort();
        all
    }

    /// Whether the reactions to an event have been carried out.
    pub fn is_handled(&self, member: &str, seq: u64) -> bool {
        self.handled.get(member).is_some_and(|handled| *handled >= seq)
    }

    /// Records the incarnation in a message of a member. A message `is_late` if the servers stored it long after it was
    /// sent: then somebody may have kept it, so it begins no new numbering.
    pub fn note_incarnation(&mut self, member: &str, incarnation: &str, is_late: bool) -> Incarnation {
        let previous = self.received.get(member).map(|(current, _)| current.clone());
        if previous.as_deref() == Some(incarnation) {
            return Incarnation::Current;
        }
        let former = self.former.get(member);
        if is_late || former.is_some_and(|former| former.iter().any(|former| former == incarnation)) {
            return Incarnation::Refused;
        }
        self.received.insert(member.to_owned(), (incarnation.to_owned(), 0));
        let Some(previous) = previous else { return Incarnation::Current };
        let former = self.former.entry(member.to_owned()).or_default();
        former.push_back(previous);
        if former.len() > MAX_FORMER {
            former.pop_front();
        }
        self.handled.remove(member);
        Incarnation::New
    }

    /// Whether an event is new here.
    pub fn is_new(&self, member: &str, seq: u64) -> bool {
        self.received.get(member).is_none_or(|(_, received)| *received < seq)
    }

    /// Records that an event of a member is on this bus as `number`.
    pub fn received(&mut self, member: &str, seq: u64, number: u64) {
        if let Some((_, received)) = self.received.get_mut(member) {
            *received = (*received).max(seq);
        }
        let position = (member.to_owned(), seq);
        self.by_position.insert(position.clone(), number);
        self.by_number.push_back((number, position));
        if self.by_number.len() > MAX_REMEMBERED
            && let Some((_, oldest)) = self.by_number.pop_front()
        {
            self.by_position.remove(&oldest);
        }
    }

    /// Records the positions that another member's reactor has reported.
    pub fn handled_elsewhere(&mut self, handled: &[EventPosition]) {
        for (member, seq) in handled {
            let newest = self.handled.entry(member.clone()).or_default();
            *newest = (*newest).max(*seq);
        }
    }

    /// Records that the local reactor has handled all events of this bus up to `number`. `own` is the name of this
    /// member.
    pub fn handled_here(&mut self, own: &str, number: u64) {
        let from = self.by_number.partition_point(|(local, _)| *local <= self.followed);
        let to = self.by_number.partition_point(|(local, _)| *local <= number);
        let positions: Vec<EventPosition> =
            self.by_number.range(from..to.max(from)).map(|(_, position)| position.clone()).collect();
        self.handled_elsewhere(&positions);
        self.followed = self.followed.max(number);
        self.handled_elsewhere(&[(own.to_owned(), number)]);
    }

    /// Returns the position of each member's last event up to a local sequence number, among the remembered ones.
    pub fn up_to(&self, own: &str, number: u64) -> Vec<EventPosition> {
        let to = self.by_number.partition_point(|(local, _)| *local <= number);
        let mut last: HashMap<String, u64> = self.handled.clone();
        for (_, (member, seq)) in self.by_number.range(..to) {
            let newest = last.entry(member.clone()).or_default();
            *newest = (*newest).max(*seq);
        }
        last.insert(own.to_owned(), number);
        last.into_iter().collect()
    }

    /// Returns the position of an event of this bus. An event without a remembered origin counts as this member's own.
    pub fn position(&self, own: &str, number: u64) -> EventPosition {
        let at = self.by_number.partition_point(|(local, _)| *local < number);
        match self.by_number.get(at) {
            Some((local, position)) if *local == number => position.clone(),
            _ => (own.to_owned(), number),
        }
    }

    /// Returns the local sequence number of an event, if it is remembered.
    pub fn number(&self, own: &str, position: &EventPosition) -> Option<u64> {
        if position.0 == own { Some(position.1) } else { self.by_position.get(position).copied() }
    }
}

#[cfg(test)]
mod tests;
