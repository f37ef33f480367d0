//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter ACCEPT_FAILED = "brine_accept_failed_total", "Connections that could not be taken.";
    counter CONNECTIONS_REFUSED = "brine_connections_refused_total", "Connections that were closed because of what they sent.";
    counter CONNECTIONS_LIMITED = "brine_connections_limited_total", "Connections that were closed at once because there were too many.";
    counter CONNECTIONS_EVICTED = "brine_connections_evicted_total", "Connections of unauthenticated peers that gave way to new ones because there were too many.";
    counter MESSAGES_DROPPED = "brine_messages_dropped_total", "Messages that were not kept because unauthenticated peers may not send or hold so much.";
    counter SUBSCRIBERS_DROPPED = "brine_subscribers_dropped_total", "Subscribers of the publish port that were disconnected because they were too far behind.";
    counter TASKS_PANICKED = "brine_tasks_panicked_total", "Connections and requests that ended by a panic.";
    counter REQUESTS = "brine_requests_total", "Requests taken.";
    counter REPLIES_LOST = "brine_replies_lost_total", "Replies whose receiver went away.";
    counter PUBLISHES_LOST = "brine_publishes_lost_total", "Publishes that a too slow subscriber missed.";
    gauge CONNECTIONS = "brine_connections", "Open connections of the network ports.";
}
