//! The progress of each member: the events received here, those the reactor has handled, and their sequence numbers on
//! both buses.

use std::collections::{HashMap, VecDeque};

use crate::message::EventPosition;

/// The maximum number of received events whose local sequence numbers are remembered.
const MAX_REMEMBERED: usize = 65_536;

/// The positions of one member, without time or locks.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    /// The last event of each other member that is on this bus, with the member's incarnation.
    received: HashMap<String, (String, u64)>,
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
    pub fn restore(received: Vec<(String, String, u64)>, handled: Vec<EventPosition>) -> Self {
        Positions {
            received: received.into_iter().map(|(member, incarnation, seq)| (member, (incarnation, seq))).collect(),
            handled: handled.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Returns the positions to store: received events and handled ones.
    pub fn stored(&self) -> (Vec<(String, String, u64)>, Vec<EventPosition>) {
        let received =
            self.received.iter().map(|(member, (incarnation, seq))| (member.clone(), incarnation.clone(), *seq));
        (received.collect(), self.handled())
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

    /// Records the incarnation in a message of a member. Returns whether the member has lost its store and starts anew.
    pub fn note_incarnation(&mut self, member: &str, incarnation: &str) -> bool {
        let begins = self.received.get(member).is_some_and(|(known, _)| known != incarnation);
        if begins || !self.received.contains_key(member) {
            self.received.insert(member.to_owned(), (incarnation.to_owned(), 0));
        }
        if begins {
            self.handled.remove(member);
        }
        begins
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
            let known = self.handled.entry(member.clone()).or_default();
            *known = (*known).max(*seq);
        }
    }

    /// Records that the local reactor has handled all events of this bus up to `number`. `own` is the name of this
    /// member.
    pub fn handled_here(&mut self, own: &str, number: u64) {
        let from = self.by_number.partition_point(|(known, _)| *known <= self.followed);
        let to = self.by_number.partition_point(|(known, _)| *known <= number);
        let positions: Vec<EventPosition> =
            self.by_number.range(from..to.max(from)).map(|(_, position)| position.clone()).collect();
        self.handled_elsewhere(&positions);
        self.followed = self.followed.max(number);
        self.handled_elsewhere(&[(own.to_owned(), number)]);
    }

    /// Returns the position of each member's last event up to a local sequence number, among the remembered ones.
    pub fn up_to(&self, own: &str, number: u64) -> Vec<EventPosition> {
        let to = self.by_number.partition_point(|(known, _)| *known <= number);
        let mut last: HashMap<String, u64> = self.handled.clone();
        for (_, (member, seq)) in self.by_number.range(..to) {
            let known = last.entry(member.clone()).or_default();
            *known = (*known).max(*seq);
        }
        last.insert(own.to_owned(), number);
        last.into_iter().collect()
    }

    /// Returns the position of an event of this bus. An event without a remembered origin counts as this member's own.
    pub fn position(&self, own: &str, number: u64) -> EventPosition {
        let at = self.by_number.partition_point(|(known, _)| *known < number);
        match self.by_number.get(at) {
            Some((known, position)) if *known == number => position.clone(),
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
