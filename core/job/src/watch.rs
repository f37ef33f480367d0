//! Who has not returned yet. Minions that are silent for a while are asked whether they still work on the job
//! (`saltutil.find_job`), and are waited for as long as they say so.
//!
//! It is handed events and times and says what is to be done: who waits has sockets or the bus itself.

use std::collections::BTreeSet;
use std::time::Duration;

use brine_event::Event;
use brine_ids::Jid;
use brine_value::{Map, Value};
use brine_wire::PublishRequest;
use tokio::time::Instant;

use super::return_tag;

/// A job that is waited for.
#[derive(Debug)]
pub struct Watch {
    jid: Jid,
    times: Times,
    waiting: BTreeSet<String>,
    asking: Option<Asking>,
    deadline: Instant,
}

/// How long minions are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Until those that are silent are asked: Salt's `timeout`. At least a second.
    pub timeout: Duration,
    /// For the answers to that: Salt's `gather_job_timeout`.
    pub gather: Duration,
}

/// Minions that are being asked whether they still work.
#[derive(Debug)]
struct Asking {
    jid: Option<Jid>,
    silent: BTreeSet<String>,
}

/// What is due when the [deadline](Watch::deadline) has come.
#[derive(Debug, PartialEq)]
pub enum Due {
    /// This is to be published, and its job id handed to [`Watch::asked`].
    Ask(Box<PublishRequest>),
    /// These have neither returned nor said that they work.
    Missing(BTreeSet<String>),
}

impl Watch {
    /// Waits for these minions' returns from now on.
    pub fn new(jid: Jid, minions: impl IntoIterator<Item = String>, times: Times, now: Instant) -> Self {
        let times = Times { timeout: times.timeout.max(Duration::from_secs(1)), ..times };
        let waiting = minions.into_iter().collect();
        Watch { jid, times, waiting, asking: None, deadline: now + times.timeout }
    }

    /// The job's id.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// Waits for these as well; the job has just gone out to them.
    pub fn add(&mut self, minions: impl IntoIterator<Item = String>, now: Instant) {
        self.waiting.extend(minions);
        if self.asking.is_none() {
            self.deadline = now + self.times.timeout;
        }
    }

    /// It has become known in another way what came of this one.
    pub fn remove(&mut self, id: &str) {
        self.waiting.remove(id);
    }

    /// Whether this one is waited for.
    pub fn waits_for(&self, id: &str) -> bool {
        self.waiting.contains(id)
    }

    /// Whether nobody is waited for.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }

    /// When [`Watch::time_is_up`] is to be called if nothing has changed it until then.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Takes an event in: the minion that is waited for no longer, and its return, if it is one.
    pub fn take(&mut self, event: &Event, now: Instant) -> Option<(String, Map)> {
        let (jid, id) = return_tag(event.tag())?;
        let returned = jid == self.jid.as_str();
        let answered = |asking: &Asking| asking.jid.as_ref().is_some_and(|asked| asked.as_str() == jid);
        if let Some(asking) = &mut self.asking
            && (returned || answered(asking) && event.data().get("return").is_some_and(Value::is_truthy))
        {
            asking.silent.remove(id);
            // All who were asked still work or are through: they get the whole time again.
            if asking.silent.is_empty() {
                self.asking = None;
                self.deadline = now + self.times.timeout;
            }
        }
        (returned && self.waiting.remove(id)).then(|| (id.to_owned(), event.data()))
    }

    /// First, whoever has not returned is to be asked, in this user's name; after that, who did not answer is
    /// missing.
    pub fn time_is_up(&mut self, user: &str, now: Instant) -> Due {
        if let Some(asking) = self.asking.take() {
            self.deadline = now + self.times.timeout;
            let missing: BTreeSet<String> = asking.silent.intersection(&self.waiting).cloned().collect();
            self.waiting.retain(|id| !missing.contains(id));
            return Due::Missing(missing);
        }
        self.asking = Some(Asking { jid: None, silent: self.waiting.clone() });
        self.deadline = now + self.times.gather;
        Due::Ask(Box::new(PublishRequest {
            tgt: self.waiting.iter().map(String::as_str).collect(),
            tgt_type: "list".to_owned(),
            arg: vec![Value::from(&self.jid)],
            ..PublishRequest::new("", "saltutil.find_job", user)
        }))
    }

