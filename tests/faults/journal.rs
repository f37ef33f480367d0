//! The journal as read back by `salt-run event_bus.since`.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use brine_value::Value;

use super::load::RETURNER;
use super::world::{MINION, World};

/// A page with fewer events is the last one.
const LAST_PAGE_SIZE: usize = 50;

/// Numbers with the times of their events, in milliseconds since 1970.
pub type Seen = HashMap<u64, Vec<u64>>;

#[derive(Default)]
pub struct Journal {
    next: u64,
    pub events: Seen,
    pub returns: Seen,
    pub reacted: Seen,
    pub pushed: Seen,
    pub hooks: Seen,
    /// Interrupted jobs that the minion reported after it was killed.
    pub interrupted: Seen,
    /// The sequence numbers of all events below `fault/`, in order.
    pub seqs: Vec<u64>,
}

impl Journal {
    /// Reads the journal until it is complete, or has no new events for `quiet`.
    pub async fn read(world: &World, quiet: Duration, complete: impl Fn(&Journal) -> bool) -> Result<Self, String> {
        let mut journal = Journal::default();
        let (mut count, mut last) = (0, Instant::now());
        loop {
            // Each call adds its own events to the journal, so that no page is empty.
            let at_end = journal.read_page(world).await? < LAST_PAGE_SIZE;
            if journal.count() > count {
                (count, last) = (journal.count(), Instant::now());
            }
            if at_end {
                if complete(&journal) || last.elapsed() > quiet {
                    return Ok(journal);
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// Returns the number of distinct items found so far.
    fn count(&self) -> usize {
        self.events.len() + self.returns.len() + self.reacted.len() + self.pushed.len() + self.hooks.len()
    }

    /// Reads the next page and returns the number of its events.
    async fn read_page(&mut self, world: &World) -> Result<usize, String> {
        let from = self.next.max(1).to_string();
        let page = world.runner(&["event_bus.since", &from, "limit=2000"]).await?;
        let page = page.as_list().ok_or("event_bus.since returned no list")?;
        for event in page {
            let seq = event.get("seq").and_then(Value::as_i64).and_then(|seq| u64::try_from(seq).ok());
            let seq = seq.ok_or("event_bus.since returned an event without a sequence number")?;
            if seq < self.next {
                return Err(format!("the sequence number {seq} was used twice"));
            }
            self.next = seq + 1;
            self.take(seq, event);
        }
        Ok(page.len())
    }

    fn take(&mut self, seq: u64, event: &Value) {
        let tag = event.get("tag").and_then(Value::as_str).unwrap_or_default();
        let data = event.get("data");
        let stamp = data.and_then(|data| data.get("_stamp")).and_then(Value::as_str).unwrap_or_default();
        let time = stamp.parse::<jiff::Timestamp>().map_or(0, |time| time.as_millisecond().max(0).cast_unsigned());
        let parts: Vec<&str> = tag.split('/').collect();
        let (seen, number) = match parts.as_slice() {
            ["fault", kind, number] => {
                self.seqs.push(seq);
                let seen = match *kind {
                    "event" | "local" | "runner" => &mut self.events,
                    "reacted" => &mut self.reacted,
                    "push" => &mut self.pushed,
                    _ => return,
                };
                (seen, number.parse().ok())
            }
            ["salt", "netapi", "hook", "fault", number] => (&mut self.hooks, number.parse().ok()),
            ["salt", "job", _, "ret", RETURNER] => {
                let number = data.and_then(|data| data.get("return")).and_then(Value::as_i64);
                (&mut self.returns, number.map(i64::cast_unsigned))
            }
            ["salt", "job", _, "ret", MINION] => {
                let field = |name: &str| data.and_then(|data| data.get(name));
                if !field("return").and_then(Value::as_str).is_some_and(|text| text.starts_with("The minion ended")) {
                    return;
                }
                // `echo NUMBER ...`
                let line = field("fun_args").and_then(Value::as_list).and_then(|args| args.first()?.as_str());
                (&mut self.interrupted, line.and_then(|line| line.split(' ').nth(1)?.parse().ok()))
            }
            _ => return,
        };
        if let Some(number) = number {
            seen.entry(number).or_default().push(time);
        }
    }
}
