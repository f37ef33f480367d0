use super::*;
use brine_value::{Value, map};

const SECOND: Duration = Duration::from_secs(1);

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn driver(minions: &[&str], batch: Batch) -> (Driver, Instant) {
    let now = Instant::now();
    let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
    (Driver::in_batches(Jid::new(), "root", names(minions), batch, times, now), now)
}

/// Publishes the next batch to all of its minions.
fn publish(driver: &mut Driver, now: Instant) -> Vec<String> {
    let Action::Publish(minions) = driver.next(now) else { panic!("no batch is due") };
    assert_eq!(driver.published(&minions, now), names(&[]));
    minions
}

fn publish_return(driver: &mut Driver, id: &str, retcode: impl Into<Value>, now: Instant) {
    let body = map! {"return" => true, "retcode" => retcode.into()};
    let event = Event::from_map(&format!("salt/job/{}/ret/{id}", driver.jid()), &body).unwrap();
    assert_eq!(driver.process(&event, now).map(|(id, _)| id).as_deref(), Some(id));
}

const PLAIN: Batch = Batch { size: 2, wait: Duration::ZERO, failhard: false };

#[test]
fn the_next_minion_starts_when_one_ends() {
    let (mut driver, now) = driver(&["a", "b", "c", "d"], PLAIN);
    assert_eq!(publish(&mut driver, now), names(&["a", "b"]));
    assert_eq!(driver.next(now), Action::Wait(now + 5 * SECOND));
    publish_return(&mut driver, "b", 1, now);
    assert_eq!(publish(&mut driver, now), names(&["c"]));
    publish_return(&mut driver, "a", 0, now);
    publish_return(&mut driver, "c", 0, now);
    assert_eq!(publish(&mut driver, now), names(&["d"]));
    publish_return(&mut driver, "d", 0, now);
    assert_eq!((driver.next(now), driver.halted()), (Action::End, None));
}

#[test]
fn failhard_halts_at_a_retcode_and_not_at_a_missing_return() {
    let codes: [(Value, bool); 5] = [
        (0.into(), false),
        (2.into(), true),
        (Value::Nil, false),
        (map! {"test.ping" => 0, "cmd.run" => 0}.into(), false),
        (map! {"test.ping" => 0, "cmd.run" => 3}.into(), true),
    ];
    for (code, halts) in codes {
        let (mut driver, now) = driver(&["a", "b"], Batch { size: 1, failhard: true, ..PLAIN });
        publish(&mut driver, now);
        publish_return(&mut driver, "a", code.clone(), now);
        assert_eq!(driver.halted(), halts.then_some(&Halt::Failhard), "{code}");
        let next = driver.next(now);
        assert_eq!(next, if halts { Action::End } else { Action::Publish(names(&["b"])) }, "{code}");
    }
    let (mut driver, now) = driver(&["a", "b"], Batch { size: 1, failhard: true, ..PLAIN });
    publish(&mut driver, now);
    assert!(matches!(driver.next(now + 5 * SECOND), Action::Ask(_)));
    driver.asked(None, now + 5 * SECOND);
    assert_eq!(driver.next(now + 15 * SECOND), Action::Missing(["a".to_owned()].into()));
    assert_eq!(driver.next(now + 15 * SECOND), Action::Publish(names(&["b"])));
}

#[test]
fn pauses_of_several_minions_run_at_the_same_time() {
    let (mut driver, now) = driver(&["a", "b", "c", "d"], Batch { wait: 3 * SECOND, ..PLAIN });
    publish(&mut driver, now);
    publish_return(&mut driver, "a", 0, now);
    publish_return(&mut driver, "b", 0, now + SECOND);
    assert_eq!(driver.next(now + SECOND), Action::Wait(now + 3 * SECOND));
    assert_eq!(publish(&mut driver, now + 3 * SECOND), names(&["c"]));
    assert_eq!(publish(&mut driver, now + 4 * SECOND), names(&["d"]));
    publish_return(&mut driver, "c", 0, now + 4 * SECOND);
    publish_return(&mut driver, "d", 0, now + 4 * SECOND);
    assert_eq!(driver.next(now + 4 * SECOND), Action::End, "nobody is left to wait for a pause");
}

