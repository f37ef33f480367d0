//! One job: its returns as they come, and who does not return.

use std::collections::VecDeque;

use brine_ids::Jid;
use brine_job::{Due, Return, Times};
use brine_value::Map;
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
    /// Nothing yet; it is as late as one wanted to wait.
    Late,
    /// Somebody pressed Ctrl-C.
    Interrupted,
    /// The event that ends it was published.
    Stopped,
}

/// The returns of jobs.
pub(super) struct Watch<'a> {
    job: &'a Job<'a>,
    events: &'a mut Events,
    watches: Vec<brine_job::Watch>,
    gone: VecDeque<String>,
    /// The tag of the event that ends it all.
    stop: Option<String>,
}

impl<'a> Job<'a> {
    /// Watches jobs; `events` were subscribed to before they go out.
    pub fn watch(&'a self, events: &'a mut Events) -> Watch<'a> {
        Watch { job: self, events, watches: Vec::new(), gone: VecDeque::new(), stop: None }
    }
}

impl Watch<'_> {
    /// Ends with the event of this tag, to which `events` are subscribed, too.
    pub fn until(self, stop: String) -> Self {
        Watch { stop: Some(stop), ..self }
    }

    /// A job that has just gone out.
    pub fn add(&mut self, jid: &Jid, minions: &[String]) {
        tracing::debug!(%jid, minions = minions.join(","), "job published");
        let watch = brine_job::Watch::new(jid.clone(), minions.to_vec(), self.job.times, Instant::now());
        self.watches.push(watch);
    }

    /// What came of the next minion; nothing when all are through.
    pub async fn next(&mut self) -> Result<Option<Ended>, ClientError> {
        self.next_until(None).await
    }

    /// As [`Watch::next`], but no later than that, even if all are through.
    pub async fn next_until(&mut self, late: Option<Instant>) -> Result<Option<Ended>, ClientError> {
        loop {
            if let Some(id) = self.gone.pop_front() {
                return Ok(Some(Ended::Missing(id)));
            }
            self.watches.retain(|watch| !watch.is_over());
            let next = self.watches.iter().map(brine_job::Watch::deadline).chain(late).min();
            let Some(next) = next else { return Ok(None) };
            tokio::select! {
                event = self.events.next() => {
                    let event = event?;
                    if self.stop.as_deref() == Some(event.tag()) {
                        return Ok(Some(Ended::Stopped));
                    }
                    let returned = self.watches.iter_mut().find_map(|watch| watch.take(&event, Instant::now()));
                    if let Some(one) = returned.and_then(|(_, data): (String, Map)| Return::from_map(data).ok()) {
                        tracing::debug!(minion = %one.id(), jid = %one.jid(), retcode = one.retcode(), "return received");
                        return Ok(Some(Ended::Returned(Box::new(one))));
                    }
                }
                () = tokio::time::sleep_until(next) => {
                    self.time_is_up().await?;
                    if late.is_some_and(|late| late <= Instant::now()) && self.gone.is_empty() {
                        return Ok(Some(Ended::Late));
                    }
                }
                _ = tokio::signal::ctrl_c() => return Ok(Some(Ended::Interrupted)),
            }
        }
    }

    async fn time_is_up(&mut self) -> Result<(), ClientError> {
        let now = Instant::now();
        for watch in self.watches.iter_mut().filter(|watch| watch.deadline() <= now) {
            match watch.time_is_up(&user(), now) {
                Due::Missing(ids) => self.gone.extend(ids),
                Due::Ask(request) => {
                    let asked = self.job.client.publish(*request).await?;
                    watch.asked(asked.jid, Instant::now());
                }
            }
        }
        Ok(())
    }
}
