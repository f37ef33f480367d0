//! The metrics of logins.

brine_metrics::metrics! {
    counter LOGINS["system", "outcome"] = "brine_logins_total", "Password authentications with backends of `external_auth` by outcome: accepted, refused, throttled, busy (too many at once), failed (the backend did not answer).";
}
