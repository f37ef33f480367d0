//! The reactor with a recording dispatch: what is asked for, in which order, and nothing lost.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brine_core::bus::{Bus, BusLimits, Filter, JournalLimits, Start};
use brine_core::function::Args;
use brine_core::sls::jinja::NoHost;
use brine_core::store::Store;
use brine_core::{Map, Value, list, map};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

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

struct Recorder(mpsc::UnboundedSender<(Reaction, Cause)>);

impl Dispatch for Recorder {
    fn check(&self, reaction: &Reaction) -> Result<(), DispatchError> {
        match reaction {
            Reaction::Runner { fun, .. } if fun == "no.such" => {
                Err(DispatchError("'no.such' is not available.".into()))
            }
            _ => Ok(()),
        }
    }

    async fn dispatch(&self, reaction: Reaction, cause: Cause) -> Result<(), DispatchError> {
        self.0.send((reaction, cause)).map_err(|_| DispatchError("gone".into()))
    }
}

struct Running {
    bus: Bus,
    reactions: mpsc::UnboundedReceiver<(Reaction, Cause)>,
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

fn start(folder: &Path, reactor: &Value) -> Running {
    let (store, opened) = Store::open(&folder.join("brine.redb"), 1 << 20).unwrap();
    let bus = Bus::with_journal(BusLimits::default(), store, opened, JournalLimits::default()).unwrap();
    let options = Options { lanes: 4, renderer: "jinja|yaml".into(), opts: Arc::default(), host: Arc::new(NoHost) };
    let (sender, reactions) = mpsc::unbounded_channel();
    let reactor = Reactor::new(Entries::from_config(reactor).unwrap(), options, Recorder(sender));
    let events = Reactor::<Recorder>::subscribe(&bus).unwrap();
    let shutdown = CancellationToken::new();
    let task = tokio::spawn(reactor.run(bus.clone(), events, shutdown.clone()));
    Running { bus, reactions, shutdown, task }
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
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
    assert_eq!((cause.seq, cause.number, cause.tag.as_str()), (3, 0, "salt/auth"));
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
        let mut all = reaction::read_all(&located);
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0).unwrap()
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
        ("- a", 1, "a reactor SLS renders to a mapping of ids to reactions, this renders to list"),
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
        let errors: Vec<_> = reaction::read_all(&located).into_iter().filter_map(Result::err).collect();
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
        (&mixed, format!("{mixed}: runner.no.such: 'no.such' is not available.")),
        (&mixed, format!("{mixed}:4: 'local.test.ping' needs a target: add `- tgt: '*'` or another one")),
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
    drop(running.bus);
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
        (Value::from("x"), "'reactor' is a list of `tag pattern: [SLS files]`, entry 1 is of type str"),
        (list!["x"], "'reactor' is a list of `tag pattern: [SLS files]`, entry 1 is of type str"),
        (list![map! {"a" => list![5]}], "'reactor': the files of 'a' are a list of paths, got 5"),
    ] {
        assert_eq!(Entries::from_config(&option).unwrap_err().to_string(), message);
    }
}
