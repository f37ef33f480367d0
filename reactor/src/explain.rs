//! The tree for `reactor.explain`: the causes of an event, its consequences, and why it has no reaction.

use std::collections::{BTreeMap, HashMap, HashSet};

use brine_bus::store::StoreError;
use brine_bus::{Bus, TimeOrSeq};
use brine_event::Event;
use brine_ids::Jid;
use brine_runtime::executors::MayBlock;
use brine_value::{FromValue, Value, msgpack};

use crate::Reactor;
use crate::diagnose::Note;
use crate::history::{Outcome, ReactionRecord, Returns, event_at, reaction_of, stamp};

/// The number of events read at once.
const PAGE: usize = 4096;
/// The maximum number of lines of a tree.
const LINES: usize = 2000;

/// The error of an event that cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal has no event of this sequence number.
    #[error("the journal has no event {seq}: it holds {first} to {last} (event_journal_hours, event_journal_size)")]
    NoEvent {
        /// The sequence number.
        seq: u64,
        /// The sequence number of the oldest event.
        first: u64,
        /// The sequence number of the newest event.
        last: u64,
    },
    /// The journal has no such job.
    #[error("the journal has no job {0}: it keeps event_journal_hours and event_journal_size")]
    NoJob(String),
    /// The argument is neither a sequence number nor a job id.
    #[error("'{0}' is neither an event's sequence number nor a job id")]
    Unreadable(String),
}

impl Reactor {
    /// Returns the tree around an event's sequence number or a job id, as text: its causes, its consequences, and
    /// skipped reactions. Reads the journal, so it needs a thread that may block.
    pub fn explain(&self, thread: &MayBlock, bus: &Bus, what: &str) -> Result<String, ExplainError> {
        let around = self.around(thread, bus, what)?;
        Ok(around.tree.draw(&around.root, around.requested))
    }

    /// Reads the tree around an event's sequence number or a job id.
    pub(crate) fn around(&self, thread: &MayBlock, bus: &Bus, what: &str) -> Result<EventTree, ExplainError> {
        let requested = match (what.parse::<Jid>(), what.parse::<u64>()) {
            (Ok(jid), _) => of_job(thread, bus, &jid)?.ok_or_else(|| ExplainError::NoJob(what.to_owned()))?,
            (_, Ok(seq)) => match event_at(thread, bus, seq)? {
                Some(event) => event,
                None => return Err(no_event(thread, bus, seq)?),
            },
            _ => return Err(ExplainError::Unreadable(what.to_owned())),
        };
        let mut root = requested.clone();
        // Causes are older than their consequences, so this ends.
        while let Some(cause) = cause_of(&root).filter(|cause| *cause < root.seq()) {
            match event_at(thread, bus, cause)? {
                Some(event) => root = event,
                None => break,
            }
        }
        let mut tree = Tree::read(thread, bus, &root, requested.seq())?;
        tree.note(&root, |event, reacted| {
            if event.seq() == requested.seq() { self.diagnose(bus, event, reacted) } else { self.skips(event.seq()) }
        });
        Ok(EventTree { tree, root, requested: requested.seq() })
    }
}

/// The tree of causes and consequences that contains an event.
pub(crate) struct EventTree {
    pub tree: Tree,
    /// The first cause.
    pub root: Event,
    /// The sequence number of the requested event.
    pub requested: u64,
}

fn no_event(thread: &MayBlock, bus: &Bus, seq: u64) -> Result<ExplainError, StoreError> {
    let first = bus.read(thread, TimeOrSeq::Seq(1), 1)?.first().map_or(0, Event::seq);
    Ok(ExplainError::NoEvent { seq, first, last: bus.last_seq() })
}

fn cause_of(event: &Event) -> Option<u64> {
    field(event, "_cause").as_ref().and_then(u64::from_value)
}

/// Reads one field without decoding the others.
fn field(event: &Event, name: &str) -> Option<Value> {
    let mut value = None;
    _ = msgpack::scan(event.body(), |entry| {
        if entry.key == Some(name) {
            value = msgpack::unpack(entry.value).ok();
        }
    });
    value
}

/// Reads the `new` event of a job or call.
fn of_job(thread: &MayBlock, bus: &Bus, jid: &Jid) -> Result<Option<Event>, StoreError> {
    let tags = ["job", "run", "wheel"].map(|kind| format!("salt/{kind}/{jid}/new"));
    let zoned = jid.time().and_then(|time| time.to_zoned(brine_clock::zone()).ok());
    // The event is published shortly after its job id is created.
    let micros = zoned.and_then(|zoned| u64::try_from(zoned.timestamp().as_microsecond()).ok()).unwrap_or(0);
    let mut events = bus.read(thread, TimeOrSeq::Time(micros.saturating_sub(1_000_000)), PAGE)?;
    if events.is_empty() {
        events = bus.read(thread, TimeOrSeq::Seq(1), PAGE)?;
    }
    while let Some(last) = events.last().map(Event::seq) {
        if let Some(event) = events.into_iter().find(|event| tags.iter().any(|tag| tag == event.tag())) {
            return Ok(Some(event));
        }
        events = bus.read(thread, TimeOrSeq::Seq(last + 1), PAGE)?;
    }
    Ok(None)
}

/// A node below an event.
pub(crate) enum Node {
    Reaction(ReactionRecord),
    Event(Event),
    Note(String),
}

impl Node {
    /// Returns the entry or rule of a reaction.
    fn entry(&self) -> Option<String> {
        match self {
            Node::Reaction(record) => Some(record.entry.clone()),
            Node::Event(_) | Node::Note(_) => None,
        }
    }
}

