use super::*;

metrics! {
    counter REPLIES_LOST = "brine_replies_lost_total", "Replies whose receiver went away.";
    counter REACTIONS_BY_ENTRY["entry", "outcome"] = "brine_reactor_reactions_total", "Reactions.";
    gauge SUBSCRIBER_LAG["subscriber"] = "brine_subscriber_lag_events", "Events not handled yet.";
    gauge CONNECTIONS = "brine_connections", "Open connections.";
    histogram RENDER_SECONDS = "brine_reactor_render_seconds", "Seconds to render.";
}

#[test]
fn metrics_are_exported_in_prometheus_format() {
    register(&[METRICS]);
    register(&[METRICS]);
    assert_eq!(registered().len(), METRICS.len());
    REPLIES_LOST.add(2);
    REACTIONS_BY_ENTRY.with(&["salt/\"auth\"", "done"]).add(3);
    RENDER_SECONDS.observe(0.002);
    let text = prometheus();
    for line in [
        "# TYPE brine_replies_lost_total counter\nbrine_replies_lost_total 2\n",
        "# TYPE brine_reactor_reactions_total counter\n",
        "brine_reactor_reactions_total{entry=\"salt/\\\"auth\\\"\",outcome=\"done\"} 3\n",
        "# TYPE brine_subscriber_lag_events gauge\n",
        "# TYPE brine_connections gauge\nbrine_connections 0\n",
        "brine_reactor_render_seconds_bucket{le=\"0.001\"} 0\n",
        "brine_reactor_render_seconds_bucket{le=\"0.005\"} 1\n",
        "brine_reactor_render_seconds_count 1\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert!(pairs().contains(&("brine_replies_lost_total".to_owned(), "2".to_owned())));
    assert!(pairs().iter().all(|(name, _)| !name.contains("bucket")));
}

#[test]
fn the_number_of_label_sets_is_bounded() {
    let family = Family::new("x", "x", &["n"], true);
    for n in 0..LABELS + 10 {
        family.with(&[&n.to_string()]).add(1);
    }
    let all = family.all();
    assert_eq!(all.len(), LABELS + 1);
    assert!(all.contains(&(vec!["(other)".to_owned()], 10)));
}
