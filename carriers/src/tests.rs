use brine_value::{list, map};

use super::*;

fn keywords(map: Map) -> Value {
    let mut all = map! {"__kwarg__" => true};
    all.extend(map);
    all.into()
}

#[test]
fn functions_are_found_in_the_arguments_of_others() {
    let of = |function: &str, positional: Value, keyword: Map, place: Place| Called {
        function: function.to_owned(),
        args: Args { positional: positional.as_list().unwrap().to_vec(), keyword },
        place,
        options: Map::new(),
    };
    let same = |function: &str, positional: Value, keyword: Map| of(function, positional, keyword, Place::Same);
    let minions = |tgt: &str, tgt_type: &str| Place::Minions { tgt: tgt.into(), tgt_type: tgt_type.to_owned() };
    for (function, arguments, expected) in [
        ("test.ping", list![], vec![]),
        (
            "runner.brine.upgrade",
            list!["web*", "batch=2", "source=salt://brine/x", "max_failures=1"],
            vec![of("brine.upgrade", list![], map! {"source" => "salt://brine/x"}, minions("web*", "glob"))],
        ),
        ("schedule.add", list!["j"], vec![same("", list![], map! {})]),
        (
            "schedule.add",
            list!["j", "function=cmd.run", "job_args=[id, cwd=/]", "seconds=1", "job_kwargs={runas: x}"],
            vec![same("cmd.run", list!["id"], map! {"cwd" => "/", "runas" => "x"})],
        ),
        (
            "schedule.modify",
            list![
                "j",
                keywords(
                    map! {"function" => "cmd.run", "returner" => "redis", "return_kwargs" => map! {"host" => "h"}}
                )
            ],
            vec![Called {
                options: map! {"ret" => "redis", "ret_kwargs" => map! {"host" => "h"}},
                ..same("cmd.run", list![], map! {})
            }],
        ),
        ("mine.send", list!["cmd.run", "id"], vec![same("cmd.run", list!["id"], map! {})]),
        (
            "mine.send",
            list!["x", "id", "mine_function=cmd.run", "allow_tgt=*", "cwd=/"],
            vec![same("cmd.run", list!["id"], map! {"cwd" => "/"})],
        ),
        (
            "mine.update",
            list!["mine_functions={cmd.run: [id], x: [{mine_function: cmd.shell}, ls], test.ping: }"],
            vec![
                same("cmd.run", list!["id"], map! {}),
                same("cmd.shell", list!["ls"], map! {}),
                same("test.ping", list![], map! {}),
            ],
        ),
        ("test.cross_test", list!["cmd.run", "id"], vec![same("cmd.run", list!["id"], map! {})]),
        ("test.try", list!["module=cmd.run", "cmd=id"], vec![same("cmd.run", list![], map! {"cmd" => "id"})]),
        ("saltutil.mmodule", list!["base", "cmd.run", "id"], vec![same("cmd.run", list!["id"], map! {})]),
        (
            "saltcheck.run_test",
            list!["test={module_and_function: cmd.run, args: [id]}"],
            vec![same("cmd.run", list!["id"], map! {})],
        ),
        (
            "state.apply_plan",
            list!["state.apply", map! {"digests" => map! {}}, "web", "pillar={a: 1}"],
            vec![same("state.apply", list!["web"], map! {"pillar" => map! {"a" => 1}})],
        ),
        ("saltcheck.state_apply", list!["web"], vec![same("state.apply", list!["web"], map! {})]),
        (
            "publish.publish",
            list!["web*", "cmd.run", list!["id"], "glob"],
            vec![of("cmd.run", list!["id"], map! {}, minions("web*", "glob"))],
        ),
        ("publish.runner", list!["jobs.active"], vec![of("jobs.active", list![], map! {}, Place::Runner)]),
        ("saltutil.wheel", list!["key.delete", "web1"], vec![of("key.delete", list!["web1"], map! {}, Place::Wheel)]),
        ("runner.salt.cmd", list!["cmd.run", "id"], vec![of("cmd.run", list!["id"], map! {}, Place::Host)]),
        (
            "runner.salt.execute",
            list!["web1", "cmd.run", "arg=[id]", "tgt_type=list", "kwarg={cwd: /}", "runas=x", "timeout=5"],
            vec![of("cmd.run", list!["id"], map! {"runas" => "x", "cwd" => "/"}, minions("web1", "list"))],
        ),
        (
            "runner.batch.start",
            list!["*", list!["test.ping", "cmd.run"], list![list![], list!["id"]], "kwargs={metadata: 1}", "ret=redis"],
            vec![
                Called {
                    options: map! {"ret" => "redis", "metadata" => 1},
                    ..of("test.ping", list![], map! {}, minions("*", "glob"))
                },
                Called {
                    options: map! {"ret" => "redis", "metadata" => 1},
                    ..of("cmd.run", list!["id"], map! {}, minions("*", "glob"))
                },
            ],
        ),
        (
            "runner.survey.diff",
            list!["*", "cmd.run", "id", "survey_sort=up"],
            vec![of("cmd.run", list!["id"], map! {}, minions("*", "compound"))],
        ),
        (
            "runner.queue.insert_runner",
            list!["event.send", "args=[x]", "kwargs={data: 1}"],
            vec![of("event.send", list!["x"], map! {"data" => 1}, Place::Runner)],
        ),
        (
            "runner.mine.update",
            list!["web1", "mine_functions={cmd.run: [id]}"],
            vec![of("cmd.run", list!["id"], map! {}, minions("web1", "glob"))],
        ),
        ("runner.ssh.cmd", list!["*", "cmd.run", list!["id"]], vec![of("cmd.run", list!["id"], map! {}, Place::Host)]),
        ("runner.ssh.cmd", list!["*", "id", "raw_shell=True"], vec![of("cmd.run", list![], map! {}, Place::Host)]),
    ] {
        let args = Args::from_wire(arguments.as_list().unwrap());
        assert_eq!(called(function, &args), expected, "{function} {arguments}");
    }
}

#[test]
fn chains_of_functions_are_followed_to_a_depth() {
    let mut arguments = vec![Value::from("cmd.run"), "id".into()];
    for (depth, names) in [
        (1, Some(&["cmd.run"][..])),
        (2, Some(&["test.cross_test", "cmd.run"])),
        (3, Some(&["test.cross_test", "test.cross_test", "cmd.run"])),
        (4, Some(&["test.cross_test", "test.cross_test", "test.cross_test", "cmd.run"])),
        (5, None),
    ] {
        let actual = all_called("test.cross_test", &Args::positional(arguments.clone()));
        assert_eq!(actual, names.map(|names| names.iter().map(ToString::to_string).collect()), "{depth}");
        arguments.insert(0, "test.cross_test".into());
    }
    let queued =
        all_called("runner.queue.insert_runner", &Args::from_wire(&["salt.cmd".into(), list!["cmd.run", "id"]]));
    assert_eq!(queued, Some(vec!["salt.cmd".to_owned(), "cmd.run".to_owned()]));
    assert_eq!(all_called("test.ping", &Args::default()), Some(Vec::new()));
}
