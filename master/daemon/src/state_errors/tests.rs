use brine_value::{list, map};

use super::*;

fn tags(load: Map) -> Vec<String> {
    of_return(&load).into_iter().map(|(tag, _)| tag).collect()
}

fn states() -> Map {
    map! {
        "pkg_|-a_|-a_|-installed" => map! {"result" => false, "comment" => "no"},
        "file_|-b_|-b_|-managed" => map! {"result" => true},
        "cmd_|-c_|-c_|-run" => map! {"result" => Value::Nil},
    }
}

#[test]
fn each_failed_state_has_two_events() {
    let load = |fun: &str, retcode: i64| map! {"jid" => "1", "id" => "web1", "fun" => fun, "return" => states(), "retcode" => retcode};
    assert_eq!(tags(load("state.sls", 2)), ["pkg.installed", "salt/job/1/sub/web1/error/state.sls"]);
    assert_eq!(tags(load("state.sls", 0)), [""; 0]);
    assert_eq!(tags(load("state.apply", 2)), [""; 0]);
    let (_, body) = of_return(&load("state.highstate", 2)).swap_remove(1);
    assert_eq!(
        (body.get("return"), body.get("retcode"), body.get("comment")),
        (Some(&"Error: pkg.installed".into()), Some(&2.into()), Some(&"no".into()))
    );
}

#[test]
fn events_of_one_return_are_bounded() {
    let states: Map =
        (0..3000).map(|n| (format!("pkg_|-{n}_|-{n}_|-installed").into(), map! {"result" => false}.into())).collect();
    let load = map! {"jid" => "1", "id" => "web1", "fun" => "state.sls", "return" => states, "retcode" => 2};
    assert_eq!(of_return(&load).len(), 2 * MAX_STATES);
}

#[test]
fn state_keys_cannot_inject_tags() {
    let load = |key: &str| map! {"jid" => "1", "id" => "web1", "fun" => "state.sls", "return" => map! {key => map! {"result" => false}}, "retcode" => 2};
    for key in [
        "salt/job/1/ret/web1_|-example.com",
        "salt/auth_|-x_|-x_|-x",
        "minion/refresh/db1_|-a_|-a_|-b",
        "pkg_|-a_|-a_|-in/stalled",
        "pkg\n\nx_|-a_|-a_|-installed",
        "_|-_|-",
        "20261120235852025555_|-a",
        "",
    ] {
        assert_eq!(tags(load(key)), [""; 0], "{key}");
    }
}

#[test]
fn state_functions_among_several_functions_are_found() {
    let several = map! {
        "jid" => "1", "id" => "web1", "fun" => list!["test.ping", "state.sls"],
        "return" => map! {"test.ping" => true, "state.sls" => states()},
        "retcode" => map! {"test.ping" => 0, "state.sls" => 2},
    };
    assert_eq!(tags(several), ["pkg.installed", "salt/job/1/sub/web1/error/state.sls"]);
}

#[test]
fn returns_without_states_have_no_events() {
    let load = map! {"jid" => "1", "id" => "web1", "fun" => "state.sls", "return" => "an error", "retcode" => 1};
    assert_eq!(tags(load), [""; 0]);
}
