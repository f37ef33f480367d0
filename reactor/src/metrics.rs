//! The metrics that this crate counts.

brine_metrics::metrics! {
    counter REACTIONS = "brine_reactions_total", "Reactions handed over.";
    counter REACTIONS_FAILED = "brine_reactions_failed_total", "Reactions that failed.";
    counter REACTIONS_RETRIED = "brine_reactions_retried_total", "Reactions tried again because their failure could pass.";
    counter REACTIONS_LIMITED = "brine_reactions_limited_total", "Reactions left out by reactor_rate_limit, reactor_cooldown and reactor_debounce.";
    counter REACTIONS_FORGOTTEN = "brine_reactions_forgotten_total", "Failed reactions that left because too many were put aside.";
    counter REACTIONS_OVERDUE = "brine_reactions_overdue_total", "Events whose reactions were cancelled because they exceeded reactor_deadline.";
    counter REACTOR_WRITES_FAILED = "brine_reactor_writes_failed_total", "Writes of the reactor that the store refused; each is tried again.";
    counter RULE_KEYS_FORGOTTEN = "brine_reactor_rule_keys_forgotten_total", "Keys of rules over time that left because there were too many.";
    counter REACTION_LOOPS = "brine_reaction_loops_total", "Events that were not reacted to because too many reactions led to them.";
    counter REACTOR_ERRORS = "brine_reactor_errors_total", "Reactor SLS files that could not be read, rendered or compiled.";
    counter REACTIONS_BY_ENTRY["entry", "outcome"] = "brine_reactor_reactions_total", "Reactions by entry and outcome: done, no_minion (published to nobody), failed, unreadable.";
    gauge QUEUE_DEPTH = "brine_reactor_queue_depth", "Events that wait for, or are with, a worker of the reactor.";
    gauge REACTOR_DETACHED = "brine_reactor_detached_threads", "Threads of slow reactions that count as workers no more.";
    gauge REACTOR_PAUSED = "brine_reactor_paused", "1 while the reactor takes no events because too many reactions are open.";
    histogram RENDER_SECONDS = "brine_reactor_render_seconds", "Seconds to render a reactor SLS.";
    histogram REACTION_SECONDS = "brine_reactor_reaction_seconds", "Seconds from taking an event to having handed over its reactions.";
}
