//! One job: its returns as they come, and who does not return.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use brine_core::jid::Jid;
use brine_core::job::{Return, return_tag};
use brine_core::wire::PublishRequest;
use brine_core::{Map, Value};
use tokio::time::Instant;

use super::super::client::{ClientError, Events, MasterClient, user};

/// How jobs are waited for.
pub(super) struct Job<'a> {
    pub client: &'a MasterClient,
    /// Seconds until it is asked who still works.
    pub timeout: u64,
    /// Seconds for the answers to that.
    pub gather: u64,
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
    job: &'a Job<'a>,
    jid: Jid,
    waiting: BTreeSet<String>,
    events: &'a mut Events,
    deadline: Instant,
    asking: Option<Asking>,
    gone: VecDeque<String>,
}

/// Minions that are being asked whether they still work.
struct Asking {
    jid: Option<Jid>,
    silent: BTreeSet<String>,
}

impl<'a> Job<'a> {
    /// Watches a job that has gone out; `events` were subscribed to before.
    pub fn watch(&'a self, jid: &Jid, minions: &[String], events: &'a mut Events) -> Watch<'a> {
        Watch {
            job: self,
            jid: jid.clone(),
            waiting: minions.iter().cloned().collect(),
            events,
            deadline: Instant::now() + Duration::from_secs(self.timeout),
            asking: None,
            gone: VecDeque::new(),
        }
    }
}

impl Watch<'_> {
    /// What came of the next minion; nothing when all are through.
    pub async fn next(&mut self) -> Result<Option<Ended>, ClientError> {
        loop {
            if let Some(id) = self.gone.pop_front() {
                return Ok(Some(Ended::Missing(id)));
            }
            if self.waiting.is_empty() {
                return Ok(None);
            }
            tokio::select! {
                event = self.events.next() => {
                    let event = event?;
                    if let Some(ended) = self.take(event.tag(), event.data()) {
                        return Ok(Some(ended));
                    }
                }
                () = tokio::time::sleep_until(self.deadline) => self.time_is_up().await?,
                _ = tokio::signal::ctrl_c() => return Ok(Some(Ended::Interrupted)),
            }
        }
    }

    fn take(&mut self, tag: &str, data: Map) -> Option<Ended> {
        let (jid, id) = return_tag(tag)?;
        if jid == self.jid.as_str() {
            if !self.waiting.remove(id) {
                return None;
            }
            if let Some(asking) = &mut self.asking {
                asking.silent.remove(id);
            }
            return Return::from_map(data).ok().map(|one| Ended::Returned(Box::new(one)));
        }
        let asking = self.asking.as_mut()?;
        let still_works = data.get("return").is_some_and(Value::is_truthy);
        if asking.jid.as_ref().is_some_and(|asked| asked.as_str() == jid) && still_works {
            asking.silent.remove(id);
        }
        self.ask_again_if_all_answered();
        None
    }

    /// When all who are asked still work, they get the whole time again.
    fn ask_again_if_all_answered(&mut self) {
        if self.asking.as_ref().is_some_and(|asking| asking.silent.is_empty()) {
            self.asking = None;
            self.deadline = Instant::now() + Duration::from_secs(self.job.timeout.max(1));
        }
    }

    /// First, whoever has not returned is asked; then, who did not answer is missing.
    async fn time_is_up(&mut self) -> Result<(), ClientError> {
        if let Some(asking) = self.asking.take() {
            for id in asking.silent {
                if self.waiting.remove(&id) {
                    self.gone.push_back(id);
                }
            }
            self.deadline = Instant::now() + Duration::from_secs(self.job.timeout.max(1));
            return Ok(());
        }
        let request = PublishRequest {
            tgt: self.waiting.iter().map(String::as_str).collect(),
            tgt_type: "list".to_owned(),
            arg: vec![Value::from(&self.jid)],
            ..PublishRequest::new("", "saltutil.find_job", &user())
        };
        let asked = self.job.client.publish(request).await?;
        self.asking = Some(Asking { jid: asked.jid, silent: self.waiting.clone() });
        self.deadline = Instant::now() + Duration::from_secs(self.job.gather);
        Ok(())
    }
}
