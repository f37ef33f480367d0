//! The reactor with a recording dispatch: what is asked for, in which order, and nothing lost.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_core::bus::{Bus, BusLimits, Filter, JournalLimits, Start};
use brine_core::executors::{Executor, MayBlock};
use brine_core::function::{Args, CallError};
use brine_core::sls::jinja::Host;
use brine_core::sls::untrusted::Words;
use brine_core::store::Store;
use brine_core::{Map, Value, list, map};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;

mod at_least_once;

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

/// How often a function is to fail, and how.
type Failing = Arc<Mutex<HashMap<&'static str, (usize, DispatchError)>>>;

/// Threads wait here until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, parking_lot::Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut is_open = self.0.0.lock();
        while !*is_open {
            self.0.1.wait(&mut is_open);
        }
    }
}

/// Tells what is dispatched. The function `test.block` blocks its thread at the gate.
struct Recorder {
    sent: mpsc::UnboundedSender<(Reaction, Cause)>,
    failing: Failing,
    gate: Gate,
}

impl Dispatch for Recorder {
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError> {
        match reaction {
            Reaction::Runner { fun, .. } if fun == "no.such" => {
                Err(DispatchError::lasting("'no.such' is not available."))
            }
            _ => Ok(()),
        }
    }

    async fn dispatch(&self, reaction: Reaction, cause: Cause) -> Result<(), DispatchError> {
        self.sent.send((reaction.clone(), cause)).map_err(|_| DispatchError::lasting("gone"))?;
        if reaction.fun() == "test.block" {
            self.gate.pass();
        }
        let mut failing = self.failing.lock();
        match failing.get_mut(reaction.fun()) {
            Some((left, error)) if *left > 0 => {
                *left -= 1;
                Err(error.clone())
            }
            _ => Ok(()),
        }
    }
}

/// `salt://` is a folder. The function `test.fun` blocks its thread at the gate if it is called with `block`.
struct Files(PathBuf, Gate);

impl Host for Files {
    fn call(&self, function: &str, args: Args) -> Result<Value, CallError> {
        if args.positional.first() == Some(&"block".into()) {
            self.1.pass();
        }
        Ok(format!("{function} {}", args.positional.len()).into())
    }

    fn has(&self, function: &str) -> bool {
        function == "test.fun"
    }

    fn template(&self, path: &str, saltenv: &str) -> Result<Option<String>, String> {
        Ok(std::fs::read_to_string(self.0.join(saltenv).join(path)).ok())
    }
}

