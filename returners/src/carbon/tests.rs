use brine_value::{Map, list, map};

use super::*;

fn carbon(more: Map) -> Carbon {
    let mut opts = map! {"carbon" => map! {"host" => "h", "port" => 2003}};
    opts.extend(more);
    Carbon::new(&Options::new(&opts, None)).unwrap()
}

fn numbers(value: impl Into<Value>, skips: bool) -> Result<String, ReturnerError> {
    let mut metrics = Vec::new();
    Carbon::walk("a", &value.into(), 7, skips, &mut metrics).map(|()| lines(&metrics))
}

#[test]
fn numbers_are_found_at_their_paths() {
    let load = map! {"1-min" => 0.25, "n" => map! {"x" => 3, "up" => true}, "text" => " 1e3 ", "l" => list![5]};
    let expected = "a.1-min 0.25 7\na.n.x 3.0 7\na.n.up 1.0 7\na.text 1000.0 7\na.l.5 5.0 7\n";
    assert_eq!(numbers(load, false).unwrap(), expected);
    assert_eq!(numbers(map! {"x" => "word", "y" => Value::Nil, "z" => 1}, true).unwrap(), "a.z 1.0 7\n");
    let error = numbers(map! {"x" => "word"}, false).unwrap_err().to_string();
    assert!(error.contains("a.x is not a number: set `carbon.skip_on_error: True`"), "{error}");
}

#[test]
fn data_cannot_end_a_line() {
    assert_eq!(numbers(map! {"x 9 9\nevil 1" => 2}, false).unwrap(), "a.x_9_9_evil_1 2.0 7\n");
}

#[test]
fn paths_begin_with_function_and_minion() {
    let base = |carbon: &Carbon, fun: &str| {
        let one = map! {"jid" => "20261120235852025555", "id" => "web1.example.org", "fun" => fun, "return" => 1};
        carbon.base(&Return::from_map(one).unwrap())
    };
    let plain = carbon(map! {});
    assert_eq!(base(&plain, "status.loadavg"), "status.loadavg.web1_example_org");
    assert_eq!(base(&plain, "virt.vm_info"), "virt.vm_info");
    let own = carbon(map! {"carbon.metric_base_pattern" => "salt.[minion_id].[module]:[function]"});
    assert_eq!(base(&own, "status.loadavg"), "salt.web1_example_org.status:loadavg");
}

#[test]
fn host_and_port_are_required() {
    for opts in [map! {}, map! {"carbon.host" => "h"}] {
        let error = Carbon::new(&Options::new(&opts, None)).err().unwrap().to_string();
        assert!(error.starts_with("option 'carbon.") && error.ends_with("': it is required"), "{error}");
    }
    let opts = map! {"carbon.mode" => "udp"};
    let error = Carbon::new(&Options::new(&opts, None)).err().unwrap().to_string();
    assert_eq!(error, "option 'carbon.mode': 'udp' is unknown: expected text or pickle");
}
