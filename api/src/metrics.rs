//! The metrics of this crate, and the registration of all metrics of the API.

brine_metrics::metrics! {
    counter REQUESTS = "brine_api_requests_total", "Requests of the REST API.";
    counter REQUESTS_FAILED = "brine_api_requests_failed_total", "Requests of the REST API with an error status (400 or above).";
    counter LOGINS = "brine_api_logins_total", "Sessions begun by users of the REST API.";
    counter UNAUTHENTICATED = "brine_api_unauthenticated_total", "Requests of the REST API without valid credentials or permission.";
    gauge CONNECTIONS = "brine_api_connections", "Open connections of the REST API.";
    counter CONNECTIONS_REFUSED = "brine_api_connections_refused_total", "Connections of the REST API closed at once: too many in all, or of one address.";
    counter CONNECTIONS_EVICTED = "brine_api_connections_evicted_total", "Connections of the REST API without a login that were closed in favour of others.";
    counter BODIES_ENDED = "brine_api_bodies_ended_total", "Requests of the REST API whose body arrived slowly and that were ended in favour of others.";
    counter BODIES_REFUSED["reason"] = "brine_api_bodies_refused_total", "Bodies of requests of the REST API that were refused, by reason: size, memory, time.";
    counter WEBHOOKS_REPEATED = "brine_api_webhooks_repeated_total", "Signed webhooks that were not published because they had been published before.";
    gauge SUBSCRIBERS = "brine_api_subscribers", "Clients that follow events by the REST API.";
    counter SUBSCRIBERS_CLOSED["reason"] = "brine_api_subscribers_closed_total", "Event streams that the REST API closed, by reason: expired, slow, stopped, unread.";
    counter EVENTS_REPLAYED = "brine_api_events_replayed_total", "Events that subscribers of the REST API got from the journal.";
}

/// Registers the metrics of all crates of the API.
pub fn register() {
    brine_metrics::register(&[
        METRICS,
        brine_job::metrics::METRICS,
        brine_runtime::metrics::METRICS,
        brine_system::metrics::METRICS,
        brine_wire::metrics::METRICS,
        brine_zmtp::metrics::METRICS,
    ]);
}
