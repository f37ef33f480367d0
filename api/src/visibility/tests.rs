use brine_event::Event;
use brine_value::{list, map};

use super::*;

const JID: &str = "20261128000000000001";

fn visibility(entries: &Value, is_open: bool) -> Visibility {
    Visibility::new(Some("fred".to_owned()), entries.as_list().unwrap(), &map! {"webs" => "L@web1,web2"}, is_open)
}

/// An event with its subject.
type Item = (Event, Subject);

fn item(tag: &str, body: &Map, owner: Option<&str>) -> Item {
    (Event::from_map(tag, body).unwrap(), Subject::new(owner.map(Into::into)))
}

fn permits(visibility: &Visibility, (event, subject): &Item) -> bool {
    visibility.permits(event, subject)
}

fn new(fun: Value, arg: Value, minions: &[&str], owner: &str) -> Item {
    let minions: Value = minions.iter().copied().collect();
    item(&format!("salt/job/{JID}/new"), &map! {"fun" => fun, "arg" => arg, "minions" => minions}, Some(owner))
}

fn returned(fun: Value, args: Value, minion: &str) -> Item {
    item(&format!("salt/job/{JID}/ret/{minion}"), &map! {"fun" => fun, "fun_args" => args, "return" => 5}, None)
}

#[test]
fn events_of_permitted_functions_on_permitted_minions_are_visible() {
    let ping = || returned("test.ping".into(), list![], "web1");
    let both = || returned(list!["test.ping", "cmd.run"], list![list![], list!["id"]], "web1");
    let ls = || returned("cmd.run".into(), list!["ls"], "web1");
    let on = |target: &str, fun: &str| list![map! {target => fun}];
    let only_ls = || list![map! {"web*" => map! {"cmd.run" => map! {"args" => list!["ls$"]}}}];
    for (number, (item, entries, visible)) in [
        (ping(), list!["test.ping"], true),
        (ping(), list!["test.echo"], false),
        (ping(), on("web*", "test.*"), true),
        (ping(), on("db*", "test.*"), false),
        (ping(), on("N@webs", "test.*"), true),
        (ping(), on("web* and not web1", "test.*"), false),
        // The grains are unknown here.
        (ping(), on("G@os:Debian", "test.*"), false),
        (ping(), on("not G@os:Debian", "test.*"), false),
        (ping(), on("web1 or G@os:Debian", "test.*"), true),
        (ping(), list![], false),
        (ping(), list!["@options", "@jobs"], false),
        (both(), list!["test.ping"], false),
        (both(), list!["test.ping", "cmd.run"], true),
        (ls(), only_ls(), true),
        (returned("cmd.run".into(), list!["cat /etc/shadow"], "web1"), only_ls(), false),
        (new("test.ping".into(), list![], &["web1", "web2"], "root"), on("web*", "test.*"), true),
        (new("test.ping".into(), list![], &["web1", "db1"], "root"), on("web*", "test.*"), false),
        (new("test.ping".into(), list![], &[], "root"), on("web*", "test.*"), false),
        (new("saltutil.find_job".into(), list!["1"], &["web1"], "root"), list![".*"], false),
        (returned("saltutil.find_job".into(), list!["1"], "web1"), list![".*"], false),
        (item("salt/minion/web1/start", &map! {}, None), on("web*", "test.ping"), true),
        (item("salt/minion/web1/start", &map! {}, None), on("db*", "test.ping"), false),
        (item("salt/minion/web1/start", &map! {}, None), list!["@jobs"], false),
        (item("salt/beacon/web1/load/", &map! {}, None), list![".*"], false),
        (
            item("salt/wheel/20261128000000000009/ret", &map! {"fun" => "wheel.key.gen"}, Some("root")),
            list![".*"],
            false,
        ),
        (item("salt/run/20261128000000000009/ret", &map! {"fun" => "runner.x.y"}, Some("root")), list![".*"], false),
        (item(&format!("salt/job/{JID}/publish"), &map! {"fun" => "test.ping"}, Some("root")), list![".*"], false),
        (item(&format!("salt/job/{JID}/prog/web1/1"), &map! {"fun" => "test.ping"}, Some("root")), list![".*"], false),
        (item("salt/key", &map! {}, None), list![".*"], false),
        (item("salt/auth", &map! {}, None), list![".*", map! {"events" => "salt/job/*"}], false),
        (item("salt/auth", &map! {}, None), list![map! {"events" => "salt/a*"}], true),
        // Whoever may read the journal by a runner function may also follow it.
        (item("salt/auth", &map! {}, None), list!["@runner"], true),
        (item("salt/auth", &map! {}, None), list![map! {"@runner" => "jobs.*"}], false),
        (item("salt/auth", &map! {}, None), list!["@runner", map! {"events" => "my/*"}], false),
    ]
    .into_iter()
    .enumerate()
    {
        let case = format!("case {number}: {} for {entries}", item.0.tag());
        let permissions = visibility(&entries, false);
        // The second decision is a stored one.
        assert_eq!([permits(&permissions, &item), permits(&permissions, &item)], [visible; 2], "{case}");
        let is_limited = entries.to_string().contains("events");
        let is_some = !entries.as_list().unwrap().is_empty();
        assert_eq!(permits(&visibility(&entries, true), &item), visible || (is_some && !is_limited), "open: {case}");
    }
}

#[test]
fn events_of_own_jobs_and_calls_are_visible() {
    for tag in [
        format!("salt/job/{JID}/new"),
        format!("salt/job/{JID}/publish"),
        format!("salt/job/{JID}/ret/db1"),
        format!("salt/job/{JID}/prog/db1/5"),
        format!("salt/run/{JID}/ret"),
        format!("salt/wheel/{JID}/ret"),
        JID.to_owned(),
    ] {
        let body = map! {"fun" => "cmd.run"};
        let permissions = visibility(&list!["test.ping"], false);
        assert!(permits(&permissions, &item(&tag, &body, Some("fred"))), "{tag}");
        assert!(!permits(&permissions, &item(&tag, &body, Some("freda"))), "{tag}");
        assert!(!permits(&permissions, &item(&tag, &body, None)), "{tag}");
        // Jobs under this name may be of the master's own user.
        let nameless = Visibility::new(None, &["test.ping".into()], &map! {}, false);
        assert!(!permits(&nameless, &item(&tag, &body, Some("fred"))), "{tag}");
        assert!(!permits(&visibility(&list![], false), &item(&tag, &body, Some("fred"))), "{tag}");
    }
}

#[test]
fn stored_decisions_are_of_the_same_event() {
    let permissions = visibility(&list!["test.ping"], false);
    for number in 0..(3 * DECISIONS) {
        let (fun, visible) = if number % 3 == 0 { ("test.ping", true) } else { ("cmd.run", false) };
        let item = returned(fun.into(), list![], "web1");
        assert_eq!((permits(&permissions, &item), permits(&permissions, &item)), (visible, visible));
    }
}