    /// The question has gone out under this id, if it found anybody.
    pub fn asked(&mut self, jid: Option<Jid>, now: Instant) {
        if let Some(asking) = &mut self.asking {
            asking.jid = jid;
            self.deadline = now + self.times.gather;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_value::{list, map};

    const SECOND: Duration = Duration::from_secs(1);

    fn event(jid: &Jid, id: &str, value: impl Into<Value>) -> Event {
        Event::from_map(&format!("salt/job/{jid}/ret/{id}"), &map! {"return" => value.into()}).unwrap()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn watch(minions: &[&str]) -> (Watch, Instant) {
        let now = Instant::now();
        let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND };
        (Watch::new(Jid::new(), names(minions), times, now), now)
    }

    /// Asks the silent ones: the id of the question, and who was asked.
    fn ask(watch: &mut Watch, now: Instant) -> (Jid, Value) {
        let Due::Ask(request) = watch.time_is_up("root", now) else { panic!("nobody is asked") };
        assert_eq!((request.fun, request.arg), ("saltutil.find_job".into(), vec![watch.jid().into()]));
        let question: Jid = "20990101000000000000".parse().unwrap();
        watch.asked(Some(question.clone()), now);
        (question, request.tgt)
    }

    #[test]
    fn returns_are_taken_once_and_only_of_those_that_are_waited_for() {
        let (mut watch, now) = watch(&["a", "b"]);
        let jid = watch.jid().clone();
        let (id, data) = watch.take(&event(&jid, "a", true), now).unwrap();
        assert_eq!((id.as_str(), data.get("return")), ("a", Some(&true.into())));
        for other in [event(&jid, "a", true), event(&jid, "stranger", true), event(&Jid::new(), "b", true)] {
            assert_eq!(watch.take(&other, now), None, "{}", other.tag());
        }
        assert!(!watch.is_over());
        assert!(watch.take(&event(&jid, "b", false), now).is_some());
        assert!(watch.is_over());
    }

    #[test]
    fn who_says_that_they_work_is_waited_for_and_who_is_silent_is_missing() {
        let (mut watch, now) = watch(&["a", "b", "c"]);
        let jid = watch.jid().clone();
        watch.take(&event(&jid, "a", true), now);
        assert_eq!(watch.deadline(), now + 5 * SECOND, "a return is no reason to wait longer for the others");
        let (question, asked) = ask(&mut watch, now + 5 * SECOND);
        assert_eq!(asked, list!["b", "c"]);
        assert_eq!(watch.deadline(), now + 15 * SECOND);
        assert_eq!(watch.take(&event(&question, "b", map! {"pid" => 7}), now), None);
        // An empty answer: it does not know of the job.
        assert_eq!(watch.take(&event(&question, "c", map! {}), now), None);
        assert_eq!(watch.time_is_up("root", now + 15 * SECOND), Due::Missing(names(&["c"])));
        assert_eq!(watch.deadline(), now + 20 * SECOND);
        assert_eq!(ask(&mut watch, now + 20 * SECOND).1, list!["b"]);
        assert!(watch.take(&event(&jid, "b", true), now).is_some());
        assert!(watch.is_over());
    }

    #[test]
    fn when_all_have_answered_nobody_waits_for_the_rest_of_the_time() {
        let (mut watch, now) = watch(&["a", "b"]);
        let (question, _) = ask(&mut watch, now + 5 * SECOND);
        watch.take(&event(&question, "a", map! {"pid" => 7}), now + 6 * SECOND);
        assert_eq!(watch.deadline(), now + 15 * SECOND);
        let jid = watch.jid().clone();
        watch.take(&event(&jid, "b", true), now + 6 * SECOND);
        assert_eq!(watch.deadline(), now + 11 * SECOND);
        assert_eq!(ask(&mut watch, now + 11 * SECOND).1, list!["a"]);
    }

    #[test]
    fn who_comes_later_has_the_whole_time_and_is_not_missing_for_an_older_question() {
        let (mut watch, now) = watch(&["a"]);
        watch.add(names(&["b"]), now + 3 * SECOND);
        assert_eq!(watch.deadline(), now + 8 * SECOND);
        ask(&mut watch, now + 8 * SECOND);
        watch.add(names(&["c"]), now + 9 * SECOND);
        assert_eq!(watch.deadline(), now + 18 * SECOND);
        assert_eq!(watch.time_is_up("root", now + 18 * SECOND), Due::Missing(names(&["a", "b"])));
        assert!(!watch.is_over());
    }
}
