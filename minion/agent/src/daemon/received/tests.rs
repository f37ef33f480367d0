use super::*;

fn master(name: &str) -> Address {
    Address { host: name.to_owned(), port: 4506 }
}

/// Simulates a sequence of events, one a second: `A` joins the master A, `a` is a job of it, `-` is the end of the
/// session, `.` a second without events. Returns the request to a master thereafter, as last job and seconds.
fn play(earlier: Option<&str>, story: &str, to: &str, are_several: bool) -> String {
    let mut received = Received::after(earlier.map(str::to_owned));
    let mut now = Instant::now();
    for (number, step) in story.chars().enumerate() {
        match step {
            '-' => received.left(now),
            '.' => {}
            step if step.is_uppercase() => received.joined(&master(&step.to_string()), now),
            step => received.job(&master(&step.to_uppercase().to_string()), &format!("{step}{number}")),
        }
        now += Duration::from_secs(1);
    }
    let options =
        CatchUpOptions { max_age: Duration::from_secs(60), detection_time: Duration::from_secs(4), are_several };
    let Some(load) = received.request(&master(to), options, now) else { return "none".into() };
    let away = load.get("away").map(ToString::to_string).unwrap_or_default();
    format!("{} {away}", load["jid"])
}

#[test]
fn catch_up_begins_where_the_session_ended() {
    for (earlier, story, to, expected) in [
        // A start.
        (None, "", "A", "none"),
        (Some("old"), "", "A", "old 61"),
        // A failed connection does not count as a session: this is still a start.
        (None, "-", "A", "none"),
        // Back at the same master, with and without a job of it.
        (Some("old"), "Aa-..", "A", "a1 "),
        (Some("old"), "A-..", "A", " 5"),
        // At another master, the request contains the time without a session.
        (None, "Aa-..", "B", "a1 8"),
        (Some("old"), "A-..", "B", "old 61"),
        (None, "A-..", "B", " 8"),
        // A failed attempt in between is not a session.
        (None, "Aa--.", "B", "a1 8"),
        // Back at the first one: from its own last job, not from that of the other.
        (None, "Aa-B.b.b-", "A", "a1 "),
        (None, "A-B.b.b-.", "A", " 10"),
    ] {
        assert_eq!(play(earlier, story, to, true), expected, "{story} {to}");
    }
    assert_eq!(play(Some("old"), "", "A", false), "old ");
}
