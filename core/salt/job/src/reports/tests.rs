use brine_value::{list, map};

use super::*;

const JID: &str = "20261124083000000000";

fn event(tag: &str, data: brine_value::Map) -> Event {
    Event::from_map(tag, &data).unwrap()
}

#[test]
fn a_report_names_its_syndic_and_its_job() {
    for (tag, expected) in [
        ("syndic/s1/salt/job/20261124083000000000/new", Some("s1")),
        ("syndic/s1/salt/job/20261124083000000000/error", Some("s1")),
        ("syndic/s1/syndic/s2/salt/job/20261124083000000000/new", Some("s1/s2")),
        ("syndic/s1/salt/job/20261124083000000001/new", None),
        ("syndic/s1/salt/job/20261124083000000000/ret/m1", None),
        ("salt/job/20261124083000000000/new", None),
        ("other/s1/salt/job/20261124083000000000/new", None),
    ] {
        assert_eq!(reporter(tag, JID).as_deref(), expected, "{tag}");
    }
}

#[test]
fn all_reports_are_awaited_including_those_of_nested_syndics() {
    let (now, jid) = (Instant::now(), JID.parse::<Jid>().unwrap());
    let syndics = ReportingSyndics { ids: vec!["s1".into(), "s2".into()], wait: Duration::from_secs(5) };
    let mut reports = Reports::new(syndics, ["own".to_owned()], now);
    assert_eq!(reports.deadline(now), Some(now + Duration::from_secs(5)));
    assert!(reports.returned("early"));
    let of = |path: &str, data| event(&format!("syndic/{path}/salt/job/{JID}/new"), data);
    let report = of("s1", map! {"minions" => list!["a", "early", "own"], "syndics" => list!["deep"]});
    assert_eq!(reports.process(&report, &jid), Some(vec!["a".to_owned()]));
    let report = of("s2", map! {"minions" => list!["b"], "syndics" => list![]});
    assert_eq!(reports.process(&report, &jid), Some(vec!["b".to_owned()]));
    assert_eq!(reports.pending, ["s1/deep".to_owned()].into());
    assert!(reports.deadline(now).is_some());
    let report = of("s1/syndic/deep", map! {"minions" => list!["c", "b"], "syndics" => list![]});
    assert_eq!(reports.process(&report, &jid), Some(vec!["c".to_owned()]));
    assert_eq!(reports.deadline(now), None);
    assert!(reports.knows("c") && !reports.knows("d") && !reports.returned("early"));
}

#[test]
fn a_syndic_of_salt_may_be_followed_by_others() {
    let (now, jid) = (Instant::now(), JID.parse::<Jid>().unwrap());
    let wait = Duration::from_secs(5);
    let mut reports = Reports::new(ReportingSyndics { ids: vec!["s1".into()], wait }, [], now);
    let report = event(&format!("syndic/s1/salt/job/{JID}/new"), map! {"minions" => list!["a"]});
    assert_eq!(reports.process(&report, &jid), Some(vec!["a".to_owned()]));
    assert_eq!(reports.deadline(now), Some(now + wait));
    assert_eq!(reports.deadline(now + wait), None);
}
