use brine_value::list;

use super::super::tests::wrong;
use super::*;

fn service() -> Service {
    Service {
        name: "web".into(),
        on_change: false,
        at_start: true,
        delay: 0,
        only: None,
        pid_file: None,
        last: None,
        since: None,
    }
}

#[test]
fn services_are_reported_always_or_after_a_lasting_change() {
    let (up, down) = (true, false);
    for (what, mut service, seen, report) in [
        ("always", service(), vec![(up, 1), (up, 2)], [true, true].as_slice()),
        ("changes", Service { on_change: true, ..service() }, vec![(up, 1), (up, 2), (down, 3)], &[true, false, true]),
        (
            "not at start",
            Service { on_change: true, at_start: false, ..service() },
            vec![(up, 1), (down, 2)],
            &[false, true],
        ),
        (
            "later",
            Service { on_change: true, at_start: false, delay: 5, ..service() },
            vec![(up, 1), (down, 2), (down, 7), (down, 8), (down, 99)],
            &[false, false, false, true, false],
        ),
        ("only down", Service { only: Some(false), ..service() }, vec![(up, 1), (down, 2)], &[false, true]),
    ] {
        let all: Vec<bool> = seen.into_iter().map(|(running, now)| service.is_reported(running, now)).collect();
        assert_eq!(all, report, "{what}");
    }
}

#[test]
fn the_event_has_whether_the_service_crashed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let service = Service { pid_file: Some(file.path().display().to_string()), ..service() };
    let status = |status: Map| map! {"web" => status, "service_name" => "web", "tag" => "web"};
    assert_eq!(service.event(true), status(map! {"running" => true}));
    assert_eq!(service.event(false), status(map! {"running" => false, "uncleanshutdown" => true}));
    drop(file);
    assert_eq!(service.event(false), status(map! {"running" => false, "uncleanshutdown" => false}));
}

#[test]
fn options_are_checked() {
    for (services, error) in [
        (Value::Nil, "option 'services': expected a mapping, got NoneType"),
        (map! {"web" => "up"}.into(), "service 'web': expected a mapping of options, got up"),
        (map! {"web" => map! {"delay" => "x"}}.into(), "option 'delay': expected a number, got x"),
    ] {
        assert_eq!(wrong("service", &list![map! {"services" => services}]), error);
    }
}
