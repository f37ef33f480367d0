//! A job from its publication to its last return: the driver of `brine_job` with a connection to the master.

use std::collections::VecDeque;

use brine_event::Event;
use brine_ids::Jid;
use brine_job::{Action, Driver, Return, Times};
use brine_target::TargetKind;
use brine_value::Value;
use brine_wire::PublishRequest;
use rand::seq::SliceRandom;
use tokio::time::Instant;

use super::Published;

/// The connection of a job to the master: publishes in the name of the job's user, and receives events. It must be
/// subscribed before the job is published, so that no return is missed.
pub trait Link: Send {
    /// The error of the connection.
    type Error: Send;

    /// Publishes a job.
    fn publish(&mut self, request: PublishRequest) -> impl Future<Output = Result<Published, Self::Error>> + Send;

    /// Returns the next event, or `None` if the user interrupted the job. Cancel safe.
    fn event(&mut self) -> impl Future<Output = Result<Option<Event>, Self::Error>> + Send;
}

/// The outcome of one minion.
#[derive(Debug)]
pub enum Outcome {
    /// It returned.
    Returned(Box<Return>),
    /// It neither returned nor runs the job: the minion id.
    Missing(String),
    /// The user interrupted the job.
    Interrupted,
}

/// An event while a job runs.
#[derive(Debug)]
pub enum Occurrence {
    /// A minion returned.
    Returned(Box<Return>),
    /// The event that stops the job was received.
    Stopped,
    /// The user interrupted the job.
    Interrupted,
    /// The timeout has expired, or an event may have changed the next step.
    Wake,
}

/// A job in progress.
pub struct Run<'a, L> {
    /// The connection to the master.
    pub link: &'a mut L,
    /// The state of the job.
    pub driver: Driver,
    missing: VecDeque<String>,
    /// The tag of the event that stops the job.
    stop: Option<String>,
}

impl<'a, L: Link> Run<'a, L> {
    /// Runs a job with this driver. An event with the tag `stop` ends it.
    pub fn new(link: &'a mut L, driver: Driver, stop: Option<String>) -> Self {
        Run { link, driver, missing: VecDeque::new(), stop }
    }

    /// Collects the returns of a job that has already been published. Requests to silent minions, whether they still
    /// run the job, are in the name of `user`.
    pub fn of_published(link: &'a mut L, jid: &Jid, user: &str, published: &Published, times: Times) -> Self {
        tracing::debug!(%jid, minions = published.minions.join(","), "job published");
        let now = Instant::now();
        let driver = Driver::of_published(jid.clone(), user, published.awaited(), times, now);
        let missing = published.disconnected.iter().cloned().collect();
        Run { missing, ..Self::new(link, driver.with_syndics(published.syndics.clone(), now), None) }
    }

    /// Returns the minions of `missing` that are unknown to the masters below, too.
    pub fn unknown(&self, missing: &[String]) -> Vec<String> {
        missing.iter().filter(|id| !self.driver.is_of_syndic(id)).cloned().collect()
    }

