//! The metrics of this crate.

brine_metrics::metrics! {
    counter EVENTS_SENT = "brine_cluster_events_sent_total", "Events of this master that the cluster has stored.";
    counter EVENTS_RECEIVED = "brine_cluster_events_received_total", "Events of other masters that were published on this bus.";
    counter EVENTS_LOST = "brine_cluster_events_lost_total", "Events that were not passed on: refused by a bus, or not decodable.";
    counter VALUES_REFUSED = "brine_cluster_values_refused_total", "Entries of tables that were not replicated: they cannot be decoded, or are invalid.";
    counter VALUES_MISSED = "brine_cluster_values_missed_total", "Attempts to read or store an entry of a table on this master that failed; each is followed by another.";
    gauge CONNECTED = "brine_cluster_connected", "Whether the NATS servers answer.";
    gauge LEADER = "brine_cluster_leader", "Whether this master carries out the reactions of the cluster.";
}
