use super::*;
use brine_value::{list, map};

const SECOND: Duration = Duration::from_secs(1);

fn event(jid: &Jid, id: &str, value: impl Into<Value>) -> Event {
    Event::from_map(&format!("salt/job/{jid}/ret/{id}"), &map! {"return" => value.into()}).unwrap()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn watch(minions: &[&str]) -> (Watch, Instant) {
    let now = Instant::now();
    let times = Times { timeout: 5 * SECOND, gather: 10 * SECOND, find_job: "saltutil.find_job" };
    (Watch::new(Jid::new(), names(minions), times, now), now)
}

/// Publishes the request to silent minions. Returns the job id and the target of the request.
fn ask(watch: &mut Watch, now: Instant) -> (Jid, Value) {
    let Due::Ask(request) = watch.on_deadline("root", now) else { panic!("no minion is asked") };
    assert_eq!((request.fun, request.arg), ("saltutil.find_job".into(), vec![watch.jid().into()]));
    let question: Jid = "20990101000000000000".parse().unwrap();
    watch.asked(Some(question.clone()), now);
    (question, request.tgt)
}

#[test]
fn a_request_includes_minions_that_become_silent_soon() {
    let (mut watch, now) = watch(&["a"]);
    watch.add(names(&["b"]), now + SECOND);
    watch.add(names(&["c"]), now + 2 * SECOND);
    let (question, asked) = ask(&mut watch, now + 5 * SECOND);
    assert_eq!(asked, list!["a", "b"]);
    for id in ["a", "b"] {
        watch.process(&event(&question, id, map! {"pid" => 7}), now + 6 * SECOND);
    }
    assert_eq!(watch.deadline(), Some(now + 7 * SECOND));
    assert_eq!(ask(&mut watch, now + 7 * SECOND).1, list!["c"]);
}

#[test]
fn returns_count_once_and_only_from_outstanding_minions() {
    let (mut watch, now) = watch(&["a", "b"]);
    let jid = watch.jid().clone();
    let (id, data) = watch.process(&event(&jid, "a", true), now).unwrap();
    assert_eq!((id.as_str(), data.get("return")), ("a", Some(&true.into())));
    for other in [event(&jid, "a", true), event(&jid, "unknown", true), event(&Jid::new(), "b", true)] {
        assert_eq!(watch.process(&other, now), None, "{}", other.tag());
    }
    assert!(!watch.is_over());
    assert!(watch.process(&event(&jid, "b", false), now).is_some());
    assert!(watch.is_over());
}

#[test]
fn minions_that_run_the_job_are_awaited_and_silent_ones_are_missing() {
    let (mut watch, now) = watch(&["a", "b", "c"]);
    let jid = watch.jid().clone();
    watch.process(&event(&jid, "a", true), now);
    assert_eq!(watch.deadline(), Some(now + 5 * SECOND), "a return is no reason to wait longer for the others");
    let (question, asked) = ask(&mut watch, now + 5 * SECOND);
    assert_eq!(asked, list!["b", "c"]);
    assert_eq!(watch.deadline(), Some(now + 15 * SECOND));
    assert_eq!(watch.process(&event(&question, "b", map! {"pid" => 7}), now), None);
    // An empty answer: the minion does not run the job.
    assert_eq!(watch.process(&event(&question, "c", map! {}), now), None);
    assert_eq!(watch.on_deadline("root", now + 15 * SECOND), Due::Missing(names(&["c"])));
    assert_eq!(watch.deadline(), Some(now + 20 * SECOND));
    assert_eq!(ask(&mut watch, now + 20 * SECOND).1, list!["b"]);
    assert!(watch.process(&event(&jid, "b", true), now).is_some());
    assert!(watch.is_over());
}

#[test]
fn the_answers_of_all_minions_end_the_request() {
    let (mut watch, now) = watch(&["a", "b"]);
    let (question, _) = ask(&mut watch, now + 5 * SECOND);
    watch.process(&event(&question, "a", map! {"pid" => 7}), now + 6 * SECOND);
    assert_eq!(watch.deadline(), Some(now + 15 * SECOND));
    let jid = watch.jid().clone();
    watch.process(&event(&jid, "b", true), now + 6 * SECOND);
    assert_eq!(watch.deadline(), Some(now + 11 * SECOND));
    assert_eq!(ask(&mut watch, now + 11 * SECOND).1, list!["a"]);
}

#[test]
fn added_minions_have_a_timeout_of_their_own() {
    let (mut watch, now) = watch(&["a"]);
    watch.add(names(&["b"]), now + 3 * SECOND);
    assert_eq!(watch.deadline(), Some(now + 5 * SECOND), "later minions do not delay the request to earlier ones");
    assert_eq!(ask(&mut watch, now + 8 * SECOND).1, list!["a", "b"]);
    watch.add(names(&["c"]), now + 9 * SECOND);
    assert_eq!(watch.deadline(), Some(now + 18 * SECOND));
    assert_eq!(watch.on_deadline("root", now + 18 * SECOND), Due::Missing(names(&["a", "b"])));
    assert!(!watch.is_over());
}
