//! The metrics that this crate and its rules count.

/// The metrics of rules over time.
pub use brine_rules::metrics::METRICS as RULE_METRICS;

brine_metrics::metrics! {
    counter REACTIONS = "brine_reactions_total", "Reactions dispatched.";
    counter REACTIONS_FAILED = "brine_reactions_failed_total", "Reactions that failed.";
    counter REACTIONS_RETRIED = "brine_reactions_retried_total", "Retries of reactions after a temporary failure.";
    counter REACTIONS_LIMITED = "brine_reactions_limited_total", "Reactions suppressed by `reactor_rate_limit`, `reactor_cooldown` or `reactor_debounce`.";
    counter REACTIONS_FORGOTTEN = "brine_reactions_forgotten_total", "Dead letters dropped because there were too many.";
    counter REACTIONS_OVERDUE = "brine_reactions_overdue_total", "Events whose reactions were cancelled at `reactor_deadline`.";
    counter REACTOR_WRITES_FAILED = "brine_reactor_writes_failed_total", "Writes of the reactor that the store refused; each is retried.";
    counter REACTION_LOOPS = "brine_reaction_loops_total", "Events without reaction because their chain of reactions had reached `reactor_max_depth`.";
    counter REACTOR_ERRORS = "brine_reactor_errors_total", "Reactor SLS files that could not be read, rendered or compiled.";
    counter REACTIONS_BY_ENTRY["entry", "outcome"] = "brine_reactor_reactions_total", "Reactions by entry and outcome: done, no_minion (no minion matched the target), failed, unreadable.";
    gauge QUEUE_DEPTH = "brine_reactor_queue_depth", "Events queued for, or handled by, a reactor worker.";
    gauge REACTOR_DETACHED = "brine_reactor_detached_threads", "Threads with reactions of more than 10 s, which no longer count as workers; at most 64.";
    gauge REACTOR_PAUSED = "brine_reactor_paused", "1 while the reactor takes no events because too many reactions are unfinished, else 0.";
    histogram RENDER_SECONDS = "brine_reactor_render_seconds", "Time to render a reactor SLS file.";
    histogram REACTION_SECONDS = "brine_reactor_reaction_seconds", "Time from taking an event to having dispatched its reactions.";
}
