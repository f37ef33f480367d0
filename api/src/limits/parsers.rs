//! Turns for parsing bodies: a few at once, by turns of the senders, so that one sender does not delay others.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use brine_runtime::executors::Executor;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Owner;
use crate::error::ApiError;

/// The number of bodies that are parsed at once.
const TURNS: usize = 2;

/// The queue of bodies.
#[derive(Default)]
pub(crate) struct Parsers {
    queue: Mutex<Queue>,
    /// A thread for each turn. The limits exist before the runtime, so it is created with the first body.
    executor: OnceLock<Executor>,
}

#[derive(Default)]
struct Queue {
    taken: usize,
    /// The owners with waiting bodies, in the order of their turns.
    order: VecDeque<Owner>,
    waiting: HashMap<Owner, VecDeque<oneshot::Sender<Turn>>>,
}

/// The right to parse one body, until it is dropped.
struct Turn(Option<Arc<Parsers>>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(parsers) = self.0.take() {
            parsers.pass();
        }
    }
}

impl Parsers {
    /// Runs work on the executor `parsers` when it is the owner's turn.
    pub async fn run<R: Send + 'static>(
        self: &Arc<Self>,
        owner: Owner,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, ApiError> {
        let turn = self.turn(owner).await.ok_or_else(ApiError::internal)?;
        let executor = self.executor.get_or_init(|| Executor::new("parsers", TURNS, TURNS));
        let working = executor.run(move |_| {
            // Held until the work is done, also if the sender has gone.
            let _turn = turn;
            work()
        });
        working.await.map_err(|_| ApiError::internal())
    }

    async fn turn(self: &Arc<Self>, owner: Owner) -> Option<Turn> {
        let waiting = {
            let mut queue = self.queue.lock();
            if queue.taken < TURNS {
                queue.taken += 1;
                return Some(Turn(Some(Arc::clone(self))));
            }
            let (sender, receiver) = oneshot::channel();
            let own = queue.waiting.entry(owner.clone()).or_default();
            own.push_back(sender);
            if own.len() == 1 {
                queue.order.push_back(owner);
            }
            receiver
        };
        waiting.await.ok()
    }

    /// Passes a turn to the next owner.
    fn pass(self: Arc<Self>) {
        loop {
            let Some(next) = self.next() else { return };
            match next.send(Turn(Some(Arc::clone(&self)))) {
                Ok(()) => return,
                // The sender has gone: the turn goes to the next one.
                Err(mut turn) => turn.0 = None,
            }
        }
    }

    /// Returns the next waiting body; if there is none, the turn ends.
    fn next(&self) -> Option<oneshot::Sender<Turn>> {
        let mut queue = self.queue.lock();
        let Some(owner) = queue.order.pop_front() else {
            queue.taken -= 1;
            return None;
        };
        let own = queue.waiting.get_mut(&owner)?;
        let next = own.pop_front();
        if own.is_empty() {
            queue.waiting.remove(&owner);
        } else {
            queue.order.push_back(owner);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[tokio::test]
    async fn owners_take_turns() {
        let parsers = Arc::new(Parsers::default());
        let owner = |number: u8| Owner::of_address(IpAddr::from([10, 0, 0, number]));
        let (first, second) = (parsers.turn(owner(1)).await.unwrap(), parsers.turn(owner(1)).await.unwrap());
        let (sender, mut order) = tokio::sync::mpsc::unbounded_channel();
        for (number, name) in [(1, "a1"), (1, "a2"), (1, "gone"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            let (parsers, sender) = (Arc::clone(&parsers), sender.clone());
            let task = tokio::spawn(async move {
                let turn = parsers.turn(owner(number)).await;
                sender.send(name).unwrap();
                drop(turn);
            });
            tokio::task::yield_now().await;
            if name == "gone" {
                task.abort();
            }
        }
        tokio::task::yield_now().await;
        drop(first);
        let mut ran = Vec::new();
        for _ in 0..6 {
            ran.push(order.recv().await.unwrap());
        }
        assert_eq!(ran, ["a1", "b1", "c1", "a2", "b2", "a3"]);
        drop(second);
        let queue = parsers.queue.lock();
        assert!(queue.taken == 0 && queue.order.is_empty() && queue.waiting.is_empty());
    }
}