struct Running {
    bus: Bus,
    store: Store,
    gate: Gate,
    reactor: Arc<Reactor<Recorder>>,
    failing: Failing,
    reactions: mpsc::UnboundedReceiver<(Reaction, Cause)>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn start(folder: &Path, reactor: &Value) -> Running {
    start_limited(folder, reactor, Map::new())
}

fn start_limited(folder: &Path, reactor: &Value, limits: Map) -> Running {
    let mut opts = map! {"reactor" => reactor.clone()};
    opts.extend(limits);
    start_with(folder, &opts, |_| ())
}

/// A reactor with these options of the configuration, and changes to its own.
fn start_with(folder: &Path, opts: &Map, change: impl Fn(&mut Options)) -> Running {
    let (store, opened) = Store::open(&folder.join("brine.redb"), 1 << 20).unwrap();
    let (handle, kept) = (Handle::current(), store.clone());
    // Not within the runtime, as this is no async function.
    let opening = std::thread::spawn(move || {
        let _runtime = handle.enter();
        let disk = Executor::new("disk", 2, 16);
        handle.block_on(Bus::with_journal(BusLimits::default(), kept, opened, JournalLimits::default(), &disk)).unwrap()
    });
    let bus = opening.join().unwrap();
    start_on(bus, store, folder, opts, change)
}

fn start_on(bus: Bus, store: Store, folder: &Path, opts: &Map, change: impl Fn(&mut Options)) -> Running {
    let gate = Gate::default();
    let mut options = Options {
        workers: 4,
        waiting: 100,
        detach: DETACH,
        deadline: Duration::from_secs(60),
        retries: 3,
        max_depth: 4,
        strict_data: true,
        user: "Reactor",
        renderer: "jinja|yaml".into(),
        opts: Arc::default(),
        grains: Arc::new(|| Arc::new(map! {"id" => "m_master"})),
        host: Arc::new(Files(folder.to_owned(), gate.clone())),
        group_size: Arc::new(|_| Box::pin(async { None })),
        store: Some(store.blocking(&MayBlock::own_thread(Handle::current()))),
        disk: Executor::new("disk", 2, 16),
    };
    change(&mut options);
    let (sent, reactions) = mpsc::unbounded_channel();
    let failing = Failing::default();
    let dispatch = Recorder { sent, failing: Arc::clone(&failing), gate: gate.clone() };
    let reactor = Reactor::new(Entries::from_opts(opts).unwrap(), options, dispatch).unwrap();
    let events = Reactor::<Recorder>::subscribe(&bus).unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(Arc::clone(&reactor).run(bus.clone(), events, shutdown.clone()));
    Running { bus, store, gate, reactor, failing, reactions, shutdown, task }
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

async fn next(running: &mut Running) -> (Reaction, Cause) {
    tokio::time::timeout(Duration::from_secs(20), running.reactions.recv()).await.unwrap().unwrap()
}

#[tokio::test]
async fn the_two_files_of_the_documentation_run_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (auth, start_sls) = (write(folder.path(), "auth.sls", AUTH), write(folder.path(), "start.sls", START));
    let reactor = list![map! {"salt/auth" => list![auth]}, map! {"salt/minion/*/start" => list![start_sls]}];
    let mut running = start(folder.path(), &reactor);
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
fn every_form_of_a_reaction_is_read() {
    let read = |text: &str| {
        let located = brine_core::sls::yaml::load_located(text).unwrap();
        let mut all = reaction::read_all(&located, &Words::new());
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
    let Reaction::Local(local) =
        read("a: {local.x.y: [{tgt: 'os:Debian'}, {expr_form: grain}, {ret: redis}, {metadata: {k: v}}]}")
    else {
        panic!()
    };
    assert_eq!(
        (local.tgt_type.as_str(), local.ret.as_str(), local.metadata),
        ("grain", "redis", Some(map! {"k" => "v"}.into()))
    );
    assert_eq!(read("a: runner.test.arg"), Reaction::Runner { fun: "test.arg".into(), args: Args::default() });
    assert_eq!(read("a: {caller.test.ping: []}"), Reaction::Caller { fun: "test.ping".into(), args: Args::default() });
}

#[test]
fn what_cannot_be_understood_is_told_with_its_line() {
    for (text, line, message) in [
        ("- a", 1, "a reactor SLS renders to a mapping of ids to reactions, this renders to something of type list"),
        ("\na:\n  local.test.ping: []", 3, "'local.test.ping' needs a target: add `- tgt: '*'` or another one"),
        (
            "a:\n  remote.test.ping: []",
            2,
            "'remote' in 'remote.test.ping' is not a type of reaction: local, runner, wheel and caller are",
        ),
        (
            "a:\n  local.ping: []",
            2,
            "'local.ping' is not a reaction: write type.module.function, such as local.state.apply",
        ),
        ("a: 5", 1, "the body of 'a' is `type.module.function:` with a list of arguments below it, not of type int"),
        (
            "a:\n  runner.x.y: 5",
            2,
            "below 'runner.x.y' stands a list of arguments, such as `- tgt: '*'`, not of type int",
        ),
        (
            "a:\n  runner.x.y: [{args: [1]}, {arg: [2]}]",
            2,
            "'runner.x.y' has its arguments both below 'args' and below 'arg' or 'kwarg': keep one",
        ),
    ] {
        let located = brine_core::sls::yaml::load_located(text).unwrap();
        let errors: Vec<_> = reaction::read_all(&located, &Words::new()).into_iter().filter_map(Result::err).collect();
        assert_eq!(errors, [ReactionError { line, message: message.into() }], "{text}");
    }
}

#[tokio::test]
async fn errors_become_events_and_the_other_reactions_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let broken = write(folder.path(), "broken.sls", "x:\n  runner.test.arg:\n    - {{ nothing }}\n");
    let mixed = write(
        folder.path(),
        "mixed.sls",
        "a:\n  runner.no.such: []\nb:\n  local.test.ping: []\nc:\n  runner.test.arg: []\n",
    );
    let reactor = list![
        map! {"go" => list!["/nonexistent.sls", broken.clone(), mixed.clone()]},
        map! {"salt/*" => mixed.clone()}
    ];
    let mut running = start(folder.path(), &reactor);
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    let seq = running.bus.fire("go", &Map::new()).await.unwrap();
    let (reaction, _) = next(&mut running).await;
    assert_eq!(reaction.name(), "runner.test.arg");
    for (file, message) in [
        ("/nonexistent.sls", "/nonexistent.sls: No such file or directory (os error 2)".to_owned()),
        (&broken, format!("{broken}:3: Jinja variable 'nothing' is undefined")),
        (&mixed, format!("{mixed}:4: 'local.test.ping' needs a target: add `- tgt: '*'` or another one")),
        (&mixed, format!("{mixed}:2: runner.no.such: 'no.such' is not available.")),
    ] {
        let data = errors.recv().await.unwrap().data();
        assert_eq!(data.get("message"), Some(&message.into()));
        assert_eq!(
            (data.get("file"), data.get("tag"), data.get("_cause")),
            (Some(&file.into()), Some(&"go".into()), Some(&seq.into()))
        );
    }
}

#[tokio::test]
async fn a_changed_file_is_read_again_and_order_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.sls", "a: {runner.one.a: []}\nb: {runner.one.b: []}\n");
    let mut running = start(folder.path(), &map! {"go/*" => file}.into());
    running.bus.fire("go/1", &Map::new()).await.unwrap();
    assert_eq!(next(&mut running).await.0.name(), "runner.one.a");
    assert_eq!(next(&mut running).await.0.name(), "runner.one.b");
    write(folder.path(), "x.sls", "a: {runner.three.n: [{n: {{ data.n }}}]}\n");
    for n in 0..100 {
        running.bus.fire("go/1", &map! {"n" => n}).await.unwrap();
    }
    for n in 0..100 {
        let (reaction, _) = next(&mut running).await;
        assert_eq!(reaction, Reaction::Runner { fun: "three.n".into(), args: Args::keyword(map! {"n" => n}) });
    }
}

#[tokio::test]
async fn what_was_fired_while_it_was_away_is_reacted_to() {
    let folder = tempfile::tempdir().unwrap();
    let reactor = map! {"go" => write(folder.path(), "x.sls", "a: {runner.test.arg: [{n: {{ data.n }}}]}")}.into();
    let mut running = start(folder.path(), &reactor);
    running.bus.fire("go", &map! {"n" => 1}).await.unwrap();
    next(&mut running).await;
    running.shutdown.cancel();
    running.task.await.unwrap();
    running.bus.fire("go", &map! {"n" => 2}).await.unwrap();
    running.bus.close().await;
    drop((running.bus, running.store, running.reactor));
    while running.reactions.recv().await.is_some() {}
    let mut running = start(folder.path(), &reactor);
    loop {
        // At least once: the first may come again, the second must come.
        let (reaction, _) = next(&mut running).await;
        if reaction == (Reaction::Runner { fun: "test.arg".into(), args: Args::keyword(map! {"n" => 2}) }) {
            break;
        }
    }
}

#[test]
fn a_wrong_configuration_is_told() {
    for (option, message) in [
        (Value::from("/none"), "'reactor' names the file /none: No such file or directory (os error 2)"),
        (list!["x"], "'reactor' is a list of `tag pattern: [SLS files]`, entry 1 is of type str"),
        (list![map! {"a" => list![5]}], "'reactor': the files of 'a' are a list of paths, got 5"),
    ] {
        assert_eq!(Entries::from_config(&option).unwrap_err().to_string(), message);
    }
}

/// The `n` of each reaction until all of these have come, in order of arrival.
async fn numbers(running: &mut Running, count: usize) -> Vec<i64> {
    let mut numbers = Vec::new();
    for _ in 0..count {
        let (Reaction::Runner { args, .. }, _) = next(running).await else { panic!() };
        numbers.push(args.keyword.get("n").and_then(Value::as_i64).unwrap());
    }
    numbers
}

const NUMBER: &str = "a: {runner.test.arg: [{n: {{ data.n }}}]}";

#[tokio::test]
async fn files_are_found_by_globs_and_on_the_file_server() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
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
    let mut running = start(folder.path(), &map! {"go" => files}.into());
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
async fn a_failure_that_may_pass_is_tried_again_and_one_that_stays_is_put_aside() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(
        folder.path(),
        "x.sls",
        "a: {runner.now.then: []}\nb: {runner.never.works: []}\nc: {runner.last.one: []}",
    );
    let mut running = start(folder.path(), &map! {"go" => file.clone()}.into());
    let passing = DispatchError::passing("no worker is free");
    running.failing.lock().insert("now.then", (2, passing.clone()));
    running.failing.lock().insert("never.works", (1, DispatchError::lasting("it is broken")));
    running.failing.lock().insert("last.one", (4, passing));
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    let seq = running.bus.fire("go", &map! {"n" => 1}).await.unwrap();
    let mut funs = Vec::new();
    for _ in 0..8 {
        funs.push(next(&mut running).await.0.fun().to_owned());
    }
    assert_eq!(
        funs,
        ["now.then", "now.then", "now.then", "never.works", "last.one", "last.one", "last.one", "last.one"]
    );
    for message in ["2: runner.never.works: it is broken", "3: runner.last.one: no worker is free"] {
        let error = errors.recv().await.unwrap().data();
        assert_eq!(error.get("message"), Some(&format!("{file}:{message}").into()));
    }
    let aside = |running: &Running| -> Vec<_> {
        running.reactor.failed().into_iter().map(|failed| (failed.event.seq(), failed.label.unwrap())).collect()
    };
    assert_eq!(aside(&running), [(seq, "b: runner.never.works".into()), (seq, "c: runner.last.one".to_owned())]);
    running.failing.lock().insert("never.works", (1, DispatchError::lasting("still broken")));
    let told = running.reactor.retry(&running.bus, Some(seq)).await;
    let results: Vec<_> = told.into_iter().map(|(_, result)| result).collect();
    assert_eq!(results, [Err(format!("{file}:2: runner.never.works: still broken")), Ok(())]);
    assert_eq!(aside(&running), [(seq, "b: runner.never.works".into())]);
    assert!(running.reactor.retry(&running.bus, Some(seq + 1)).await.is_empty());
    running.reactor.retry(&running.bus, None).await;
    assert!(aside(&running).is_empty());
}

