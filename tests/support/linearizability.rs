//! Checks whether a history of concurrent calls is linearizable: whether each call can have taken effect at one moment
//! between its beginning and its end, so that all results follow from that order. The search is that of Wing and Gong,
//! with the memory of visited configurations that Lowe added.

use std::collections::HashSet;
use std::hash::Hash;

/// The sequential behaviour that a history must conform to.
pub trait Model {
    type State: Clone + Eq + Hash + Default;
    type Call: PartialEq;

    /// Returns the state after a call, or `None` if its result is impossible in this state.
    fn apply(state: &Self::State, call: &Self::Call) -> Option<Self::State>;
}

/// A call with its result, and the times of its beginning and end.
#[derive(Debug, Clone)]
pub struct Operation<C> {
    pub call: C,
    pub began: u64,
    /// `None` if the caller got no answer: then it may take effect at any later time, or never.
    pub ended: Option<u64>,
}

/// Returns an order in which the calls can have taken effect, as indexes; `None` if there is none.
pub fn linearization<M: Model>(history: &[Operation<M::Call>]) -> Option<Vec<usize>> {
    let mut search = Search::<M> { history, visited: HashSet::new(), order: Vec::new() };
    let is_placed = vec![false; history.len()];
    search.from(&is_placed, &M::State::default()).then_some(search.order)
}

struct Search<'a, M: Model> {
    history: &'a [Operation<M::Call>],
    visited: HashSet<(Vec<bool>, M::State)>,
    order: Vec<usize>,
}

impl<M: Model> Search<'_, M> {
    fn from(&mut self, is_placed: &[bool], state: &M::State) -> bool {
        let open = || self.history.iter().enumerate().filter(|(at, _)| !is_placed[*at]);
        // A call that began after another one had ended cannot take effect before it.
        let Some(first_end) = open().filter_map(|(_, operation)| operation.ended).min() else { return true };
        let candidates = open().filter(|(_, one)| one.began <= first_end);
        // Of equal calls without an answer, the first one is as good as any.
        let is_first = |at: usize, one: &Operation<M::Call>| {
            one.ended.is_some()
                || !open()
                    .take_while(|(other, _)| *other < at)
                    .any(|(_, other)| other.ended.is_none() && other.call == one.call)
        };
        let candidates: Vec<usize> = candidates.filter(|(at, one)| is_first(*at, one)).map(|(at, _)| at).collect();
        for at in candidates {
            let Some(next) = M::apply(state, &self.history[at].call) else { continue };
            let mut is_placed = is_placed.to_vec();
            is_placed[at] = true;
            if !self.visited.insert((is_placed.clone(), next.clone())) {
                continue;
            }
            self.order.push(at);
            if self.from(&is_placed, &next) {
                return true;
            }
            self.order.pop();
        }
        false
    }
}

/// A queue of different items, first in, first out.
pub struct Queue;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueCall {
    /// Appends an item; the result is whether it was not in the queue yet, if that is known.
    Insert(u32, Option<bool>),
    /// Takes the oldest item; the result is that item, or `None` from an empty queue, if that is known.
    #[allow(clippy::option_option, reason = "an unknown result, an empty queue, an item")]
    Pop(Option<Option<u32>>),
    /// Takes the oldest item, which is one of these.
    PopOneOf(Vec<u32>),
}

/// Returns a history that is linearizable if and only if this one is, with fewer calls without an answer. Items differ, so
/// an insert without an answer matters only if its item was taken; and a pop without an answer only if it took an item
/// that nobody else took.
pub fn relevant(history: Vec<Operation<QueueCall>>) -> Vec<Operation<QueueCall>> {
    let taken: HashSet<u32> = history
        .iter()
        .filter_map(|operation| match operation.call {
            QueueCall::Pop(Some(item)) => item,
            _ => None,
        })
        .collect();
    let mut missing: Vec<u32> = history
        .iter()
        .filter_map(|operation| match operation.call {
            QueueCall::Insert(item, Some(true)) if !taken.contains(&item) => Some(item),
            _ => None,
        })
        .collect();
    missing.sort_unstable();
    history
        .into_iter()
        .filter_map(|operation| match operation.call {
            QueueCall::Insert(item, None) if !taken.contains(&item) => None,
            QueueCall::Pop(None) if missing.is_empty() => None,
            QueueCall::Pop(None) => Some(Operation { call: QueueCall::PopOneOf(missing.clone()), ..operation }),
            _ => Some(operation),
        })
        .collect()
}

impl Model for Queue {
    type State = Vec<u32>;
    type Call = QueueCall;

    fn apply(state: &Vec<u32>, call: &QueueCall) -> Option<Vec<u32>> {
        let mut next = state.clone();
        match call {
            QueueCall::Insert(item, added) => {
                let is_new = !state.contains(item);
                if is_new {
                    next.push(*item);
                }
                added.is_none_or(|added| added == is_new).then_some(next)
            }
            QueueCall::Pop(taken) => {
                let head = state.first().copied();
                if head.is_some() {
                    next.remove(0);
                }
                taken.is_none_or(|taken| taken == head).then_some(next)
            }
            QueueCall::PopOneOf(items) => {
                let head = state.first()?;
                next.remove(0);
                items.contains(head).then_some(next)
            }
        }
    }
}

