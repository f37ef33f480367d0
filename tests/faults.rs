//! The fault suite: a master and a minion under load, one fault per round, and a ledger of everything acknowledged.
//!
//! `tests/faults/run` runs it with more rounds, other seeds or chosen faults; docs/faults.md describes it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

#[path = "faults/mod.rs"]
mod suite;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_under_faults() {
    suite::run().await;
}