#[tokio::test]
async fn a_file_that_was_put_right_is_run_again_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.sls", "a: {runner.test.arg: [{n: {{ data.m }}}]}");
    let mut running = start(folder.path(), &map! {"go" => file}.into());
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    running.bus.fire("go", &map! {"n" => 4}).await.unwrap();
    errors.recv().await.unwrap();
    write(folder.path(), "x.sls", NUMBER);
    let told = running.reactor.retry(&running.bus, None).await;
    assert!(told[0].1.is_ok(), "{told:?}");
    assert_eq!(numbers(&mut running, 1).await, [4]);
    assert!(running.reactor.failed().is_empty());
}

#[tokio::test]
async fn a_loop_is_stopped_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.sls", NUMBER);
    let mut running = start(folder.path(), &map! {"go" => file}.into());
    let mut errors = running.bus.subscribe(Filter::prefix("salt/reactor/error"), Start::Now).unwrap();
    running.bus.fire("go", &map! {"n" => 0}).await.unwrap();
    let mut done = 0;
    let message = loop {
        tokio::select! {
            // What each reaction leads to is the same event again.
            reaction = running.reactions.recv() => {
                let (_, cause) = reaction.unwrap();
                done += 1;
                assert_eq!(cause.depth, done);
                let mut body = map! {"n" => done};
                body.extend(cause.short_fields());
                running.bus.fire("go", &body).await.unwrap();
            }
            error = errors.recv() => break error.unwrap().data().get("message").unwrap().to_string(),
        }
    };
    assert_eq!(done, 4);
    assert!(message.starts_with("4 reactions lead from one to the next up to this event"), "{message}");
    // Other events go on.
    running.bus.fire("go", &map! {"n" => 99}).await.unwrap();
    assert_eq!(numbers(&mut running, 1).await, [99]);
}

