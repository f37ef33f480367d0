use brine_value::map;

use super::*;

fn jid(n: u32) -> Jid {
    format!("202611210000000000{n:02}").parse().unwrap()
}

fn packed(load: &Map) -> Bytes {
    msgpack::pack_map(load).into()
}

/// Returns the last digits of the jids.
fn jids(publishes: &[Arc<Publish>]) -> Vec<String> {
    publishes.iter().map(|publish| publish.jid.as_str()[18..].to_owned()).collect()
}

fn since(last: Option<Jid>, away: Option<u64>) -> CatchUp {
    CatchUp { last, away }
}

#[test]
fn a_minion_gets_the_jobs_after_its_last_one() {
    let publishes = RecentPublishes::new(Duration::from_secs(60), false);
    let load = |n| map! {"jid" => &jid(n)};
    let now = Instant::now();
    // By age in seconds. The last job is published again after a restart.
    for (n, age) in [(1, 90), (3, 30), (2, 20), (5, 18), (3, 10)] {
        publishes.record_at(&jid(n), &packed(&load(n)), now.checked_sub(Duration::from_secs(age)).unwrap());
    }
    for (last, fresh, stale) in [
        (None, &["03", "02", "05", "03"][..], &["01"][..]),
        (Some(jid(1)), &["03", "02", "05", "03"], &[]),
        // In the order of publishing, not of jids.
        (Some(jid(3)), &["02", "05"], &[]),
        // Two that were published in parallel, in either order.
        (Some(jid(5)), &["02", "03"], &[]),
        (Some(jid(2)), &["05", "03"], &[]),
        (Some(jid(4)), &["05"], &[]),
        (Some(jid(0)), &["03", "02", "05", "03"], &["01"]),
    ] {
        let missed = publishes.after(&since(last.clone(), None), false);
        assert_eq!(
            (jids(&missed.fresh), jids(&missed.stale)),
            (fresh.iter().map(ToString::to_string).collect(), stale.iter().map(ToString::to_string).collect()),
            "{last:?}"
        );
    }
}

#[test]
fn a_stale_job_is_missed_only_if_it_is_newer_than_the_last_one() {
    let now = Instant::now();
    for is_member in [false, true] {
        let publishes = RecentPublishes::new(Duration::from_secs(60), is_member);
        for (n, age) in [(1, 94), (2, 92), (3, 90), (4, 88)] {
            let when = now.checked_sub(Duration::from_secs(age)).unwrap();
            publishes.record_at(&jid(n), &packed(&map! {"jid" => &jid(n)}), when);
        }
        for (last, away, stale) in [
            (Some(jid(4)), None, &[][..]),
            (Some(jid(3)), None, &["04"]),
            (Some(jid(9)), Some(87), &[]),
            (Some(jid(9)), Some(89), &["04"]),
        ] {
            let missed = publishes.after(&since(last.clone(), away), false);
            assert_eq!(jids(&missed.stale), strings(stale), "{last:?} {away:?}");
        }
    }
}

#[test]
fn a_syndic_gets_the_later_parts_of_its_last_job() {
    let publishes = RecentPublishes::new(Duration::from_secs(60), false);
    let now = Instant::now();
    for (n, age) in [(1, 50), (2, 30), (2, 20), (3, 10), (2, 5)] {
        let when = now.checked_sub(Duration::from_secs(age)).unwrap();
        publishes.record_at(&jid(n), &packed(&map! {"jid" => &jid(n)}), when);
    }
    let missed = publishes.after(&since(Some(jid(2)), None), true);
    assert_eq!(jids(&missed.fresh), strings(&["02", "02", "03", "02"]));
}

#[test]
fn a_minion_of_a_dead_member_gets_the_jobs_that_member_missed() {
    let publishes = RecentPublishes::new(Duration::from_secs(300), true);
    let now = Instant::now();
    for (n, age) in [(1, 400), (2, 200), (3, 40), (4, 20)] {
        let when = now.checked_sub(Duration::from_secs(age)).unwrap();
        publishes.record_at(&jid(n), &packed(&map! {"jid" => &jid(n)}), when);
    }
    for (last, fresh, stale) in [
        // The last job is known here: those of the minute before it count, too.
        (jid(4), &["03"][..], &[][..]),
        (jid(3), &["04"], &[]),
        // Only the dead member had the last job.
        (jid(5), &["02", "03", "04"], &[]),
        (jid(0), &["02", "03", "04"], &["01"]),
    ] {
        let missed = publishes.after(&since(Some(last.clone()), None), false);
        assert_eq!(
            (&jids(&missed.fresh)[..], &jids(&missed.stale)[..]),
            (&strings(fresh)[..], &strings(stale)[..]),
            "{last}"
        );
    }
}

#[test]
fn a_minion_of_another_master_gets_the_jobs_of_its_absence() {
    let publishes = RecentPublishes::new(Duration::from_secs(60), false);
    let now = Instant::now();
    for (n, age) in [(1, 90), (2, 50), (3, 20), (4, 10)] {
        let when = now.checked_sub(Duration::from_secs(age)).unwrap();
        publishes.record_at(&jid(n), &packed(&map! {"jid" => &jid(n)}), when);
    }
    for (last, away, fresh) in [
        // The other master's clock is ahead: its jids are higher.
        (Some(jid(9)), None, &[][..]),
        (Some(jid(9)), Some(12), &["04"]),
        (Some(jid(9)), Some(30), &["03", "04"]),
        // Its clock is behind, and the minion was disconnected for longer than its last job suggests.
        (Some(jid(0)), Some(12), &["02", "03", "04"]),
        // This master knows the last job: its own order counts.
        (Some(jid(3)), Some(60), &["04"]),
        // The minion has received no job yet.
        (None, Some(12), &["04"]),
        (None, Some(0), &[]),
        // An absurdly long absence: the age of jobs is bounded.
        (Some(jid(9)), Some(u64::MAX), &["02", "03", "04"]),
    ] {
        let missed = publishes.after(&since(last.clone(), away), false);
        assert_eq!(jids(&missed.fresh), strings(fresh), "{last:?} {away:?}");
    }
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn memory_is_bounded_in_bytes_and_time() {
    let publishes = RecentPublishes::new(Duration::from_secs(60), false);
    let large = map! {"jid" => &jid(1), "arg" => "x".repeat(1 << 20)};
    let ancient = Instant::now().checked_sub(Duration::from_secs(700)).unwrap();
    publishes.record_at(&jid(1), &packed(&large), ancient);
    let none = publishes.after(&CatchUp::default(), false);
    assert_eq!((none.fresh.len(), none.stale.len()), (0, 0));
    for _ in 0..100 {
        publishes.record(&jid(1), &packed(&large));
    }
    assert!((10..17).contains(&publishes.after(&CatchUp::default(), false).fresh.len()));
    let off = RecentPublishes::new(Duration::ZERO, false);
    off.record(&jid(1), &packed(&large));
    assert_eq!(off.after(&CatchUp::default(), false).fresh.len(), 0);
}
