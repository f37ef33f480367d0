use super::*;

#[test]
fn the_next_time_is_found() {
    // A Saturday.
    let now: DateTime = "2026-11-21T12:30:10".parse().unwrap();
    for (entry, expected) in [
        ("* * * * *", "2026-11-21T12:31:00"),
        ("*/15 * * * *", "2026-11-21T12:45:00"),
        ("5/20 * * * *", "2026-11-21T12:45:00"),
        ("30 12 * * *", "2026-11-22T12:30:00"),
        ("0 9-17/4 * * *", "2026-11-21T13:00:00"),
        ("0 8,20 * * *", "2026-11-21T20:00:00"),
        ("0 0 1 * *", "2026-12-01T00:00:00"),
        ("0 0 L * *", "2026-11-30T00:00:00"),
        ("0 0 29 2 *", "2028-02-29T00:00:00"),
        ("0 0 * * mon-fri", "2026-11-23T00:00:00"),
        ("0 0 * * 7", "2026-11-22T00:00:00"),
        ("0 0 * * fri-sun", "2026-11-22T00:00:00"),
        ("0 0 * jan *", "2027-01-01T00:00:00"),
        // One of the day fields is enough if both are restricted.
        ("0 0 13 * mon", "2026-11-23T00:00:00"),
        ("* * * * * 30", "2026-11-21T12:30:30"),
        ("@hourly", "2026-11-21T13:00:00"),
        ("@weekly", "2026-11-22T00:00:00"),
    ] {
        let next = Cron::parse(entry).unwrap().after(now);
        assert_eq!(next.map(|next| next.to_string()).as_deref(), Some(expected), "{entry}");
    }
    assert_eq!(Cron::parse("0 0 30 2 *").unwrap().after(now), None);
}

#[test]
fn invalid_entries_are_explained() {
    for (entry, error) in [
        ("* * *", "'* * *' has 3 fields: a crontab entry has 5"),
        ("61 * * * *", "'61' is no number from 0 to 59"),
        ("* * * * someday", "'someday' is no number from 0 to 7"),
        ("*/0 * * * *", "'*/0': the step behind '/' is a number from 1 on"),
    ] {
        assert_eq!(Cron::parse(entry).unwrap_err().to_string(), error);
    }
}