#[tokio::test]
async fn the_reactors_own_calls_lead_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.sls", NUMBER);
    let mut running = start(folder.path(), &map! {"*" => file}.into());
    for (tag, user) in [
        ("salt/run/20261120235852025555/ret", "Reactor"),
        ("salt/wheel/20261120235852025555/new", "Reactor"),
        ("salt/run/20261120235852025555/ret", "root"),
        ("salt/job/20261120235852025555/ret/web1", "Reactor"),
    ] {
        let n = i32::from(user == "root" || tag.contains("job"));
        running.bus.fire(tag, &map! {"n" => n, "user" => user}).await.unwrap();
    }
    assert_eq!(numbers(&mut running, 2).await, [1, 1]);
}

#[tokio::test]
async fn events_of_one_id_keep_their_order_and_one_burst_has_one_reaction() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.sls", NUMBER);
    let limits = map! {"reactor_debounce" => map! {"burst" => 0.2}};
    let mut running = start_limited(folder.path(), &map! {"go" => file.clone(), "burst" => file}.into(), limits);
    for n in 0..200 {
        running.bus.fire("go", &map! {"n" => n, "id" => format!("m{}", n % 7)}).await.unwrap();
    }
    let all = numbers(&mut running, 200).await;
    for id in 0..7 {
        let of_id: Vec<_> = all.iter().filter(|n| *n % 7 == id).collect();
        assert!(of_id.is_sorted(), "{of_id:?}");
    }
    for n in 0..50 {
        running.bus.fire("burst", &map! {"n" => n, "id" => format!("m{}", n % 2)}).await.unwrap();
    }
    let mut last = numbers(&mut running, 2).await;
    last.sort_unstable();
    assert_eq!(last, [48, 49]);
    assert!(running.reactions.try_recv().is_err());
}

