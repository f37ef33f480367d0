//! One job: its returns as they come, and who does not return.

use std::collections::VecDeque;

use brine_core::Map;
use brine_core::jid::Jid;
use brine_core::job::{Due, Return, Times};
use tokio::time::Instant;

use super::super::client::{ClientError, Events, MasterClient, user};

/// How jobs are waited for.
pub(super) struct Job<'a> {
    pub client: &'a MasterClient,
    pub times: Times,
}

/// What came of one minion.
pub(super) enum Ended {
    /// It returned.
    Returned(Box<Return>),
    /// It did not, and does not say that it still works.
    Missing(String),
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// The returns of one job.
pub(super) struct Watch<'a> {
    client: &'a MasterClient,
    events: &'a mut Events,
    watch: brine_core::job::Watch,
    gone: VecDeque<String>,
}

impl<'a> Job<'a> {
    /// Watches a job that has gone out; `events` were subscribed to before.
    pub fn watch(&'a self, jid: &Jid, minions: &[String], events: &'a mut Events) -> Watch<'a> {
        let watch = brine_core::job::Watch::new(jid.clone(), minions.to_vec(), self.times, Instant::now());
        Watch { client: self.client, events, watch, gone: VecDeque::new() }
    }
}

impl Watch<'_> {
    /// What came of the next minion; nothing when all are through.
    pub async fn next(&mut self) -> Result<Option<Ended>, ClientError> {
        loop {
            if let Some(id) = self.gone.pop_front() {
                return Ok(Some(Ended::Missing(id)));
            }
            if self.watch.is_over() {
                return Ok(None);
            }
            tokio::select! {
                event = self.events.next() => {
                    let returned = self.watch.take(&event?, Instant::now());
                    if let Some(one) = returned.and_then(|(_, data): (String, Map)| Return::from_map(data).ok()) {
                        return Ok(Some(Ended::Returned(Box::new(one))));
                    }
                }
                () = tokio::time::sleep_until(self.watch.deadline()) => self.time_is_up().await?,
                _ = tokio::signal::ctrl_c() => return Ok(Some(Ended::Interrupted)),
            }
        }
    }

    async fn time_is_up(&mut self) -> Result<(), ClientError> {
        match self.watch.time_is_up(&user(), Instant::now()) {
            Due::Missing(ids) => self.gone.extend(ids),
            Due::Ask(request) => {
                let asked = self.client.publish(*request).await?;
                self.watch.asked(asked.jid, Instant::now());
            }
        }
        Ok(())
    }
}