#[test]
fn minions_that_the_publish_does_not_reach_are_skipped() {
    let (mut driver, now) = driver(&["a", "b", "c"], PLAIN);
    assert_eq!(driver.next(now), Action::Publish(names(&["a", "b"])));
    assert_eq!(driver.published(&names(&["b"]), now), names(&["a"]));
    assert_eq!(driver.next(now), Action::Publish(names(&["c"])));
    assert_eq!(driver.published(&[], now), names(&["c"]));
    assert_eq!(driver.active().collect::<Vec<_>>(), ["b"]);
    publish_return(&mut driver, "b", 0, now);
    assert_eq!(driver.next(now), Action::End);
}

#[test]
fn a_halted_job_publishes_no_more() {
    let (mut driver, now) = driver(&["a", "b", "c"], PLAIN);
    publish(&mut driver, now);
    driver.halt("stop".to_owned());
    assert_eq!((driver.next(now), driver.halted().map(Halt::reason)), (Action::End, Some("stop")));
    assert_eq!((driver.active().len(), driver.pending().len()), (2, 1));
}

#[test]
fn minions_active_before_a_restart_count_toward_the_batch_size() {
    let (mut driver, now) = driver(&["c"], PLAIN);
    driver.add_active(names(&["a", "b"]), now);
    assert!(matches!(driver.next(now), Action::Wait(_)));
    assert!(driver.returned("a", &map! {"retcode" => 0}, now));
    assert!(!driver.returned("a", &map! {"retcode" => 0}, now));
    assert_eq!(publish(&mut driver, now), names(&["c"]));
}

#[test]
fn a_published_job_asks_silent_minions() {
    let now = Instant::now();
    let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
    let mut driver = Driver::of_published(Jid::new(), "root", names(&["a", "b"]), times, now);
    assert_eq!(driver.next(now), Action::Wait(now + 5 * SECOND));
    publish_return(&mut driver, "a", 0, now);
    let Action::Ask(request) = driver.next(now + 5 * SECOND) else { panic!("no minion is asked") };
    assert_eq!((request.fun, request.user.as_str()), ("saltutil.find_job".into(), "root"));
    let question: Jid = "20990101000000000000".parse().unwrap();
    driver.asked(Some(question.clone()), now + 5 * SECOND);
    let running = map! {"return" => map! {"pid" => 7}};
    let answer = Event::from_map(&format!("salt/job/{question}/ret/b"), &running).unwrap();
    assert_eq!(driver.process(&answer, now + 6 * SECOND), None);
    assert_eq!(driver.next(now + 6 * SECOND), Action::Wait(now + 11 * SECOND));
    publish_return(&mut driver, "b", 0, now + 7 * SECOND);
    assert_eq!(driver.next(now + 7 * SECOND), Action::End);
}

#[test]
fn minions_of_syndics_are_awaited() {
    let now = Instant::now();
    let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
    let syndics = ReportingSyndics { ids: names(&["s1", "s2"]), wait: 5 * SECOND };
    let driver = Driver::of_published(Jid::new(), "root", names(&["own"]), times, now);
    let mut driver = driver.with_syndics(Some(syndics), now);
    publish_return(&mut driver, "own", 0, now);
    assert_eq!(driver.next(now), Action::Wait(now + 5 * SECOND), "two reports are outstanding");
    // The return may arrive before the report of its syndic.
    publish_return(&mut driver, "early", 0, now);
    let report = |driver: &mut Driver, syndic: &str, minions: &[&str]| {
        let body = map! {"minions" => names(minions), "syndics" => names(&[])};
        let tag = format!("syndic/{syndic}/salt/job/{}/new", driver.jid());
        assert_eq!(driver.process(&Event::from_map(&tag, &body).unwrap(), now), None);
    };
    report(&mut driver, "s1", &["early", "late"]);
    report(&mut driver, "s2", &[]);
    assert!(driver.is_of_syndic("late") && !driver.is_of_syndic("nobody"));
    assert_eq!(driver.active().collect::<Vec<_>>(), ["late"]);
    publish_return(&mut driver, "late", 0, now);
    assert_eq!(driver.next(now), Action::End);
}

#[test]
fn a_silent_syndic_is_given_up_after_its_timeout() {
    let now = Instant::now();
    let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
    let syndics = ReportingSyndics { ids: names(&["s1"]), wait: 3 * SECOND };
    let driver = Driver::of_published(Jid::new(), "root", Vec::new(), times, now);
    let mut driver = driver.with_syndics(Some(syndics), now);
    assert_eq!(driver.next(now), Action::Wait(now + 3 * SECOND));
    assert_eq!(driver.next(now + 3 * SECOND), Action::End);
}
