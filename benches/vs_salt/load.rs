//! The load for measurements of the reactor: publishes events on a Brine master's bus, subscribes to the events of the
//! reactions, and prints their number and latencies. `load.py` does the same for Salt.
//!
//!     cargo run --release --example load -- --sock /var/run/salt/master --count 100000
//!
//! Every event carries a number, `id`; the reaction is expected to call a runner with that number as the keyword
//! argument `id`. The result is one line of JSON.
#![allow(missing_docs)]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use brine_bus::SocketNames;
use brine_event::{Event, split};
use brine_value::{Map, Value, list, map, msgpack};
use brine_zmtp::{Limits, Push, Subscriber};
use clap::Parser;

/// Publishes events and waits for their reactions.
#[derive(Debug, Clone, Parser)]
struct Load {
    /// The master's sock_dir.
    #[arg(long)]
    sock: PathBuf,
    /// The number of events.
    #[arg(long)]
    count: usize,
    /// The number of events per second (default: as fast as possible).
    #[arg(long)]
    rate: Option<f64>,
    /// The number of tags.
    #[arg(long, default_value_t = 16)]
    tags: usize,
    /// Only the last event of each tag has a reaction, by its field `last`: for entries that render to nothing.
    #[arg(long)]
    last_only: bool,
    /// Also publish the events of the reactions and wait for these: measures the limit of this client and the bus.
    #[arg(long)]
    echo: bool,
    /// The number of seconds without any reaction after which the remaining ones count as lost.
    #[arg(long, default_value_t = 30.0)]
    patience: f64,
}

/// The size of a batch when events are published as fast as possible.
const BATCH: usize = 64 << 10;

/// The time of each event in nanoseconds since `began`; 0 before it is published and after its reaction was received.
struct Stamps {
    began: Instant,
    published: Vec<AtomicU64>,
}

impl Stamps {
    fn set(&self, id: usize, at: Instant) {
        let since = at.saturating_duration_since(self.began).as_nanos() as u64;
        self.published[id].store(since.max(1), Ordering::Release);
    }

    /// Returns the time since the event was published; `None` if it was not, or its reaction was received before.
    fn take(&self, id: usize) -> Option<Duration> {
        let published = self.published.get(id)?.swap(0, Ordering::AcqRel);
        (published > 0).then(|| self.began.elapsed().saturating_sub(Duration::from_nanos(published)))
    }
}

/// A packed event with placeholders for its number, so that publishing costs a copy and no packing.
struct Template {
    frame: Vec<u8>,
    holes: Vec<usize>,
}

impl Template {
    /// `u64::MAX` in `body` is a placeholder.
    fn new(tag: &str, body: &Map) -> anyhow::Result<Self> {
        let frame = Event::from_map(tag, body)?.frame().to_vec();
        let holes = frame.windows(9).enumerate().filter(|(_, bytes)| bytes[0] == 0xcf && bytes[1..] == [0xff; 8]);
        let holes = holes.map(|(at, _)| at + 1).collect();
        Ok(Template { frame, holes })
    }

    fn fill(&mut self, id: usize) -> &[u8] {
        for &hole in &self.holes {
            self.frame[hole..hole + 8].copy_from_slice(&(id as u64).to_be_bytes());
        }
        &self.frame
    }
}

/// The events for one number.
struct Templates {
    plain: Vec<Template>,
    last: Vec<Template>,
    echo: Vec<Template>,
}

