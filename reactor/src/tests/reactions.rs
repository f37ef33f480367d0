//! The forms of reactions and files, and the configuration that binds them.

use brine_yaml::untrusted::Placeholders;

use super::*;

const AUTH: &str = "{% if 'act' in data and data['act']  == 'pend' and data['id'].endswith('_youshi') %}
minion_add:
  wheel.key.accept:
    - match: {{ data['id'] }}
{% endif %}
";
const START: &str = "highstate_run:
  local.state.highstate:
    - tgt: {{ data['id'] }}
";

#[tokio::test]
async fn the_files_of_the_documentation_run_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let (auth, start_sls) = (write(directory.path(), "auth.sls", AUTH), write(directory.path(), "start.sls", START));
    let reactor = list![map! {"salt/auth" => list![auth]}, map! {"salt/minion/*/start" => list![start_sls]}];
    let mut running = start(directory.path(), &reactor);
    for (tag, body) in [
        ("salt/auth", map! {"id" => "other", "act" => "pend"}),
        ("salt/auth", map! {"id" => "web1_youshi", "act" => "accept"}),
        ("salt/auth", map! {"id" => "web1_youshi", "act" => "pend"}),
    ] {
        running.bus.fire(tag, &body).await.unwrap();
    }
    let (reaction, cause) = next(&mut running).await;
    assert_eq!(
        reaction,
        Reaction::Wheel { fun: "key.accept".into(), args: Args::keyword(map! {"match" => "web1_youshi"}) }
    );
    assert_eq!((cause.seq, cause.depth, &*cause.tag, &*cause.entry), (3, 1, "salt/auth", "salt/auth"));
    assert_eq!(&*cause.reaction, "minion_add: wheel.key.accept");
    running.bus.fire("salt/minion/web1_youshi/start", &map! {"id" => "web1_youshi"}).await.unwrap();
    let (reaction, _) = next(&mut running).await;
    let Reaction::Local(local) = reaction else { panic!("{reaction:?}") };
    assert_eq!(
        (local.fun.as_str(), &local.tgt, local.tgt_type.as_str()),
        ("state.highstate", &"web1_youshi".into(), "glob")
    );
}

#[test]
fn every_form_of_a_reaction_is_parsed() {
    let read = |text: &str| {
        let located = brine_yaml::load_located(text).unwrap();
        let mut all = parser::read_all(&located, &Placeholders::new());
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0).unwrap().reaction
    };
    let positional = |values: &[&str]| Args::positional(values.iter().map(|value| Value::from(*value)));
    for (text, args) in [
        ("a: {local.cmd.run: [{tgt: x}, {arg: [ls]}]}", positional(&["ls"])),
        ("a: {local.cmd.run: [{tgt: x}, {arg: ls}]}", positional(&["ls"])),
        ("a: {cmd.cmd.run: [{tgt: x}, {args: [ls]}]}", positional(&["ls"])),
        ("a: {local.cmd.run: [{tgt: x}, {args: {cmd: ls}}]}", Args::keyword(map! {"cmd" => "ls"})),
        ("a: {local.cmd.run: [{tgt: x}, {args: [{cmd: ls}]}]}", Args::keyword(map! {"cmd" => "ls"})),
        (
            "a: {local.cmd.run: [{tgt: x}, {arg: [ls]}, {kwarg: {cwd: /}}]}",
            Args { keyword: map! {"cwd" => "/"}, ..positional(&["ls"]) },
        ),
        ("a: {local.cmd.run: {tgt: x, cmd: ls}}", Args::keyword(map! {"cmd" => "ls"})),
        ("a: {local.cmd.run: [{tgt: x}, {timeout: 5}, {cmd: ls}]}", Args::keyword(map! {"cmd" => "ls"})),
    ] {
        let Reaction::Local(local) = read(text) else { panic!("{text}") };
        assert_eq!((local.tgt, local.args), ("x".into(), args), "{text}");
    }
    let Reaction::Local(local) = read(
        "a: {local.x.y: [{tgt: 'os:Debian'}, {expr_form: grain}, {ret: redis}, {metadata: {k: v}}, {ret_config: alt}, \
         {ret_kwargs: {port: 1}}, {module_executors: [sudo]}, {executor_opts: {a: b}}, {cwd: /}]}",
    ) else {
        panic!()
    };
    assert_eq!((local.tgt_type.as_str(), local.ret.as_str()), ("grain", "redis"));
    let options = map! {"metadata" => map! {"k" => "v"}, "ret_config" => "alt", "ret_kwargs" => map! {"port" => 1},
    "module_executors" => brine_value::list!["sudo"], "executor_opts" => map! {"a" => "b"}};
    assert_eq!((local.options, local.args), (options, Args::keyword(map! {"cwd" => "/"})));
    assert_eq!(read("a: runner.test.arg"), Reaction::Runner { fun: "test.arg".into(), args: Args::default() });
    assert_eq!(read("a: {caller.test.ping: []}"), Reaction::Caller { fun: "test.ping".into(), args: Args::default() });
}