    /// Waits for the outcome of the next minion; `None` when the job has ended. Only for jobs without batches.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn next(&mut self) -> Result<Option<Outcome>, L::Error> {
        loop {
            if let Some(id) = self.missing.pop_front() {
                return Ok(Some(Outcome::Missing(id)));
            }
            match self.driver.next(Instant::now()) {
                Action::Ask(request) => self.ask(*request).await?,
                Action::Missing(ids) => self.missing.extend(ids),
                Action::Wait(until) => match self.wait(until).await? {
                    Occurrence::Returned(one) => return Ok(Some(Outcome::Returned(one))),
                    Occurrence::Interrupted => return Ok(Some(Outcome::Interrupted)),
                    Occurrence::Wake | Occurrence::Stopped => {}
                },
                Action::Publish(_) | Action::End => return Ok(None),
            }
        }
    }

    /// Executes [`Action::Publish`]: publishes the job to these minions. Returns the published job, and the minions that
    /// no longer exist.
    ///
    /// # Errors
    /// The connection ended, or the master refuses the job.
    pub async fn publish(
        &mut self,
        request: &PublishRequest,
        ids: Vec<String>,
    ) -> Result<(Published, Vec<String>), L::Error> {
        let jid = Some(self.driver.jid().clone());
        let published = self.link.publish(PublishRequest { jid, ..for_minions(request, ids) }).await?;
        let gone = match &published.syndics {
            None => self.driver.published(&published.minions, Instant::now()),
            // The minions of masters below are unknown here.
            Some(_) => self.driver.published(&[&published.minions[..], &published.missing].concat(), Instant::now()),
        };
        Ok((published, gone))
    }

    /// Executes [`Action::Ask`].
    ///
    /// # Errors
    /// The connection ended, or the master refuses the job.
    pub async fn ask(&mut self, request: PublishRequest) -> Result<(), L::Error> {
        let asked = self.link.publish(request).await?;
        self.driver.asked(asked.jid, Instant::now());
        Ok(())
    }

    /// Executes [`Action::Wait`].
    ///
    /// # Errors
    /// The connection ended.
    pub async fn wait(&mut self, until: Instant) -> Result<Occurrence, L::Error> {
        let Ok(event) = tokio::time::timeout_at(until, self.link.event()).await else { return Ok(Occurrence::Wake) };
        let Some(event) = event? else { return Ok(Occurrence::Interrupted) };
        if self.stop.as_deref() == Some(event.tag()) {
            return Ok(Occurrence::Stopped);
        }
        let Some((id, data)) = self.driver.process(&event, Instant::now()) else { return Ok(Occurrence::Wake) };
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

/// The minions of a target, by their returns of a test function.
#[derive(Debug, Default)]
pub struct TargetResponses {
    /// The minions that returned as required, sorted.
    pub minions: Vec<String>,
    /// The minions that did not return, sorted.
    pub down: Vec<String>,
    /// Whether the target matches any minion.
    pub matched: bool,
    /// Whether the user interrupted the test.
    pub interrupted: bool,
}

/// Calls `fun` on the minions of a job's target, and returns the minions whose return satisfies `fits`.
async fn probe_target<L: Link>(
    link: &mut L,
    request: &PublishRequest,
    fun: &str,
    times: Times,
    fits: impl Fn(&Value) -> bool,
) -> Result<TargetResponses, L::Error> {
    let user = request.user.clone();
    let question =
        PublishRequest { fun: fun.into(), arg: Vec::new(), ret: String::new(), jid: None, ..request.clone() };
    let published = link.publish(question).await?;
    let mut responses = TargetResponses { matched: published.jid.is_some(), ..TargetResponses::default() };
    let mut unknown = published.missing.clone();
    if let Some(jid) = published.jid.clone() {
        let mut run = Run::of_published(link, &jid, &user, &published, times);
        while let Some(outcome) = run.next().await? {
            match outcome {
                Outcome::Returned(one) if fits(one.value()) => responses.minions.push(one.id().to_string()),
                Outcome::Returned(_) => {}
                Outcome::Missing(id) => responses.down.push(id),
                Outcome::Interrupted => {
                    responses.interrupted = true;
                    break;
                }
            }
        }
        unknown = run.unknown(&unknown);
    }
    responses.down.extend(unknown);
    responses.minions.sort();
    responses.down.sort();
    Ok(responses)
}

/// Pings the minions of a job's target with a function that every minion has, as before a job in batches.
///
/// # Errors
/// The connection ended, or the master refuses the job.
pub async fn ping_target<L: Link>(
    link: &mut L,
    request: &PublishRequest,
    ping: &str,
    times: Times,
) -> Result<TargetResponses, L::Error> {
    probe_target(link, request, ping, times, |_| true).await
}

/// Finds the minions of a job's target that have all of its functions. `list` is the function that returns the names of
/// a minion's functions.
///
/// # Errors
/// The connection ended, or the master refuses the job.
pub async fn minions_with_functions<L: Link>(
    link: &mut L,
    request: &PublishRequest,
    list: &str,
    times: Times,
) -> Result<TargetResponses, L::Error> {
    let funs: Vec<Value> = match &request.fun {
        Value::List(all) => all.clone(),
        one => vec![one.clone()],
    };
    let has_all = |functions: &Value| {
        let functions = functions.as_list().unwrap_or_default();
        funs.iter().all(|fun| functions.contains(fun))
    };
    probe_target(link, request, list, times, has_all).await
}

/// Returns the job for `count` minions that are randomly selected from these.
pub fn subset(request: &PublishRequest, mut minions: Vec<String>, count: usize) -> PublishRequest {
    minions.shuffle(&mut rand::rng());
    minions.truncate(count);
    for_minions(request, minions)
}

fn for_minions(request: &PublishRequest, ids: Vec<String>) -> PublishRequest {
    PublishRequest { tgt: ids.into(), tgt_type: TargetKind::List.name().to_owned(), ..request.clone() }
}

#[cfg(test)]
mod tests;
