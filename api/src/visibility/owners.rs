//! The owners of jobs and calls, from their events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use brine_event::Event;
use brine_value::msgpack;
use parking_lot::Mutex;

/// The maximum number of jobs whose owners are known.
const MAX_JOBS: usize = 50_000;

/// The kinds of jobs in tags.
const JOB: &str = "salt/job/";
const CALLS: [&str; 2] = ["salt/run/", "salt/wheel/"];
/// The number of digits of a job id.
const JID_LENGTH: usize = 20;

/// The owners of recent jobs.
#[derive(Default)]
pub(crate) struct Owners(Mutex<Known>);

#[derive(Default)]
struct Known {
    users: HashMap<JobId, Arc<str>>,
    /// Oldest first.
    order: VecDeque<JobId>,
    /// The owner of the newest job, shared by the jobs of a user who starts many.
    newest: Option<Arc<str>>,
}

/// The digits of a job id as a number: tens of thousands are kept.
type JobId = u128;

impl Owners {
    /// Returns the owner of the job or call that an event belongs to. Remembers the owner of a new one.
    pub fn of(&self, event: &Event) -> Option<Arc<str>> {
        let tag = event.tag();
        let is_call = CALLS.iter().any(|prefix| tag.starts_with(prefix));
        let jid = jid_of(tag)?;
        let owner = || self.0.lock().users.get(&jid).cloned();
        let is_new_job = tag.starts_with(JOB) && tag.ends_with("/new");
        if !is_call && !is_new_job {
            return owner();
        }
        // The first event of a job decides: a later one may be a report of another master.
        owner().or_else(|| {
            let user = user_of(event)?;
            Some(self.0.lock().insert(jid, &user))
        })
    }
}

impl Known {
    fn insert(&mut self, jid: JobId, user: &str) -> Arc<str> {
        while self.order.len() >= MAX_JOBS {
            let Some(oldest) = self.order.pop_front() else { break };
            self.users.remove(&oldest);
        }
        self.order.push_back(jid);
        let shared = self.newest.take().filter(|newest| **newest == *user).unwrap_or_else(|| user.into());
        self.newest = Some(Arc::clone(&shared));
        Arc::clone(self.users.entry(jid).or_insert(shared))
    }
}

/// Returns the job id in the tag of an event of a job or call.
fn jid_of(tag: &str) -> Option<JobId> {
    let jid = match [JOB, CALLS[0], CALLS[1]].iter().find_map(|prefix| tag.strip_prefix(prefix)) {
        Some(rest) => rest.split_once('/')?.0,
        // The event of `bare_jid_events`.
        None => tag,
    };
    let is_jid = jid.len() == JID_LENGTH && jid.bytes().all(|byte| byte.is_ascii_digit());
    jid.parse().ok().filter(|_| is_jid)
}

fn user_of(event: &Event) -> Option<String> {
    let mut user = None;
    _ = msgpack::scan(event.body(), |entry| {
        if entry.key == Some("user") {
            user = msgpack::content(entry.value).and_then(|user| std::str::from_utf8(user).ok()).map(str::to_owned);
        }
    });
    user
}

#[cfg(test)]
mod tests {
    use brine_value::{Map, map};

    use super::*;

    fn event(tag: &str, body: &Map) -> Event {
        Event::from_map(tag, body).unwrap()
    }

    #[test]
    fn the_first_event_of_a_job_names_its_owner() {
        let owners = Owners::default();
        let (job, call) = ("20261128000000000001", "20261128000000000002");
        let of = |tag: String, body: &Map| owners.of(&event(&tag, body)).map(|user| user.to_string());
        let (none, fred, ann) = (map! {}, map! {"user" => "fred"}, map! {"user" => "ann"});
        for (tag, body, owner) in [
            (format!("salt/job/{job}/ret/web1"), &fred, None),
            (format!("salt/job/{job}/new"), &fred, Some("fred")),
            (format!("salt/job/{job}/new"), &ann, Some("fred")),
            (format!("salt/job/{job}/ret/web1"), &none, Some("fred")),
            (format!("salt/job/{job}/prog/web1/1"), &none, Some("fred")),
            (job.to_owned(), &none, Some("fred")),
            (format!("salt/run/{call}/ret"), &ann, Some("ann")),
            (format!("salt/run/{call}/progress"), &none, Some("ann")),
            ("salt/job/x/new".to_owned(), &fred, None),
            ("my/event".to_owned(), &fred, None),
        ] {
            assert_eq!(of(tag.clone(), body).as_deref(), owner, "{tag}");
        }
    }

    #[test]
    fn the_number_of_known_jobs_is_bounded() {
        let owners = Owners::default();
        for number in 0..=MAX_JOBS {
            owners.of(&event(&format!("salt/job/2026112800{number:010}/new"), &map! {"user" => "fred"}));
        }
        let owner = |number: usize| owners.of(&event(&format!("salt/job/2026112800{number:010}/ret/a"), &map! {}));
        assert_eq!((owner(0), owner(1).as_deref()), (None, Some("fred")));
        assert_eq!(owners.0.lock().users.len(), MAX_JOBS);
    }
}
