//! Handles events on the minion's own bus that are addressed to the minion.

use std::sync::Arc;

use brine_bus::{Bus, Filter, Start};
use brine_context::MasterEvent;
use brine_context::local_bus::{MODULES_REFRESHED, PILLAR_REFRESHED, QUESTION};
use brine_event::{Event, SEQ, STAMP};
use brine_value::{Map, Value, map};
use tokio_util::sync::CancellationToken;

use crate::{beacons, schedule};

/// The events that query or change beacons or the schedule.
const MANAGE_BEACONS: &str = "manage_beacons";
const MANAGE_SCHEDULE: &str = "manage_schedule";

/// The kind of events that a subscriber handles. Events that wait for the master do not block the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Refreshes of pillar, grains and custom modules: each master has its own pillar.
    Refresh,
    /// Events that are forwarded to the master.
    ForMaster,
}

impl Kind {
    fn tags(self) -> &'static [&'static str] {
        match self {
            Kind::Refresh => &["pillar_refresh", "grains_refresh", "module_refresh"],
            Kind::ForMaster => &["fire_master", beacons::RETURN, schedule::RETURN],
        }
    }
}

/// A session with a master, as far as events on the minion's own bus use it.
pub(crate) trait MasterSession: Send + Sync + 'static {
    /// Whether there is or was a session.
    fn was_ready(&self) -> bool;
    /// Queues an event for the master's bus. It is retried until the master accepts it.
    fn queue_event(&self, event: &MasterEvent);
    /// Queues events of beacons, each with `tag` and `data`.
    fn queue_beacon_events(&self, events: Value);
    /// Queues a return, in a task of its own.
    fn queue_return(self: &Arc<Self>, load: Map);
    /// Reloads the custom modules of the minion.
    fn refresh_modules(&self);
    /// Collects the grains again. Returns whether they have changed.
    fn refresh_grains(&self) -> impl Future<Output = bool> + Send;
    /// Requests the pillar, or renders that of this host.
    fn refresh_pillar(&self) -> impl Future<Output = Result<(), String>> + Send;
}

/// Handles the events that Salt's tools and the minion's own components publish for a minion. `fire_master`, beacon
/// events and returns of the schedule are forwarded to the master; `pillar_refresh` and `grains_refresh` refresh pillar
/// and grains; `module_refresh` reloads custom modules. As in Salt, an event tells that a refresh is complete.
pub(crate) async fn follow<S: MasterSession>(kind: Kind, session: Arc<S>, bus: Bus, shutdown: CancellationToken) {
    let prefixes = kind.tags().iter().map(|tag| format!("{tag}\n\n").into()).collect();
    let Ok(mut events) = bus.subscribe(Filter::Prefixes(prefixes), Start::Now) else { return };
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = shutdown.cancelled() => return,
        };
        let Some(event) = event else { return };
        let result = match event.tag() {
            "fire_master" => forward(&*session, &event.data()),
            beacons::RETURN if !session.was_ready() => {
                tracing::debug!("there was no master yet: events of beacons stay on the minion's own bus");
                Ok(())
            }
            beacons::RETURN => {
                session.queue_beacon_events(event.data().swap_remove("beacons").unwrap_or_default());
                Ok(())
            }
            schedule::RETURN => {
                let mut load = event.data();
                load.retain(|name, _| !matches!(name.as_str(), Some(SEQ | STAMP)));
                // The next event does not wait until the return is queued.
                session.queue_return(load);
                Ok(())
            }
            "module_refresh" => {
                session.refresh_modules();
                if event.data().get("notify").is_some_and(Value::is_truthy) {
                    completed(&bus, MODULES_REFRESHED, &event).await
                } else {
                    Ok(())
                }
            }
            "grains_refresh" => {
                session.refresh_modules();
                let has_changed = session.refresh_grains().await;
                // `grains_refresh_every` asks for a new pillar only if it may differ.
                match event.data().get("force_refresh") {
                    Some(Value::Bool(false)) if !has_changed => Ok(()),
                    _ => refresh_pillar(&*session, &bus, &event).await,
                }
            }
            _ => refresh_pillar(&*session, &bus, &event).await,
        };
        if let Err(error) = result {
            tracing::error!(tag = event.tag(), error, "handling an event of the minion's own bus failed");
        }
    }
}

async fn refresh_pillar(session: &impl MasterSession, bus: &Bus, event: &Event) -> Result<(), String> {
    session.refresh_pillar().await?;
    completed(bus, PILLAR_REFRESHED, event).await
}

/// Tells that what an event has asked for is complete.
async fn completed(bus: &Bus, tag: &str, event: &Event) -> Result<(), String> {
    reply(bus, &event.data(), Some((tag.to_owned(), map! {"complete" => true}))).await
}

/// Answers `manage_beacons` and `manage_schedule`.
pub(crate) async fn follow_queries(host: Arc<schedule::MinionSchedule>, shutdown: CancellationToken) {
    let prefixes = [MANAGE_BEACONS, MANAGE_SCHEDULE].map(|tag| format!("{tag}\n\n").into()).to_vec();
    let Ok(mut events) = host.bus.subscribe(Filter::Prefixes(prefixes), Start::Now) else { return };
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = shutdown.cancelled() => return,
        };
        let Some(event) = event else { return };
        if let Err(error) = manage(&host, &event).await {
            tracing::error!(tag = event.tag(), error, "handling an event of the minion's own bus failed");
        }
    }
}

/// Answers a query about beacons or the schedule, and applies its changes.
pub(crate) async fn manage(host: &Arc<schedule::MinionSchedule>, event: &Event) -> Result<(), String> {
    let (question, is_about_beacons) = (event.data(), event.tag() == MANAGE_BEACONS);
    let this = host.leader.minion();
    // Both may write a file.
    let answered = host.pool.executors().disk.run(move |_| {
        if is_about_beacons {
            let reply = beacons::answer(&this, &question);
            return (question, schedule::Answer { reply, run: None });
        }
        let answer = schedule::answer(&this, &question);
        (question, answer)
    });
    let (question, answer) = answered.await.map_err(|error| error.to_string())?;
    if let Some(job) = answer.run {
        brine_schedule::start(host, job);
    }
    reply(&host.bus, &question, answer.reply).await
}

/// Publishes the reply to a query.
async fn reply(bus: &Bus, question: &Map, answer: Option<(String, Map)>) -> Result<(), String> {
    let Some((tag, mut fields)) = answer else { return Ok(()) };
    if let Some(question) = question.get(QUESTION) {
        fields.insert(QUESTION.into(), question.clone());
    }
    bus.fire(&tag, &fields).await.map(|_| ()).map_err(|error| error.to_string())
}

/// Queues one or several events for the master.
fn forward(session: &impl MasterSession, data: &Map) -> Result<(), String> {
    let text = |map: &Map, name: &str| map.get(name).and_then(Value::as_str).map(str::to_owned);
    let several = data.get("events").and_then(Value::as_list).unwrap_or_default();
    for event in several.iter().filter_map(Value::as_map) {
        let tag = text(event, "tag").ok_or("an event has no tag")?;
        let tag = text(data, "pretag").map_or_else(|| tag.clone(), |pretag| format!("{pretag}/{tag}"));
        session.queue_event(&MasterEvent::new(&tag, event.get("data").cloned().unwrap_or_default()));
    }
    match text(data, "tag") {
        Some(tag) => {
            session.queue_event(&MasterEvent::new(&tag, data.get("data").cloned().unwrap_or_default()));
            Ok(())
        }
        None if several.is_empty() => Err("the event has no tag".to_owned()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
