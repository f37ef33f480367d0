//! The leader of a cluster: the member that holds a lease, which ends by itself when it is not renewed.

use std::sync::Arc;
use std::time::Instant;

use async_nats::jetstream::kv;
use tokio_util::sync::CancellationToken;

use crate::link::Link;
use crate::state::State;

/// The key of the lease.
const LEADER: &str = "leader";

/// Acquires and renews the lease until `shutdown`, and gives it up then.
pub(crate) async fn keep(link: Arc<Link>, state: Arc<State>, shutdown: CancellationToken) {
    let mut held = None;
    tokio::select! {
        () = acquire(&link, &state, &mut held) => {}
        () = shutdown.cancelled() => {}
    }
    state.set_lead(None);
    if let Some(revision) = held
        && let Ok(resources) = link.resources().await
        && resources.lease.delete_expect_revision(LEADER, Some(revision)).await.is_err()
    {
        tracing::debug!("the lease of the leader could not be given up: it ends by itself");
    }
}

/// Acquires and renews the lease. `held` is its revision while this member has it.
async fn acquire(link: &Link, state: &State, held: &mut Option<u64>) {
    let lease = link.settings.lease;
    loop {
        // A lease counts from before the request: it ends here before it does on the servers.
        let began = Instant::now();
        let renewed = tokio::time::timeout(lease / 3, renew(link, state, *held)).await.unwrap_or(Renewed::NoAnswer);
        match renewed {
            Renewed::Held(revision) => {
                state.heard_servers();
                if held.is_none() {
                    tracing::info!(member = state.member(), "this master leads the cluster: it carries out reactions");
                }
                *held = Some(revision);
                state.set_lead(Some(began + lease * 9 / 10));
            }
            Renewed::Other => {
                state.heard_servers();
                if held.take().is_some() {
                    tracing::warn!(member = state.member(), "another master leads the cluster now");
                }
                state.set_lead(None);
            }
            Renewed::NoAnswer => {
                link.forget_resources();
                if held.is_some() && !state.leads() {
                    *held = None;
                    tracing::warn!("the lease of the leader could not be renewed: another master takes over");
                }
                if held.is_none() {
                    state.set_lead(None);
                }
            }
        }
        tokio::time::sleep((lease / 3).saturating_sub(began.elapsed())).await;
    }
}

enum Renewed {
    /// This member has the lease, with this revision.
    Held(u64),
    /// Another member has it.
    Other,
    NoAnswer,
}

async fn renew(link: &Link, state: &State, held: Option<u64>) -> Renewed {
    let Ok(resources) = link.resources().await else { return Renewed::NoAnswer };
    let name = link.encrypt(LEADER, state.member().as_bytes());
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