#[test]
fn errors_name_file_and_line() {
    for (text, line, message) in [
        ("- a", 1, "the rendered SLS is invalid: expected a mapping of ids to reactions, got list"),
        ("\na:\n  local.test.ping: []", 3, "'local.test.ping' needs a target: add `- tgt: '*'` or another one"),
        (
            "a:\n  local.test.ping:\n    - tgt: 'os:x'\n    - tgt_type: grian",
            2,
            "'tgt_type' of 'local.test.ping' is invalid: 'grian' is not a target type: did you mean 'grain'?",
        ),
        (
            "a:\n  remote.test.ping: []",
            2,
            "'remote' in 'remote.test.ping' is not a type of reaction: expected local, runner, wheel or caller",
        ),
        (
            "a:\n  local.ping: []",
            2,
            "'local.ping' is not a reaction: write type.module.function, such as local.state.apply",
        ),
        (
            "a: 5",
            1,
            "the body of 'a' is invalid: expected `type.module.function:` with a list of arguments below it, got int",
        ),
        (
            "a:\n  runner.x.y: 5",
            2,
            "the body of 'runner.x.y' is invalid: expected a list of arguments, such as `- tgt: '*'`, got int",
        ),
        (
            "a:\n  runner.x.y:\n    - args:\n      - mods: m\n      - pillar:\n        minion_id: x\n",
            2,
            "'runner.x.y' has an item with several names below 'args', of which one is empty: pillar, minion_id: indent \
             the lines that belong below it",
        ),
        (
            "a:\n  runner.x.y: [{args: [1]}, {arg: [2]}]",
            2,
            "'runner.x.y' has its arguments both below 'args' and below 'arg' or 'kwarg': keep one",
        ),
    ] {
        let located = brine_yaml::load_located(text).unwrap();
        let errors: Vec<_> =
            parser::read_all(&located, &Placeholders::new()).into_iter().filter_map(Result::err).collect();
        assert_eq!(errors, [ReactionError { line, message: message.into() }], "{text}");
    }
}

#[test]
fn an_invalid_configuration_is_an_error() {
    for (option, message) in [
        (Value::from("/none"), "'reactor' names the file /none: No such file or directory (os error 2)"),
        (list!["x"], "'reactor' is invalid: expected a list of `tag pattern: [SLS files]`, entry 1 is of type str"),
        (list![map! {"a" => list![5]}], "'reactor': the files of 'a' are invalid: expected a list of paths, got 5"),
    ] {
        assert_eq!(Entries::from_config(&option).unwrap_err().to_string(), message);
    }
}

#[test]
fn invalid_entries_and_limits_are_left_out_on_their_own() {
    let (good, files) = (|| map! {"t/x" => list!["a.sls"]}, || vec!["a.sls".to_owned()]);
    for (reactor, more, expected, messages) in [
        (list![good(), map! {"t/n" => Value::Nil}], map! {}, vec![("t/x", files()), ("t/n", vec![])], vec![]),
        (
            list!["bad", good(), map! {"t/n" => list![5], "t/y" => "a.sls"}, 3],
            map! {},
            vec![("t/x", files()), ("t/y", files())],
            vec!["entry 1 is of type str", "the files of 't/n' are invalid", "entry 4 is of type int"],
        ),
        (
            list![good()],
            map! {"reactor_cooldown" => map! {"t/z" => 5, "t/x" => 60}, "reactor_debounce" => 4},
            vec![("t/x", files())],
            vec!["expected a mapping of an entry's pattern"],
        ),
    ] {
        let mut opts = more;
        opts.insert("reactor".into(), reactor.clone());
        let (entries, errors) = Entries::usable(&opts).unwrap();
        let actual: Vec<_> = entries.all().iter().map(|entry| (&*entry.pattern, entry.files.clone())).collect();
        assert_eq!(actual, expected, "{reactor}");
        assert_eq!(errors.len(), messages.len(), "{reactor}: {errors:?}");
        for (error, message) in errors.iter().zip(messages) {
            assert!(error.to_string().contains(message), "{error}");
        }
        assert!(
            Entries::usable(&map! {"reactor" => 5}).is_err() && Entries::usable(&map! {"reactor" => "/none"}).is_err()
        );
        assert_eq!(entries.matching("t/x").iter().any(|entry| entry.limits.is_some()), opts.len() > 1, "{reactor}");
    }
}

