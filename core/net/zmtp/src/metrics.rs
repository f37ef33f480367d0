//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter ACCEPT_FAILED = "brine_accept_failed_total", "Incoming connections that could not be accepted.";
    counter CONNECTIONS_REFUSED = "brine_connections_refused_total", "Connections closed because of an invalid handshake or message.";
    counter CONNECTIONS_LIMITED = "brine_connections_limited_total", "Connections closed on arrival because of `max_connections` or `max_connections_per_address`.";
    counter CONNECTIONS_EVICTED = "brine_connections_evicted_total", "Idle connections of unauthenticated peers closed in favour of new ones.";
    counter MESSAGES_DROPPED = "brine_messages_dropped_total", "Messages dropped because they exceed the size or memory limit of unauthenticated peers.";
    counter SUBSCRIBERS_DROPPED = "brine_subscribers_dropped_total", "Subscribers of the publish port disconnected because they lagged too far behind.";
    counter TASKS_PANICKED = "brine_tasks_panicked_total", "Panics in tasks that handle a connection or a request.";
    counter REQUESTS = "brine_requests_total", "Requests received.";
    counter REPLIES_LOST = "brine_replies_lost_total", "Replies whose receiver had disconnected.";
    counter PUBLISHES_LOST = "brine_publishes_lost_total", "Publishes dropped for a subscriber that lagged too far behind.";
    gauge CONNECTIONS = "brine_connections", "Open connections of the network ports.";
}
