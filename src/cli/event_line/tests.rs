use brine_value::{list, map};

use super::*;

fn lines(width: Option<usize>) -> String {
    let events = [
        ("salt/auth", map! {"id" => "web1", "act" => "pend", "pub" => "x"}),
        (
            "salt/job/20261120235852025555/new",
            map! {"fun" => "state.apply", "tgt" => "web*", "minions" => list!["web1", "web2"], "user" => "root"},
        ),
        ("salt/job/20261120235852025555/ret/web1", map! {"fun" => "state.apply", "success" => true, "retcode" => 0}),
        ("salt/job/20261120235852025555/ret/web2", map! {"fun" => "state.apply", "success" => true, "retcode" => 2}),
        (
            "salt/run/20261120235852025555/ret",
            map! {"fun" => "runner.x.y", "success" => false, "return" => "it\nbroke"},
        ),
        ("salt/beacon/web1/load/", map! {"id" => "web1", "1m" => 3.5, "_x" => 1}),
        ("salt/reactor/error", map! {"message" => "/srv/reactor/a.sls:3: Jinja variable 'nothing' is undefined"}),
        ("my/own/tag/that/is/longer/than/the/column/of/all/tags/is/wide/and/than/the/line", map! {"n" => 1}),
    ];
    let mut out = String::new();
    for (place, (tag, mut data)) in events.into_iter().enumerate() {
        data.insert(SEQ.into(), (place as u64 + 98).into());
        data.insert(STAMP.into(), "2026-11-21T10:00:00.123456".into());
        let line = line(tag, &data, width, &TimeZone::UTC, Colours::OFF);
        assert!(width.is_none_or(|width| line.chars().count() <= width), "{line}");
        out += &line;
        out.push('\n');
    }
    out
}

#[test]
fn events_have_columns() {
    insta::assert_snapshot!(lines(Some(80)));
    insta::assert_snapshot!(lines(Some(120)));
}

#[test]
fn lines_without_a_width_have_the_whole_tag() {
    insta::assert_snapshot!(lines(None));
}

#[test]
fn events_are_summarised() {
    for (tag, data, expected) in [
        ("salt/auth", map! {"act" => "pend", "id" => "web1"}, "act pend, id web1"),
        (
            "salt/wheel/1/new",
            map! {"fun" => "wheel.key.accept", "fun_args" => list![map! {"match" => "web1"}], "user" => "Reactor",
            "_sls" => "/srv/reactor/auth.sls"},
            "wheel.key.accept match=web1 by Reactor, who rendered reactor/auth.sls",
        ),
        (
            "salt/job/1/new",
            map! {"fun" => "state.highstate", "arg" => list![], "minions" => list!["a", "b"], "user" => "Reactor"},
            "state.highstate for a, b by Reactor",
        ),
        (
            "salt/job/1/new",
            map! {"fun" => "cmd.run", "arg" => list!["id"], "minions" => list!["a", "b", "c", "d"], "user" => "root"},
            "cmd.run id for 4 minions by root",
        ),
        (
            "salt/job/1/ret/a",
            map! {"fun" => "state.apply", "retcode" => 2, "return" => map! {"x" => 1}},
            "state.apply returned, retcode 2, 1 states",
        ),
        ("salt/run/1/ret", map! {"fun" => "runner.x.y", "success" => false, "return" => "no"}, "runner.x.y failed: no"),
        ("my/tag", map! {"x" => 1, "_seq" => 5}, r#"{"x": 1}"#),
    ] {
        assert_eq!(summary(tag, &data), expected);
    }
    let long = line("my/tag", &map! {"x" => "y".repeat(100_000)}, None, &TimeZone::UTC, Colours::OFF);
    assert!(long.chars().count() < 500);
}

#[test]
fn tags_have_the_colour_of_their_kind() {
    for (tag, data, expected) in [
        ("salt/auth", Map::new(), Some(Colour::LightYellow)),
        ("salt/job/1/ret/m", map! {"retcode" => 1}, Some(Colour::Red)),
        ("salt/job/1/ret/m", map! {"retcode" => 0}, Some(Colour::Green)),
        ("salt/run/1/ret", map! {"success" => false}, Some(Colour::Red)),
        ("my/tag", Map::new(), None),
    ] {
        assert_eq!(colour(tag, &data), expected, "{tag}");
    }
}