#[tokio::test]
async fn files_are_found_by_globs_and_on_the_file_server() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "many/1.sls", "a: {runner.file.one: []}");
    write(root, "many/2.sls", "a: {runner.file.two: []}");
    write(root, "many/x.txt", "not this");
    write(root, "base/r/served.sls", "{% from 'r/map.jinja' import name %}\n{% include './part.sls' %}");
    write(root, "base/r/map.jinja", "{% set name = 'served' %}");
    write(root, "base/r/part.sls", "a: {runner.file.{{ name }}: []}");
    write(root, "dev/r.sls", "a: {runner.file.dev: [{env: {{ saltenv }}}]}");
    write(root, "near/own.sls", "{% import_yaml 'own.yaml' as own %}\na: {runner.file.{{ own.fun }}: []}");
    write(root, "near/own.yaml", "fun: near");
    write(
        root,
        "json.sls",
        "#!jinja|json\n{\"a\": {\"runner.file.json\": [{\"tag\": \"{{ tag }}\", \"g\": \"{{ grains.id }}\"}]}}",
    );
    write(
        root,
        "salt.sls",
        "a: {runner.file.fun: ['{{ salt['test.fun'](1, 2) }}', '{{ pillar }} {{ opts is defined }}']}",
    );
    let root = root.display();
    let files: Value = [
        format!("{root}/many/*.sls"),
        "salt://r/served.sls".into(),
        "salt://r.sls?saltenv=dev".into(),
        format!("{root}/near/own.sls"),
        format!("{root}/json.sls"),
        format!("{root}/salt.sls"),
    ]
    .into_iter()
    .collect();
    let mut running = start(directory.path(), &map! {"go" => files}.into());
    running.bus.fire("go", &Map::new()).await.unwrap();
    let mut funs = Vec::new();
    for _ in 0..7 {
        let (Reaction::Runner { fun, args }, _) = next(&mut running).await else { panic!() };
        funs.push((fun.strip_prefix("file.").unwrap().to_owned(), args));
    }
    let (names, args): (Vec<_>, Vec<_>) = funs.into_iter().unzip();
    assert_eq!(names, ["one", "two", "served", "dev", "near", "json", "fun"]);
    assert_eq!(args[3], Args::keyword(map! {"env" => "dev"}));
    assert_eq!(args[5], Args::keyword(map! {"tag" => "go", "g" => "m_master"}));
    assert_eq!(args[6], Args::positional(["test.fun 2".into(), "{} True".into()]));
}

#[tokio::test]
async fn entries_are_added_and_deleted_while_it_runs() {
    let directory = tempfile::tempdir().unwrap();
    let file = write(directory.path(), "x.sls", NUMBER);
    let mut running = start(directory.path(), &Value::Nil);
    assert_eq!(running.reactor.add("go/*", &file.as_str().into()), Ok(true));
    assert_eq!(running.reactor.add("go/*", &file.as_str().into()), Ok(false));
    assert_eq!(Value::from(&*running.reactor.entries()), list![map! {"go/*" => list![file]}]);
    running.bus.fire("go/1", &map! {"n" => 1}).await.unwrap();
    assert_eq!(numbers(&mut running, 1).await, [1]);
    running.reactor.set_leader(false);
    // The cursor has passed all events before it.
    let passed_over = running.bus.fire("go/1", &map! {"n" => 2}).await.unwrap();
    while running.bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap().position() <= passed_over {
        tokio::task::yield_now().await;
    }
    let dry_run = running.reactor.dry_run("go/1", map! {"n" => 7});
    assert_eq!(dry_run.get("reactions").unwrap().as_list().unwrap()[0].get("kwarg"), Some(&map! {"n" => 7}.into()));
    assert_eq!(running.reactor.delete("go/*"), Ok(true));
    assert_eq!(running.reactor.delete("go/*"), Ok(false));
    assert!(running.reactions.try_recv().is_err());
}
