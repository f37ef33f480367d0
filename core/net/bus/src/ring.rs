//! The newest events, in memory.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use brine_event::{Event, EventError};

use super::BusLimits;
use crate::store::StoreError;

/// The maximum number of recorded ranges of events that failed to be persisted.
const FAILURES: usize = 64;

pub(super) struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    limits: BusLimits,
    /// Whether events must be persisted before they may be removed from the ring.
    is_persistent: bool,
    /// The number of the next event.
    pub next: u64,
    /// The number up to which all events are persisted or have failed to be.
    pub persisted: u64,
    /// The last number that may be issued, as it is reserved on disk.
    pub reserved: u64,
    failures: VecDeque<(u64, u64, StoreError)>,
    /// Whether the bus rejects further events.
    pub closed: bool,
    /// Whether the journal has stopped writing.
    pub stopped: bool,
    stamps: Stamps,
}

impl Ring {
    pub fn new(limits: BusLimits, is_persistent: bool, next: u64, reserved: u64) -> Self {
        Ring {
            events: VecDeque::new(),
            bytes: 0,
            limits,
            is_persistent,
            next,
            persisted: next - 1,
            reserved,
            failures: VecDeque::new(),
            closed: false,
            stopped: false,
            stamps: Stamps::default(),
        }
    }

    /// Returns the number of the oldest event, or of the next one if the ring is empty.
    pub fn first(&self) -> u64 {
        self.events.front().map_or(self.next, Event::seq)
    }

    /// Whether the next event would remove one that is not persisted yet.
    pub fn is_full(&self) -> bool {
        let over = self.events.len() >= self.limits.ring_events || self.bytes >= self.limits.ring_bytes;
        self.is_persistent && over && self.first() > self.persisted
    }

    /// Adds an event and assigns its number.
    pub fn push(&mut self, event: &Event) -> Result<u64, EventError> {
        let seq = self.next;
        let event = event.stamped(seq, self.stamps.now())?;
        self.next += 1;
        self.bytes += event.frame().len();
        self.events.push_back(event);
        while self.events.len() > self.limits.ring_events || self.bytes > self.limits.ring_bytes {
            match self.events.front() {
                // One event always stays, however large it is.
                Some(oldest) if self.events.len() > 1 && (!self.is_persistent || oldest.seq() <= self.persisted) => {
                    self.bytes -= oldest.frame().len();
                    self.events.pop_front();
                }
                _ => break,
            }
        }
        Ok(seq)
    }

    /// Returns up to `limit` events from this number on; `None` if the first of them was removed.
    pub fn from(&self, seq: u64, limit: usize) -> Option<Vec<Event>> {
        let first = self.first();
        let skip = usize::try_from(seq.checked_sub(first)?).ok()?;
        Some(self.events.iter().skip(skip).take(limit).cloned().collect())
    }

    /// Whether all reserved numbers are issued.
    pub fn is_out_of_numbers(&self) -> bool {
        self.next > self.reserved
    }

    /// Records that the journal failed to write the events from `first` to `last`. An outage is one range, with its
    /// latest error.
    pub fn failed(&mut self, first: u64, last: u64, error: StoreError) {
        if let Some((_, end, latest)) = self.failures.back_mut()
            && *end + 1 == first
        {
            (*end, *latest) = (last, error);
            return;
        }
        if self.failures.len() == FAILURES {
            self.failures.pop_front();
        }
        self.failures.push_back((first, last, error));
    }

    /// Returns the error if this event failed to be persisted.
    pub fn failure(&self, seq: u64) -> Option<StoreError> {
        let failure = self.failures.iter().find(|(first, last, _)| (*first..=*last).contains(&seq));
        failure.map(|(.., error)| error.clone())
    }
}

/// Formats timestamps. Usually only the microseconds change, so the rest is cached.
#[derive(Default)]
struct Stamps {
    second: u64,
    text: String,
}

impl Stamps {
    fn now(&mut self) -> &str {
        use std::fmt::Write;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.second != now.as_secs() || self.text.is_empty() {
            self.second = now.as_secs();
            let time = jiff::Timestamp::from_second(now.as_secs().cast_signed()).unwrap_or_default();
            self.text = brine_event::stamp_of(time);
        }
        self.text.truncate("2026-11-21T01:02:03.".len());
        // Writing into a `String` cannot fail.
        _ = write!(self.text, "{:06}+00:00", now.subsec_micros());
        &self.text
    }
}