impl Templates {
    fn new(load: &Load) -> anyhow::Result<Self> {
        let events = |last: bool| -> anyhow::Result<Vec<Template>> {
            let body = map! {"data" => "x".repeat(100), "last" => last, "id" => Value::UInt(u64::MAX)};
            (0..load.tags).map(|tag| Template::new(&format!("bench/go/{tag}"), &body)).collect()
        };
        let mut call = map! {
            "fun" => "runner.test.arg",
            "fun_args" => list![map! {"id" => Value::UInt(u64::MAX)}],
            "jid" => "20260101000000000000",
            "user" => "Reactor",
            "_cause" => 1_000_000,
            "_sls" => "/srv/reactor/go.sls",
        };
        let start = Template::new("salt/run/20260101000000000000/new", &call)?;
        call.insert("return".into(), map! {"args" => list![], "kwargs" => map! {"id" => Value::UInt(u64::MAX)}}.into());
        call.insert("success".into(), true.into());
        let end = Template::new("salt/run/20260101000000000000/ret", &call)?;
        let echo = if load.echo { vec![start, end] } else { Vec::new() };
        Ok(Templates { plain: events(false)?, last: events(true)?, echo })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut load = Load::parse();
    load.tags = load.tags.clamp(1, load.count.max(1));
    let expected = if load.last_only { load.tags } else { load.count };
    let names = SocketNames::master();
    let endpoint = names.publish_endpoint(&load.sock);
    let mut subscriber = Subscriber::connect(&endpoint, &[b"salt/run/"], Limits::default()).await?;
    let published = std::iter::repeat_with(AtomicU64::default).take(load.count).collect();
    let stamps = Arc::new(Stamps { began: Instant::now(), published });
    let publisher = thread::spawn({
        let (load, stamps) = (load.clone(), Arc::clone(&stamps));
        move || publish(&load, &stamps)
    });

    let (mut took, mut again, mut last) = (Vec::with_capacity(expected), 0, stamps.began);
    while took.len() < expected {
        let patience = Duration::from_secs_f64(load.patience);
        let Ok(frames) = tokio::time::timeout(patience, subscriber.recv()).await else { break };
        let Some(id) = frames?.first().and_then(|frame| number_of(frame)) else { continue };
        match stamps.take(id) {
            Some(time) => took.push(time),
            None => again += 1,
        }
        last = Instant::now();
    }
    let duration = if took.len() < expected && !publisher.is_finished() {
        anyhow::bail!("the bus accepts no more events: {} of {expected} reactions were seen", took.len());
    } else {
        publisher.join().map_err(|_| anyhow::anyhow!("the publishing thread panicked"))??
    };
    took.sort_unstable();
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).map(|time| time.as_secs_f64() * 1000.0);
    let result = serde_json::json!({
        "fired": load.count, "expected": expected, "seen": took.len(), "again": again,
        "seconds": (last - stamps.began).as_secs_f64(), "firing": duration.as_secs_f64(),
        "median": at(0.5), "p99": at(0.99), "p999": at(0.999),
        "max": took.last().map(|time| time.as_secs_f64() * 1000.0),
    });
    println!("{result}");
    Ok(())
}

/// Publishes all events and returns the duration.
fn publish(load: &Load, stamps: &Stamps) -> anyhow::Result<Duration> {
    // Reduces the timer slack, so that sleeps of a few microseconds do not take sixty.
    nix::sys::prctl::set_timerslack(1)?;
    let mut templates = Templates::new(load)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let endpoint = SocketNames::master().pull_endpoint(&load.sock);
    let mut push = runtime.block_on(Push::connect(&endpoint)).context("cannot reach the bus")?;
    for id in 0..load.count {
        let mut now = Instant::now();
        if let Some(rate) = load.rate {
            // The latency counts from the time when the event is due, including waiting for a slow bus.
            let due = stamps.began + Duration::from_secs_f64(id as f64 / rate);
            if due > now {
                runtime.block_on(push.flush())?;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            now = due;
        }
        if push.waiting() > BATCH {
            runtime.block_on(push.flush())?;
        }
        stamps.set(id, now);
        let is_last = load.last_only && id + load.tags >= load.count;
        let events = if is_last { &mut templates.last } else { &mut templates.plain };
        push.push(events[id % load.tags].fill(id));
        for event in &mut templates.echo {
            push.push(event.fill(id));
        }
    }
    runtime.block_on(push.flush())?;
    Ok(stamps.began.elapsed())
}

/// Returns the number in the event of a finished reaction.
fn number_of(frame: &[u8]) -> Option<usize> {
    let (tag, body) = split(frame)?;
    if !tag.ends_with(b"/ret") {
        return None;
    }
    let mut arguments = None;
    msgpack::scan(body, |entry| {
        if entry.key == Some("fun_args") {
            arguments = Some(entry.value);
        }
    })
    .ok()?;
    let arguments = msgpack::unpack(arguments?).ok()?;
    usize::try_from(arguments.as_list()?.first()?.as_map()?.get("id")?.as_i64()?).ok()
}