/// The consequences of an event.
pub(crate) struct Tree {
    below: BTreeMap<u64, Vec<Node>>,
    returns: Returns,
    /// Whether further consequences are left out.
    pub is_cut: bool,
}

impl Tree {
    /// Reads the consequences of an event. Returns are merged into their jobs, except for the requested event.
    fn read(thread: &MayBlock, bus: &Bus, root: &Event, requested: u64) -> Result<Self, StoreError> {
        let mut tree = Tree { below: BTreeMap::new(), returns: Returns::default(), is_cut: false };
        let mut seqs = HashSet::from([root.seq()]);
        let mut jobs: HashMap<String, u64> = HashMap::new();
        let mut at = root.seq() + 1;
        loop {
            let events = bus.read(thread, TimeOrSeq::Seq(at), PAGE)?;
            let Some(last) = events.last() else { return Ok(tree) };
            at = last.seq() + 1;
            for event in events {
                let Some(cause) = cause_of(&event).filter(|cause| seqs.contains(cause)) else {
                    // Returns of older minions do not carry the cause of their job.
                    if event.tag().split('/').nth(2).is_some_and(|jid| jobs.contains_key(jid)) {
                        tree.returns.record(&event);
                    }
                    continue;
                };
                if seqs.len() > LINES {
                    tree.is_cut = true;
                    return Ok(tree);
                }
                seqs.insert(event.seq());
                if tree.returns.record(&event) && event.seq() != requested {
                    continue;
                }
                let seq = event.seq();
                let node = match reaction_of(&event) {
                    Some((_, record)) => {
                        jobs.extend(record.jid.clone().map(|jid| (jid, seq)));
                        Node::Reaction(record)
                    }
                    None => Node::Event(event),
                };
                // Events of a call are below the call, not beside it.
                let jid = match &node {
                    Node::Event(event) => field(event, "_jid").map(|jid| jid.to_string()),
                    Node::Reaction(_) | Node::Note(_) => None,
                };
                let parent = jid.and_then(|jid| jobs.get(&jid).copied()).unwrap_or(cause);
                tree.below.entry(parent).or_default().push(node);
            }
        }
    }

    /// Adds notes about skipped reactions to the events of the tree. `notes` receives an event, and the entries and
    /// rules whose reactions to it are recorded.
    fn note(&mut self, root: &Event, notes: impl Fn(&Event, &[String]) -> Vec<Note>) {
        let mut events = vec![root.clone()];
        events.extend(self.below.values().flatten().filter_map(|node| match node {
            Node::Event(event) => Some(event.clone()),
            Node::Reaction(_) | Node::Note(_) => None,
        }));
        for event in events {
            let nodes = self.below.entry(event.seq()).or_default();
            let reacted: Vec<String> = nodes.iter().filter_map(Node::entry).collect();
            nodes.extend(notes(&event, &reacted).iter().map(|note| Node::Note(note.text())));
        }
    }

    fn draw(&self, root: &Event, requested: u64) -> String {
        let mut lines = vec![self.event(root, requested)];
        self.branch(root.seq(), "", requested, &mut lines);
        lines.join("\n")
    }

    /// Returns the nodes below an event or reaction, in the order of their sequence numbers.
    pub fn below(&self, seq: u64) -> &[Node] {
        self.below.get(&seq).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the result of a reaction, with the returns of its job.
    pub fn outcome(&self, record: &ReactionRecord) -> Outcome {
        match &record.jid {
            Some(jid) => Outcome { minions: record.outcome.minions.clone(), ..self.returns.of(jid) },
            None => record.outcome.clone(),
        }
    }

    fn branch(&self, seq: u64, indent: &str, requested: u64, lines: &mut Vec<String>) {
        let nodes = self.below(seq);
        for (index, node) in nodes.iter().enumerate() {
            let is_last = index + 1 == nodes.len();
            let (fork, more) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let (text, at) = match node {
                Node::Reaction(record) => (self.reaction(record, requested), Some(record.seq)),
                Node::Event(event) => (self.event(event, requested), Some(event.seq())),
                Node::Note(text) => (text.clone(), None),
            };
            lines.push(format!("{indent}{fork}{text}"));
            if let Some(at) = at {
                self.branch(at, &format!("{indent}{more}"), requested, lines);
            }
        }
    }

    fn reaction(&self, record: &ReactionRecord, requested: u64) -> String {
        let outcome = self.outcome(record);
        let mark = if record.seq == requested { "  <--" } else { "" };
        if outcome.error.is_some() {
            return format!("{}: {}{mark}", record.entry, outcome.text());
        }
        let jid = record.jid.as_deref().unwrap_or_default();
        format!("{} {} -> {}  jid {jid}  {}{mark}", time(&record.started), record.file, record.reaction, outcome.text())
    }

    fn event(&self, event: &Event, requested: u64) -> String {
        let data = event.data();
        let mut text = format!("{} {} {}", event.seq(), time(&stamp(&data)), event.tag());
        for name in ["id", "act", "fun", "tgt"] {
            if let Some(value) = data.get(name).filter(|value| !value.is_nil()) {
                text += &format!(" {name}={value}");
            }
        }
        let mark = if event.seq() == requested { "  <--" } else { "" };
        text + mark
    }
}

/// Returns the time of day of a stamp, to the millisecond.
fn time(stamp: &str) -> &str {
    stamp.get(11..23).unwrap_or(stamp)
}
