//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter EVENTS = "brine_events_total", "Events that went over the bus.";
    counter EVENT_BYTES = "brine_event_bytes_total", "Bytes of events that went over the bus.";
    counter EVENTS_REFUSED = "brine_events_refused_total", "Events that were refused: malformed or too large.";
    counter EVENTS_MISSED = "brine_events_missed_total", "Events that a subscriber missed because there is no journal or they had left it.";
    counter JOURNAL_FAILED = "brine_journal_failed_total", "Events that could not be written to the journal.";
    counter JOURNAL_RESTARTS = "brine_journal_restarts_total", "Restarts of the journal writer after a panic.";
    counter STORE_FAILURES = "brine_store_failures_total", "Failures of the store: the disk was full, read-only or broken.";
    counter STORE_REFUSED = "brine_store_refused_total", "Writes that the store refused because it had failed or its queue was full.";
    counter STORE_DAMAGED = "brine_store_damaged_total", "Reads and writes that met a damaged page or row of the store.";
    counter STORE_REPLACED = "brine_store_replaced_total", "Stores that were damaged beyond repair while the master ran: moved aside, with an empty one in their place.";
    gauge SUBSCRIBER_LAG["subscriber"] = "brine_subscriber_lag_events", "Events that a durable subscriber has not handled yet.";
    gauge JOURNAL_BYTES = "brine_journal_bytes", "Bytes of events in the journal.";
    gauge JOURNAL_EVENTS = "brine_journal_events", "Events in the journal.";
    gauge STORE_FAILED = "brine_store_failed", "1 while the store refuses writes because the disk takes none, else 0.";
    gauge STORE_BYTES = "brine_store_bytes", "Bytes that the store takes on its disk.";
    gauge SUBSCRIBERS = "brine_event_subscribers", "Programs that follow the event bus through its socket.";
}
