//! The metrics of this crate.

brine_metrics::metrics! {
    counter EVENTS = "brine_events_total", "Events published on the bus.";
    counter EVENT_BYTES = "brine_event_bytes_total", "Bytes of the events published on the bus.";
    counter EVENTS_REFUSED = "brine_events_refused_total", "Events refused: malformed, too large, nested too deep, or with a tag that the sender may not use.";
    counter EVENTS_MISSED = "brine_events_missed_total", "Events that a subscriber missed: there is no journal, or they had been removed from it.";
    counter JOURNAL_FAILED = "brine_journal_failed_total", "Events that could not be written to the journal.";
    counter JOURNAL_RESTARTS = "brine_journal_restarts_total", "Restarts of the journal writer after a panic.";
    counter STORE_COMMITS = "brine_store_commits_total", "Commits of the store, each of which flushes its disk once.";
    counter STORE_FAILURES = "brine_store_failures_total", "Transitions of the store to its failed state: disk full, read-only or broken.";
    counter STORE_REFUSED = "brine_store_refused_total", "Writes refused by the store: it had failed, or its queue was full.";
    counter STORE_DAMAGED = "brine_store_damaged_total", "Reads and writes that hit a damaged page or row of the store.";
    counter STORE_REPLACED = "brine_store_replaced_total", "Stores damaged beyond repair, moved aside and replaced by an empty one, and stores found empty.";
    counter STORE_PANICS = "brine_store_panics_total", "Panics of the store's thread, after which the store is reopened.";
    counter STORE_UNCHECKED = "brine_store_unchecked_total", "Writes refused by the store that their callers do not repeat.";
    gauge SUBSCRIBER_LAG["subscriber"] = "brine_subscriber_lag_events", "Events that a durable subscriber has not handled yet.";
    gauge JOURNAL_BYTES = "brine_journal_bytes", "Bytes of the events in the journal.";
    gauge JOURNAL_EVENTS = "brine_journal_events", "Events in the journal.";
    gauge STORE_FAILED = "brine_store_failed", "1 while the store refuses writes because of a disk failure, else 0.";
    gauge STORE_BYTES = "brine_store_bytes", "Bytes of the store on disk.";
    gauge SUBSCRIBERS = "brine_event_subscribers", "Programs subscribed to the event bus through its socket.";
}