/// A value that is overwritten and read; first it is 0.
pub struct Register;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegisterCall {
    Write(u32),
    /// Reads this value.
    Read(u32),
}

impl Model for Register {
    type State = u32;
    type Call = RegisterCall;

    fn apply(state: &u32, call: &RegisterCall) -> Option<u32> {
        match call {
            RegisterCall::Write(value) => Some(*value),
            RegisterCall::Read(value) => (value == state).then_some(*state),
        }
    }
}

/// Whether something that was seen at these times, one after the other, came and went at most once.
pub fn comes_and_goes_once(seen: impl IntoIterator<Item = bool>) -> bool {
    let mut changes: Vec<bool> = seen.into_iter().skip_while(|present| !present).collect();
    changes.dedup();
    changes.len() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation<C>(began: u64, ended: u64, call: C) -> Operation<C> {
        Operation { call, began, ended: (ended > 0).then_some(ended) }
    }

    #[test]
    fn histories_of_queues_are_judged() {
        use QueueCall::{Insert, Pop};
        let added = |item| Insert(item, Some(true));
        let took = |item| Pop(Some(Some(item)));
        for (what, expected, history) in [
            ("in order", true, vec![(1, 2, added(1)), (3, 4, added(2)), (5, 6, took(1)), (7, 8, took(2))]),
            ("overtaken", false, vec![(1, 2, added(1)), (3, 4, added(2)), (5, 6, took(2))]),
            ("concurrent inserts", true, vec![(1, 4, added(1)), (2, 3, added(2)), (5, 6, took(2)), (7, 8, took(1))]),
            ("taken twice", false, vec![(1, 2, added(1)), (3, 4, took(1)), (5, 6, took(1))]),
            ("taken twice at once", false, vec![(1, 2, added(1)), (3, 6, took(1)), (4, 5, took(1))]),
            ("lost", false, vec![(1, 2, added(1)), (3, 4, Pop(Some(None)))]),
            ("taken by an unanswered call", true, vec![(1, 2, added(1)), (3, 0, Pop(None)), (5, 6, Pop(Some(None)))]),
            ("inserted by an unanswered call", true, vec![(1, 0, Insert(1, None)), (5, 6, took(1))]),
            ("inserted by a later call", false, vec![(1, 2, took(1)), (3, 0, Insert(1, None))]),
            ("a duplicate", true, vec![(1, 2, added(1)), (3, 4, Insert(1, Some(false))), (5, 6, took(1))]),
            ("no duplicate", false, vec![(1, 2, added(1)), (3, 4, took(1)), (5, 6, Insert(1, Some(false)))]),
            ("never inserted", true, vec![(1, 0, Insert(1, None)), (5, 6, Pop(Some(None)))]),
        ] {
            let history: Vec<_> =
                history.into_iter().map(|(began, ended, call)| operation(began, ended, call)).collect();
            assert_eq!(linearization::<Queue>(&history).is_some(), expected, "{what}");
            assert_eq!(linearization::<Queue>(&relevant(history)).is_some(), expected, "{what}, relevant calls");
        }
    }

    #[test]
    fn histories_of_registers_are_judged() {
        use RegisterCall::{Read, Write};
        for (what, expected, history) in [
            ("never written", true, vec![(1, 2, Read(0))]),
            ("read again", true, vec![(1, 2, Write(1)), (3, 4, Read(1)), (5, 6, Read(1))]),
            ("lost", false, vec![(1, 2, Write(1)), (3, 4, Read(0))]),
            ("undone", false, vec![(1, 2, Write(1)), (3, 4, Write(2)), (5, 6, Read(1))]),
            ("concurrent writes", true, vec![(1, 4, Write(1)), (2, 3, Write(2)), (5, 6, Read(1))]),
            ("back and forth", false, vec![(1, 4, Write(1)), (2, 3, Write(2)), (5, 6, Read(1)), (7, 8, Read(2))]),
            (
                "a late unanswered write",
                true,
                vec![(1, 0, Write(1)), (3, 4, Write(2)), (5, 6, Read(2)), (7, 8, Read(1))],
            ),
            ("a future write", false, vec![(1, 2, Read(1)), (3, 0, Write(1))]),
        ] {
            let history: Vec<_> =
                history.into_iter().map(|(began, ended, call)| operation(began, ended, call)).collect();
            assert_eq!(linearization::<Register>(&history).is_some(), expected, "{what}");
        }
    }

    #[test]
    fn what_returns_is_noticed() {
        for (expected, seen) in [
            (true, &[][..]),
            (true, &[false]),
            (true, &[true, true]),
            (true, &[false, true, true, false, false]),
            (false, &[true, false, true]),
            (false, &[false, true, false, false, true]),
        ] {
            assert_eq!(comes_and_goes_once(seen.iter().copied()), expected, "{seen:?}");
        }
    }
}
