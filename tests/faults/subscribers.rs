//! Slow subscribers of `master_event_pub.ipc`: some never read, some read slowly, one reads at once.

use std::sync::Arc;
use std::time::Duration;

use brine_event::Event;
use brine_value::map;
use brine_zmtp::{Limits, Push, Subscriber};

use super::record::Record;
use super::world::World;

/// The event after which all subscribers may stop reading.
const MARK: &str = "fault/mark/1";
const FLOOD: usize = 3000;
/// The maximum lag of the subscriber that reads at once.
const MAX_LAG: Duration = Duration::from_secs(10);

/// Floods the bus while subscribers lag. Returns the received sequence numbers of each slow reader.
pub async fn slow(world: &World, record: &Arc<Record>) -> Result<Vec<Vec<u64>>, String> {
    let failed = |error: brine_zmtp::TransportError| format!("a subscriber failed: {error}");
    let endpoint = world.publish_endpoint();
    let connect = || Subscriber::connect(&endpoint, &[b"fault/"], Limits::default());
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(connect().await.map_err(failed)?);
    }
    let mut readers = tokio::task::JoinSet::new();
    for pause in [200u64, 400] {
        let subscriber = connect().await.map_err(failed)?;
        readers.spawn(receive(subscriber, Duration::from_micros(pause)));
    }
    let prompt = tokio::spawn(receive(connect().await.map_err(failed)?, Duration::ZERO));
    let mut push = Push::connect(&world.pull_endpoint()).await.map_err(failed)?;
    for number in 0..FLOOD {
        let body = map! {"number" => number as u64, "filler" => "x".repeat(1000)};
        push.push(Event::from_map(&format!("fault/flood/{number}"), &body).unwrap().frame());
        if push.waiting() > 65_536 {
            push.flush().await.map_err(failed)?;
        }
    }
    record.more_events(50, super::fault::RECOVERY).await?;
    push.send(Event::from_map(MARK, &map! {}).unwrap().frame()).await.map_err(failed)?;
    let received = tokio::time::timeout(MAX_LAG, prompt).await;
    let first = received.map_err(|_| "a subscriber that reads at once is held up by slow ones".to_owned())?;
    let mut all = vec![first.map_err(|error| error.to_string())??];
    let rest = async {
        while let Some(received) = readers.join_next().await {
            all.push(received.map_err(|error| error.to_string())??);
        }
        Ok(all)
    };
    let limit = super::fault::RECOVERY;
    tokio::time::timeout(limit, rest)
        .await
        .map_err(|_| "a slow subscriber does not receive the last event".to_owned())?
}

/// Receives up to the mark, with a pause after each event.
async fn receive(mut subscriber: Subscriber, pause: Duration) -> Result<Vec<u64>, String> {
    let mut seqs = Vec::new();
    loop {
        let frames = subscriber.recv().await.map_err(|error| format!("a slow subscriber was cut off: {error}"))?;
        let event = Event::from_frame(frames[0].clone()).map_err(|error| error.to_string())?;
        let seq = event.data().get("_seq").and_then(brine_value::Value::as_i64).ok_or("an event has no _seq")?;
        seqs.push(seq.cast_unsigned());
        if event.tag() == MARK {
            return Ok(seqs);
        }
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}
