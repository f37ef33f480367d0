//! A running job: the driver of `brine_job` with the connections to the master.

use std::collections::VecDeque;

use brine_ids::Jid;
use brine_job::{Driver, Return, Step, Times};
use brine_wire::PublishRequest;
use tokio::time::Instant;

use super::super::client::{ClientError, Events, MasterClient, user};

/// The client and the timeouts of jobs.
pub(super) struct Job<'a> {
    pub client: &'a MasterClient,
    pub times: Times,
}

/// The outcome of one minion.
pub(super) enum Outcome {
    /// It returned.
    Returned(Box<Return>),
    /// It neither returned nor runs the job.
    Missing(String),
    /// Ctrl-C was pressed.
    Interrupted,
}

/// An event or signal while a job runs.
pub(super) enum Occurrence {
    /// A minion returned.
    Returned(Box<Return>),
    /// The event that stops the job was received.
    Stopped,
    /// Ctrl-C was pressed.
    Interrupted,
    /// The timeout has expired, or an event may have changed the next step.
    Wake,
}

/// A running job.
pub(super) struct Run<'a> {
    client: &'a MasterClient,
    events: &'a mut Events,
    pub driver: Driver,
    missing: VecDeque<String>,
    /// The tag of the event that stops the job.
    stop: Option<String>,
}

impl<'a> Job<'a> {
    /// Runs a job by its driver. `events` are subscribed before the job is published, also to the tag `stop`.
    pub fn run(&self, events: &'a mut Events, driver: Driver, stop: Option<String>) -> Run<'a> {
        Run { client: self.client, events, driver, missing: VecDeque::new(), stop }
    }

    /// Collects the returns of a job that has been published to these minions.
    pub fn collect(&self, events: &'a mut Events, jid: &Jid, minions: &[String]) -> Run<'a> {
        tracing::debug!(%jid, minions = minions.join(","), "job published");
        let driver = Driver::of_published(jid.clone(), &user(), minions.to_vec(), self.times, Instant::now());
        self.run(events, driver, None)
    }
}

impl Run<'_> {
    /// Waits for the outcome of the next minion; `None` when the job has ended. Only for jobs without batches.
    pub async fn next(&mut self) -> Result<Option<Outcome>, ClientError> {
        loop {
            if let Some(id) = self.missing.pop_front() {
                return Ok(Some(Outcome::Missing(id)));
            }
            match self.driver.next(Instant::now()) {
                Step::Ask(request) => self.ask(*request).await?,
                Step::Missing(ids) => self.missing.extend(ids),
                Step::Wait(until) => match self.wait(until).await? {
                    Occurrence::Returned(one) => return Ok(Some(Outcome::Returned(one))),
                    Occurrence::Interrupted => return Ok(Some(Outcome::Interrupted)),
                    Occurrence::Wake | Occurrence::Stopped => {}
                },
                Step::Publish(_) | Step::End => return Ok(None),
            }
        }
    }

    /// Carries out [`Step::Ask`].
    pub async fn ask(&mut self, request: PublishRequest) -> Result<(), ClientError> {
        let asked = self.client.publish(request).await?;
        self.driver.asked(asked.jid, Instant::now());
        Ok(())
    }

    /// Carries out [`Step::Wait`].
    pub async fn wait(&mut self, until: Instant) -> Result<Occurrence, ClientError> {
        let event = tokio::select! {
            event = self.events.next() => event?,
            () = tokio::time::sleep_until(until) => return Ok(Occurrence::Wake),
            _ = tokio::signal::ctrl_c() => return Ok(Occurrence::Interrupted),
        };
        if self.stop.as_deref() == Some(event.tag()) {
            return Ok(Occurrence::Stopped);
        }
        let Some((id, data)) = self.driver.take(&event, Instant::now()) else { return Ok(Occurrence::Wake) };
        match Return::from_map(data) {
            Ok(one) => {
                tracing::debug!(minion = %one.id(), jid = %one.jid(), retcode = one.retcode(), "return received");
                Ok(Occurrence::Returned(Box::new(one)))
            }
            Err(error) => {
                tracing::error!(minion = id, %error, "return is invalid");
                Ok(Occurrence::Wake)
            }
        }
    }
}