#[tokio::test]
async fn entries_are_added_and_deleted_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "x.sls", NUMBER);
    let mut running = start(folder.path(), &Value::Nil);
    assert_eq!(running.reactor.add("go/*", &file.as_str().into()), Ok(true));
    assert_eq!(running.reactor.add("go/*", &file.as_str().into()), Ok(false));
    assert_eq!(Value::from(&*running.reactor.entries()), list![map! {"go/*" => list![file]}]);
    running.bus.fire("go/1", &map! {"n" => 1}).await.unwrap();
    assert_eq!(numbers(&mut running, 1).await, [1]);
    running.reactor.set_leader(false);
    // The follower has passed over all that lies before where it has got to.
    let passed_over = running.bus.fire("go/1", &map! {"n" => 2}).await.unwrap();
    while running.bus.subscribe(Filter::All, Start::Durable("reactor".into())).unwrap().position() <= passed_over {
        tokio::task::yield_now().await;
    }
    let trial = running.reactor.trial("go/1", map! {"n" => 7});
    assert_eq!(trial.get("reactions").unwrap().as_list().unwrap()[0].get("kwarg"), Some(&map! {"n" => 7}.into()));
    assert_eq!(running.reactor.delete("go/*"), Ok(true));
    assert_eq!(running.reactor.delete("go/*"), Ok(false));
    assert!(running.reactions.try_recv().is_err());
}

#[tokio::test]
async fn what_was_handed_over_before_a_restart_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        write(folder.path(), "x.sls", "a: {runner.test.arg: [{n: {{ data.n }}}]}\nb: {local.test.ping: [{tgt: x}]}");
    let reactor: Value = map! {"go" => file}.into();
    let (jid, job) = ("20261120235852025555", "20261120235852025556");
    let mut running = start(folder.path(), &reactor);
    // As if the first two reactions had been done, and the process had died before it could remember that.
    running.reactor.set_leader(false);
    running.shutdown.cancel();
    running.task.await.unwrap();
    let seq = running.bus.fire("go", &map! {"n" => 1}).await.unwrap();
    let cause = |reaction: &str, file: &str| {
        Cause {
            seq,
            tag: "go".into(),
            depth: 1,
            entry: "go".into(),
            file: file.into(),
            reaction: reaction.into(),
            before: None,
        }
        .fields()
    };
    let path = folder.path().join("x.sls").display().to_string();
    running.bus.fire(&format!("salt/run/{jid}/new"), &cause("a: runner.test.arg", &path)).await.unwrap();
    running.bus.fire(&format!("salt/run/{jid}/ret"), &map! {"success" => true}).await.unwrap();
    running.bus.fire(&format!("salt/job/{job}/new"), &cause("b: local.test.ping", &path)).await.unwrap();
    running.bus.fire("go", &map! {"n" => 2}).await.unwrap();
    running.bus.close().await;
    drop((running.bus, running.store, running.reactor));
    while running.reactions.recv().await.is_some() {}
    let mut running = start(folder.path(), &reactor);
    let mut told = HashMap::new();
    for _ in 0..4 {
        let (reaction, cause) = next(&mut running).await;
        told.insert((cause.seq, reaction.name()), cause.before.map(|before| (before.jid.to_string(), before.ended)));
    }
    assert_eq!(told[&(seq, "runner.test.arg".to_owned())], Some((jid.to_owned(), true)));
    assert_eq!(told[&(seq, "local.test.ping".to_owned())], Some((job.to_owned(), false)));
    assert_eq!(told.values().filter(|before| before.is_none()).count(), 2);
}
