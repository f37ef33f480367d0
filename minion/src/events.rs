//! The minion's own event bus: firing into it from other processes, and acting on what is fired for the
//! minion itself.

use std::sync::Arc;

use brine_core::bus::{Bus, Filter, SocketNames, Start};
use brine_core::config::MinionConfig;
use brine_core::event::Event;
use brine_core::transport::Push;
use brine_core::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::daemon::Connected;

/// Pushes an event into the bus of the minion that runs on this host with this configuration.
pub async fn push(config: &MinionConfig, id: &str, tag: &str, data: &Map) -> Result<(), String> {
    let endpoint = SocketNames::minion(id).pull_endpoint(&config.sock_dir);
    let event = Event::from_map(tag, data).map_err(|error| error.to_string())?;
    let missing = |error| format!("the minion's event bus cannot be reached ({error}): does salt-minion run here?");
    let mut push = Push::connect(&endpoint).await.map_err(missing)?;
    push.send(event.frame()).await.map_err(|error| error.to_string())
}

/// Acts on the events that Salt's own tools fire for a minion: `fire_master` goes on to the master,
/// `pillar_refresh` and `grains_refresh` do what they say.
pub async fn follow(connected: Arc<Connected>, bus: Bus, shutdown: CancellationToken) {
    let filter = Filter::Prefixes(
        ["fire_master\n\n", "pillar_refresh\n\n", "grains_refresh\n\n"].map(|prefix| prefix.as_bytes().into()).into(),
    );
    let Ok(mut events) = bus.subscribe(filter, Start::Now) else { return };
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = shutdown.cancelled() => return,
        };
        let Some(event) = event else { return };
        let done = match event.tag() {
            "fire_master" => forward(&connected, &event.data()).await,
            "grains_refresh" => {
                connected.refresh_grains().await;
                connected.refresh_pillar().await.map_err(|error| error.to_string())
            }
            _ => connected.refresh_pillar().await.map_err(|error| error.to_string()),
        };
        if let Err(error) = done {
            tracing::error!(tag = event.tag(), error, "an event for the minion itself could not be acted on");
        }
    }
}

/// Hands on one event, or several, that were fired for the master.
async fn forward(connected: &Connected, data: &Map) -> Result<(), String> {
    let text = |map: &Map, name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
    let several = data.get("events").and_then(Value::as_list).unwrap_or_default();
    for event in several.iter().filter_map(Value::as_map) {
        let tag = text(event, "tag").ok_or("an event has no tag")?;
        let tag = text(data, "pretag").map_or_else(|| tag.clone(), |pretag| format!("{pretag}/{tag}"));
        connected.fire(&tag, event.get("data").cloned().unwrap_or_default(), &Map::new()).await?;
    }
    match text(data, "tag") {
        Some(tag) => connected.fire(&tag, data.get("data").cloned().unwrap_or_default(), &Map::new()).await,
        None if several.is_empty() => Err("the event has no tag".to_owned()),
        None => Ok(()),
    }
}
