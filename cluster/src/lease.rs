//! Leader election: the leader is the member that holds a lease, which expires unless it is renewed.
//!
//! A member that has acquired the lease leads only once it has received all earlier events, and with them the reports
//! of completed reactions.

use std::sync::Arc;

use async_nats::jetstream::kv;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::link::Link;
use crate::state::State;

/// The key of the lease.
const LEADER: &str = "leader";

/// Acquires and renews the lease until `shutdown`, then releases it.
pub(crate) async fn maintain(link: Arc<Link>, state: Arc<State>, shutdown: CancellationToken) {
    let mut held = None;
    tokio::select! {
        () = acquire(&link, &state, &mut held) => {}
        () = shutdown.cancelled() => {}
    }
    state.set_lead(None);
    if let Some(revision) = held
        && let Ok(resources) = link.resources().await
        && resources.lease_stream.delete_message(revision).await.is_err()
    {
        tracing::debug!("releasing the lease of the leader failed: it expires");
    }
}

/// Acquires and renews the lease. `held` is the lease's revision while this member holds it.
async fn acquire(link: &Link, state: &State, held: &mut Option<u64>) {
    let lease = link.settings.lease;
    let mut beginning = Activation::default();
    loop {
        // The lease is counted from before the request, so that it expires here before it does on the servers.
        let began = Instant::now();
        let renewed = tokio::time::timeout(lease / 3, renew(link, state, *held)).await.unwrap_or(Renewed::NoAnswer);
        match renewed {
            Renewed::Held(revision) => {
                state.servers_answered();
                if held.replace(revision).is_none() {
                    beginning = Activation::default();
                }
                if beginning.is_over(link, state).await {
                    state.set_lead(Some(began + lease * 9 / 10));
                }
            }
            Renewed::Other => {
                state.servers_answered();
                if held.take().is_some() {
                    tracing::warn!(member = state.member(), "another master leads the cluster now");
                }
                state.set_lead(None);
            }
            Renewed::NoAnswer => {
                link.forget_resources();
                if held.is_some() && !state.leads() {
                    *held = None;
                    tracing::warn!("renewing the lease of the leader failed: another master takes over");
                }
                if held.is_none() {
                    state.set_lead(None);
                }
            }
        }
        let interval = if held.is_some() && !beginning.is_over { lease / 10 } else { lease / 3 };
        tokio::time::sleep(interval.saturating_sub(began.elapsed())).await;
    }
}

/// The time between the acquisition of the lease and the leadership.
#[derive(Default)]
struct Activation {
    /// The time at which the servers first stored a message of this member.
    stored: Option<Instant>,
    /// The number of the message up to which this member must have read the stream.
    last: Option<u64>,
    is_over: bool,
}

impl Activation {
    async fn is_over(&mut self, link: &Link, state: &State) -> bool {
        if self.is_over {
            return true;
        }
        // The last number that a server reports may be stale. A message that a majority has just stored comes after all
        // earlier ones.
        if self.stored.is_none() {
            self.stored = mark(link, state).await.map(|_| Instant::now());
        }
        // The previous leader may have reports that it could not publish while the servers were away.
        let may_report = link.settings.lease / 4;
        if self.last.is_none() && self.stored.is_some_and(|since| since.elapsed() >= may_report) {
            self.last = mark(link, state).await;
        }
        self.is_over = self.last.is_some_and(|last| state.stream_position() >= last);
        if self.is_over {
            tracing::info!(member = state.member(), "this master leads the cluster: it carries out reactions");
        }
        self.is_over
    }
}

/// Stores a message without events in the stream, and returns its number; `None` if the servers do not answer in time, or
/// have lost messages that are on this bus, so that the stream has to be read again first.
async fn mark(link: &Link, state: &State) -> Option<u64> {
    let before = state.stream_position();
    let marked = tokio::time::timeout(link.settings.lease / 4, link.mark(state)).await;
    marked.ok()?.ok().filter(|number| *number > before)
}

enum Renewed {
    /// This member has the lease, with this revision.
    Held(u64),
    /// Another member holds the lease.
    Other,
    NoAnswer,
}

async fn renew(link: &Link, state: &State, held: Option<u64>) -> Renewed {
    let Ok(resources) = link.resources().await else { return Renewed::NoAnswer };
    let name = link.seal(LEADER, state.member().as_bytes());
    match held {
        Some(revision) => match resources.lease.update(LEADER, name, revision).await {
            Ok(revision) => Renewed::Held(revision),
            Err(error) if error.kind() == kv::UpdateErrorKind::WrongLastRevision => Renewed::Other,
            Err(_) => Renewed::NoAnswer,
        },
        None => match resources.lease.create(LEADER, name).await {
            Ok(revision) => Renewed::Held(revision),
            Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => Renewed::Other,
            Err(_) => Renewed::NoAnswer,
        },
    }
}
