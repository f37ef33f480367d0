//! Typical mistakes on the command line and in configurations: each is answered by what is wrong, and what to do.

use crate::support::{self, BRINE, System, stderr, stdout, within_limit};

use std::process::{Command, Stdio};

/// Pairs of options that choose or limit the minions of a job, and the ids that may run it; `None` if the pair is
/// refused.
const PAIRS: &[(&[&str], Option<usize>)] = &[
    (&["--subset", "1", "--static"], Some(1)),
    (&["--subset", "1", "--progress"], Some(1)),
    (&["--subset", "1", "--async"], Some(1)),
    (&["--subset", "1", "-b", "1"], Some(1)),
    (&["--subset", "1", "-b", "1", "--async"], Some(1)),
    (&["--subset", "1", "-b", "1", "--static"], Some(1)),
    (&["--subset", "1", "--batch-safe-limit", "2"], Some(1)),
    (&["--subset", "2", "--batch-safe-limit", "2"], Some(2)),
    (&["--subset", "2", "--batch-safe-limit", "2", "--batch-safe-size", "1", "--async"], Some(2)),
    (&["--subset", "1", "--failhard", "-b", "1"], Some(1)),
    (&["--subset", "1", "--batch-wait", "0", "-b", "1"], Some(1)),
    (&["--subset", "1", "--hide-timeout"], Some(1)),
    (&["--subset", "1", "-t", "9"], Some(1)),
    (&["--subset", "1", "--preview-target"], None),
    (&["--subset", "-1"], None),
    (&["-b", "1", "--static"], Some(3)),
    (&["-b", "1", "--async"], Some(3)),
    (&["-b", "1", "--failhard", "--async"], Some(3)),
    (&["-b", "1", "--batch-wait", "0", "--async"], Some(3)),
    (&["-b", "1", "--preview-target"], Some(0)),
    (&["-b", "2", "--batch-safe-limit", "2"], Some(3)),
    (&["-b", "2", "--batch-safe-size", "1"], None),
    (&["--batch-safe-limit", "2", "--static"], Some(3)),
    (&["--batch-safe-limit", "2", "--async"], Some(3)),
    (&["--batch-safe-limit", "2", "--preview-target"], Some(0)),
    (&["--batch-safe-limit", "2", "--batch-safe-size", "1"], Some(3)),
    (&["--batch-safe-limit", "2", "--failhard"], Some(3)),
    (&["--batch-safe-limit", "-2"], None),
    (&["--batch-safe-limit", "1"], None),
    (&["--batch-safe-size", "1"], None),
    (&["--failhard"], None),
    (&["--failhard", "--async"], None),
    (&["--failhard", "--static"], None),
    (&["--batch-wait", "1"], None),
    (&["--batch-wait", "1", "--subset", "1"], None),
    (&["--preview-target", "--async"], Some(0)),
    (&["--preview-target", "--static"], Some(0)),
    (&["-L", "-G"], None),
    (&["-E", "-C"], None),
];

#[tokio::test(flavor = "multi_thread")]
async fn options_that_choose_or_limit_minions_are_applied_or_refused_in_pairs() {
    let mut system = System::start("").await;
    for id in ["m1", "m2", "m3"] {
        system.start_minion(id).await;
    }
    for (number, (options, expected)) in PAIRS.iter().enumerate() {
        let mark = format!("ran{number}");
        let directory = system.path(&mark);
        std::fs::create_dir(&directory).unwrap();
        let command = format!("mktemp -p {}", directory.display());
        let words = [&["*", "cmd.run", &command], *options].concat();
        let output = system.tool_async("salt", &words).await;
        let (out, err) = (stdout(&output), stderr(&output));
        let ran = || std::fs::read_dir(&directory).unwrap().count();
        match expected {
            None => {
                assert_eq!((output.status.code(), ran()), (Some(64), 0), "{options:?}: {out}{err}");
                assert!(err.contains("salt: error: "), "{options:?}: {err}");
            }
            Some(expected) => {
                assert!(output.status.success(), "{options:?}: {out}{err}");
                support::until("the job has run", || ran() >= *expected).await;
                // A job that runs on others, too, has reached them by the time of the next one.
                let ping = system.tool_async("salt", &["*", "test.ping", "--out=txt"]).await;
                assert_eq!(stdout(&ping).lines().count(), 3);
                assert_eq!(ran(), *expected, "{options:?}: {out}{err}");
            }
        }
    }
}

/// A command line: its words, its exit status, and parts of its messages.
type Mistake = (&'static [&'static str], i32, &'static [&'static str]);

/// Mistakes on the command line of tools with a running master and the minion `web1`.
const COMMANDS: &[Mistake] = &[
    (&["salt", "web1", "test.ping", "--timout", "5"], 64, &["no such option: --timout", "did you mean '--timeout'?"]),
    (
        &["salt", "web1", "test.png"],
        1,
        &[
            "'test.png' is not available",
            "Did you mean 'test.ping'?",
            "brine docs troubleshooting#a-state-or-function-is-not-found",
        ],
    ),
    (
        &["salt", "wbe1", "test.ping"],
        2,
        &["No minions matched", "did you mean 'web1'?", "brine docs troubleshooting#no-minion-matches-the-target"],
    ),
    (&["salt", "wbe1", "test.ping", "--async"], 2, &["No minions matched", "did you mean 'web1'?"]),
    (&["salt", "-N", "wbes", "test.ping"], 2, &["Node group wbes unavailable in ", "did you mean 'webs'?"]),
    (&["salt", "-C", "G@os:Debian and", "test.ping"], 2, &["invalid"]),
    (&["salt", "-E", "web[", "test.ping"], 2, &["invalid"]),
    (&["salt", "-E", "*", "test.ping"], 2, &["the pattern '*' is invalid"]),
    (&["salt", "-C", "( web1 or db1)", "test.ping"], 2, &["at word 4 'db1)'", "needs a blank before and after it"]),
    (&["salt", "-C", "N@wbes", "test.ping"], 2, &["node group 'wbes' is not defined"]),
    (&["salt", "-C", "X@os:Debian", "test.ping"], 2, &["the term 'X@os:Debian' is invalid: expected G, P, I, "]),
    (&["salt", "-S", "10.0.0.0/33", "test.ping"], 2, &["'10.0.0.0/33' is neither an IP address nor a network"]),
    (&["salt", "-G", "oss:Debian", "test.ping"], 2, &["no known minion has a grain 'oss': did you mean 'os'?"]),
    (
        &["salt", "-G", "kernel:Lunix", "test.ping"],
        2,
        &["no minion has this value of the grain 'kernel'; that of 'web1' is: Linux"],
    ),
    (&["salt", "web1,db1", "test.ping"], 2, &["a glob names no list of minions: write -L 'web1,db1'"]),
    (&["salt", "web1", "test.echo", "{a: 1"], 0, &["'{a: 1' begins like a mapping", "a '}' is missing"]),
    (&["salt", "web1", "test.echo"], 1, &["missing 1 required positional argument: 'text'", "Usage: test.echo(text)"]),
    (&["salt", "web1", "sys.doc", "test.pnig"], 1, &["'test.pnig' is not available. Did you mean 'test.ping'?"]),
    (
        &["salt", "web1", "state.apply", "x", "tset=True"],
        1,
        &["the argument 'tset' is unknown", "did you mean 'test'?"],
    ),
    (&["salt", "web1", "state.apply", "x", "test=Ture"], 1, &["argument 'test': expected True or False"]),
    (
        &["salt", "web1", "state.apply", "x", "saltenv=prod"],
        1,
        &["environment 'prod'", "the file server has the environments base"],
    ),
    (&["salt", "web1", "state.single", "pkg.instaled", "vim"], 1, &["did you mean 'pkg.installed'?"]),
    (&["salt", "web1"], 42, &["Incomplete options passed."]),
    (&["salt", "-T", "web1", "test.ping"], 64, &["required arguments were not provided: ", "--auth"]),
    (&["salt", "web1", "test.ping", "-t", "5s"], 64, &["option -t: invalid integer value: '5s'"]),
    (&["salt", "web1", "test.ping", "--batch-wait", "x", "-b", "1"], 64, &["invalid floating-point value: 'x'"]),
    (&["salt", "web1", "test.ping", "-b", "many"], 1, &["many"]),
    (
        &["salt", "web1", "test.ping", "--return", "sqlite"],
        1,
        &["web1: the result is not stored: unknown returner 'sqlite'", "did you mean 'sqlite3'?"],
    ),
    (&["salt", "web1", "test.ping", "-l", "loud"], 64, &["loud"]),
    (
        &["salt", "-a", "nosuch", "--username", "a", "--password", "b", "web1", "test.ping"],
        1,
        &["Authentication error occurred.", "brine docs troubleshooting#a-token-or-password-is-refused"],
    ),
    (
        &["salt", "web1", "schedule.add", "j", "function=test.pingg", "seconds=5"],
        1,
        &["Schedule item j is invalid: 'test.pingg' is not available.", "Did you mean 'test.ping'?"],
    ),
    (
        &["salt", "web1", "schedule.add", "j", "function=test.ping", "secons=5"],
        1,
        &["unknown option 'secons'", "did you mean 'seconds'?"],
    ),
    (&["salt", "web1", "schedule.add", "j", "function=test.ping", "cron='*/5 * * *'"], 1, &["a crontab entry has 5"]),
    (&["salt", "web1", "schedule.add", "j", "function=test.ping", "seconds=-5"], 1, &["not negative, got -5"]),
    (&["salt", "web1", "schedule.modify", "kept", "functio=test.ping"], 1, &["unknown option 'functio'"]),
    (&["salt", "web1", "beacons.add", "lod", "[]"], 1, &["Beacon \"lod\" is not available."]),
    (
        &["salt", "web1", "beacons.add", "load", "[{averages: {1m: [0, 1]}}, {emitatstart: True}]"],
        1,
        &["unknown option 'emitatstart': expected one of "],
    ),
    (
        &["salt-run", "jobs.actve"],
        1,
        &["'jobs.actve' is not available.", "did you mean 'jobs.active'?", "#a-state-or-function-is-not-found"],
    ),
    (&["salt-run", "shop.open"], 1, &["own/shop.py has this module", "'runner_dirs' at its start, so restart it"]),
    (&["salt-run", "jobs.lookup_jid"], 1, &["missing 1 required positional argument: 'jid'"]),
    (&["salt-run", "sdb.get", "sdb://nosuch/key"], 1, &["its profile is an option of the master's configuration"]),
    (&["salt-run", "salt.execute", "nosuch", "test.ping"], 1, &["'nosuch' matches none that is connected"]),
    (&["salt-run", "reactor.delete", "nosuch"], 1, &["`salt-run reactor.list` shows the entries"]),
    (
        &["salt-run", "fileserver.update", "backend=nosuch"],
        1,
        &["no backend 'nosuch': expected roots, gitfs, minionfs"],
    ),
    (&["salt-run", "batch.stop", "20200101000000000000"], 1, &["`salt-run batch.list_active` lists the running ones"]),
    (&["salt-run", "jobs.rerun", "20200101000000000000"], 1, &["is not in the job cache: it cannot run again"]),
    (&["salt-run", "jobs.list_jobs", "start_time=gestern"], 1, &["expected a form such as 2026-11-20 23:58:52"]),
    (&["salt-run", "event.send", "my/tag", "{a: 1"], 1, &["a '}' is missing", "expected a mapping"]),
    (&["salt-run", "reactor.explain", "999999999"], 1, &["the journal has no event 999999999: it holds "]),
    (
        &["salt-run", "reactor.dry_run", "salt://react/local.sls", "tag=x"],
        1,
        &["local.sls:2", "'grian' is not a target type", "'grain'"],
    ),
    (
        &["salt-run", "reactor.dry_run", "salt://react/kind.sls", "tag=x"],
        1,
        &["'locl' in 'locl.test.ping' is not a type of reaction"],
    ),
    (&["salt-run", "reactor.dry_run", "salt://react/tgt.sls", "tag=x"], 1, &["needs a target: add `- tgt: '*'`"]),
    (
        &["salt-run", "reactor.dry_run", "salt://react/fun.sls", "tag=x"],
        1,
        &["'manage.upp' is not available", "did you mean 'manage.up'?"],
    ),
    (&["salt-run", "reactor.dry_run", "salt://react/key.sls", "tag=x"], 1, &["key.sls:3", "data has no key 'id'"]),
    (&["salt-run", "state.orchestrate", "orch.tgt"], 1, &["Missing parameter tgt for state salt.function"]),
    (&["salt-run", "state.orchestrate", "orch.all"], 1, &["Missing parameter tgt for state salt.state"]),
    (&["salt-run", "state.orchestrate", "orch.kind"], 1, &["'lst' is not a target type"]),
    (&["salt-run", "state.orchestrate", "orch.stat"], 1, &["Did you mean 'salt.state'?"]),
    (
        &["salt-run", "state.orchestrate", "orch.typo"],
        0,
        &["unknown argument 'tgt_typ' of salt.function (orch/typo.sls:5)"],
    ),
    (&["salt-ssh", "wbe1", "test.ping"], 1, &["No hosts found", "'wbe1' matches no host: did you mean 'web1'?"]),
    (
        &["salt-ssh", "--roster-file", "ROOT/bad", "web1", "test.ping"],
        1,
        &["'port' of web1: expected a number, got 'abc'"],
    ),
    (&["salt-ssh", "--roster-file", "ROOT/tab", "web1", "test.ping"], 1, &["line 2: found character"]),
    (&["salt-ssh", "--roster=flatt", "web1", "test.ping"], 1, &["the roster 'flatt' is not supported: use flat, "]),
    (
        &["salt-ssh", "--roster-file=/nosuch", "web1", "test.ping"],
        1,
        &["reading the roster /nosuch failed", "--roster-file"],
    ),
    (&["salt-run", "manage.down", "extra=1"], 1, &["not valid: extra=1"]),
    (
        &["salt-run", "jobs.list_job", "20200101000000000000"],
        1,
        &["no job 20200101000000000000 is in the job cache: `salt-run jobs.list_jobs` lists"],
    ),
    (&["salt-run", "jobs.list_job", "123"], 1, &["'123' is not a job id: expected 20 digits"]),
    (&["salt-run", "reactor.test", "typo"], 1, &["runner.nosuch.fun"]),
    (&["salt-run", "reactor.dry_run", "salt://nosuch.sls", "tag=x"], 1, &["nosuch.sls"]),
    (&["salt-run", "reactor.explain", "abc"], 1, &["abc"]),
    (&["salt-run", "state.orchestrate", "nosuch"], 1, &["No matching sls found for 'nosuch'"]),
    (&["salt-run", "--follow", "manage.up"], 64, &["--follow and --since require state.event"]),
    (&["salt-run", "--jid", "5", "manage.up"], 64, &["'5' is not a valid JID"]),
    (&["salt-key", "-a", "nosuch"], 1, &["The key glob 'nosuch' does not match any unaccepted keys."]),
    (&["salt-key", "-a", "web1"], 1, &["The key glob 'web1' does not match any unaccepted keys."]),
    (&["salt-key", "-d", "nosuch"], 1, &["The key glob 'nosuch' does not match"]),
    (&["salt-key", "-d", "web1"], 1, &["EOF when reading a line: nothing is changed"]),
    (
        &["salt-key", "-f", "nosuch"],
        1,
        &["The key glob 'nosuch' does not match any keys.", "brine docs troubleshooting#a-minion-does-not-appear"],
    ),
    (&["salt-key", "-a", "web2", "-d", "web1"], 64, &["-a and -d are different actions: run salt-key once for each"]),
    (&["salt-key", "-d", "web1", "web2"], 64, &["unexpected argument 'web2'", "such as -d 'web1,web2'"]),
    (&["salt-key", "web1"], 64, &["unexpected argument 'web1': name an action, such as -a web1"]),
    (&["salt-key", "-l", "bogus"], 64, &["'bogus' is not a valid argument to '--list'"]),
    (&["salt-key", "-D", "web1"], 64, &["Use -d to delete specified keys"]),
    (&["salt-key", "--gen-keys=x", "--keysize=100"], 64, &["The minimum value for keysize is 2048"]),
    (&["salt-cp", "web1", "/nosuch", "/tmp/x"], 42, &["The referenced file, /nosuch is not available."]),
    (&["salt-cp", "nosuch", "/etc/hostname", "/tmp/x"], 2, &["No minions matched the target."]),
    (&["salt-cp", "--resume", "web1", "/etc/hostname", "/tmp/x"], 64, &["--resume needs --chunked"]),
    (
        &["salt-call", "--local", "test.png"],
        255,
        &[
            "'test.png' is not available",
            "did you mean 'test.ping'?",
            "brine docs troubleshooting#a-state-or-function-is-not-found",
        ],
    ),
    (&["salt-call", "--local", "test.ping", "--return", "nosuch"], 1, &["unknown returner 'nosuch'"]),
    (&["salt-call"], 64, &["Requires function, --grains or --doc"]),
    (&["salt-master", "--chek"], 64, &["no such option: --chek", "did you mean '--check'?"]),
    (&["salt-minion", "--log-level"], 64, &["--log-level option requires 1 argument"]),
];

/// Mistakes on the command line of `brine`.
const OF_BRINE: &[Mistake] = &[
    (&["slat"], 64, &["no such tool: slat", "did you mean 'salt'?"]),
    (&["salt-mater"], 64, &["did you mean 'salt-master'?"]),
    (&["physician"], 64, &["no such tool: physician; choose one of salt, api, call, "]),
    (&["state.apply"], 64, &["it looks like a function", "brine call state.apply"]),
    (&["help", "slat"], 64, &["no such tool: slat", "did you mean 'salt'?"]),
    (&["help", "key"], 0, &["Usage: salt-key [options]"]),
    (&["link"], 64, &["required arguments were not provided: <DIR>"]),
    (&["up", "--minions", "abc"], 64, &["option --minions: invalid value 'abc'"]),
    (&["up", "--minions"], 64, &["--minions option requires 1 argument"]),
    (&["swarm", "--minions", "-5"], 64, &["option --minions: ", "-5 is not in 1..=100000"]),
    (&["salt", "--versions-report"], 0, &["Commit: ", "Features: ", "Target: "]),
    (&["--versions-report"], 0, &["brine ", "Commit: ", "Features: ", "Target: "]),
];

fn verify(wrong: &mut Vec<String>, (words, status, parts): &Mistake, output: &std::process::Output) {
    let said = format!("{}{}", stdout(output), stderr(output));
    let missing: Vec<_> = parts.iter().filter(|part| !said.contains(**part)).collect();
    if output.status.code() != Some(*status) || !missing.is_empty() {
        wrong.push(format!("{words:?}: {:?} instead of {status}, without {missing:?}: {said}", output.status.code()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_on_the_command_line_are_answered_with_what_to_do() {
    let mut system = System::start("nodegroups: {webs: 'web*'}\nreactor: [{typo: [ROOT/typo.sls]}]\n").await;
    system.write("typo.sls", "a:\n  runner.nosuch.fun: []\n");
    system.start_minion("web1").await;
    system.write("etc/minion", "id: local\nroot_dir: ROOT/local\nmaster: 127.0.0.1\n");
    for (name, text) in [
        ("react/local", "a:\n  local.test.ping:\n    - tgt: 'os:x'\n    - tgt_type: grian\n"),
        ("react/kind", "a:\n  locl.test.ping: []\n"),
        ("react/tgt", "a:\n  local.test.ping: []\n"),
        ("react/fun", "a:\n  runner.manage.upp: []\n"),
        ("react/key", "a:\n  runner.test.arg:\n    - arg: ['{{ data.id }}']\n"),
        ("orch/tgt", "a:\n  salt.function:\n    - name: test.ping\n"),
        ("orch/all", "a:\n  salt.state:\n    - highstate: True\n"),
        ("orch/kind", "a:\n  salt.function:\n    - name: test.ping\n    - tgt: web1\n    - tgt_type: lst\n"),
        ("orch/stat", "a:\n  salt.stat:\n    - tgt: web1\n"),
        ("orch/typo", "a:\n  salt.function:\n    - name: test.ping\n    - tgt: web1\n    - tgt_typ: list\n"),
    ] {
        system.write(&format!("srv/salt/{name}.sls"), text);
    }
    system.write("etc/roster", "web1: 127.0.0.1\n");
    system.write("bad", "web1:\n  host: 127.0.0.1\n  port: abc\n");
    system.write("tab", "web1:\n\thost: 127.0.0.1\n");
    // A directory that the running master does not know.
    system.write("own/shop.py", "def open():\n    return True\n");
    let master = std::fs::read_to_string(system.path("etc/master")).unwrap();
    system.write("etc/master", &format!("{master}runner_dirs: [ROOT/own]\n"));
    let add_job = ["web1", "schedule.add", "kept", "function=test.ping", "seconds=3600"];
    assert!(system.tool_async("salt", &add_job).await.status.success());
    let mut wrong = Vec::new();
    for mistake in COMMANDS {
        let root = system.path("").display().to_string();
        let words: Vec<String> =
            mistake.0.iter().map(|word| word.replace("ROOT/", &format!("{}/", root.trim_end_matches('/')))).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        verify(&mut wrong, mistake, &system.tool_async(words[0], &words[1..]).await);
    }
    for mistake in OF_BRINE {
        let output = within_limit(BRINE).args(mistake.0).stdin(Stdio::null()).output().unwrap();
        verify(&mut wrong, mistake, &output);
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}

/// Configurations of a master with mistakes, and parts of what `--check` reports.
const OF_MASTERS: &[(&str, i32, &[&str])] = &[
    (
        "worker_threads: -1\n",
        1,
        &[
            "option 'worker_threads': expected a non-negative integer, got -1",
            "More: brine docs option worker_threads\n",
        ],
    ),
    ("worker_threads: 5s\n", 1, &["option 'worker_threads': expected a non-negative integer, got '5s'"]),
    ("worker_threads: -1\ntimeout: soon\n", 1, &["option 'worker_threads'", "option 'timeout'"]),
    ("keep_jobs: 24h\n", 1, &["option 'keep_jobs': expected a non-negative number, got '24h'"]),
    ("timeout: 5\ntimeout: 6\n", 1, &["found conflicting ID 'timeout'", "remove one"]),
    ("\tx: 1\n", 1, &["is indented with a tab"]),
    (
        "reactor_rules: [ROOT/rule.yml]\n",
        1,
        &[
            "rule.yml:2",
            "'rule.cout' in 'a' is not a rule: expected one of rule.count",
            "\nMore: brine docs rules#functions\n",
        ],
    ),
    ("log_level: loud\n", 1, &["option 'log_level': invalid choice: 'loud' (choose from 'all', "]),
    (
        "publisher_acl: {fred: [{'(web1)': [test.ping]}]}\n",
        0,
        &["permits nothing", "needs a blank before and after it"],
    ),
    ("auto_acept: True\n", 0, &["unknown option 'auto_acept': did you mean 'auto_accept'?"]),
    ("reactor_rate_limit: {'a/*': 10/1m}\n", 0, &["no entry of 'reactor' has this pattern"]),
    ("reactor: [{a: [/nosuch.sls]}]\nreactor_cooldown: {a: soon}\n", 1, &["/nosuch.sls", "soon"]),
    ("fileserver_backend: [gitfs]\ngitfs_remotes: [/nosuch.git]\n", 1, &["/nosuch.git is not a directory"]),
    ("fileserver_backend: [gitfs]\ngitfs_remotes: ['file:///nosuch.git': [{root: x}]]\n", 1, &["/nosuch.git is not"]),
    (
        "fileserver_backend: [gitfs]\ngitfs_remotes: ['http://127.0.0.1:1/x.git', 'git://127.0.0.1:1/y.git']\n",
        1,
        &[
            "reaching http://127.0.0.1:1/x.git failed: ",
            "reaching git://127.0.0.1:1/y.git failed: ",
            "see whether its host runs",
        ],
    ),
    (
        "ext_pillar: [{git: ['master ssh://git@127.0.0.1:1/x.git', {'dev file:///nosuch.git': [{env: base}]}]}]\n",
        1,
        &[
            "option 'ext_pillar': 'git': reaching ssh://127.0.0.1:1/x.git failed: ",
            "reaching file:///nosuch.git failed: ",
        ],
    ),
    ("publisher_acl: {fred: {web1: test.ping}}\n", 0, &["an entry of 'fred' permits nothing"]),
    ("engines: [{thorium: {}}]\n", 1, &["write `reactor_rules`"]),
    ("engines: [{test: {}}]\n", 1, &["salt-run state.event"]),
    ("engines: [{reactor: {}}]\n", 0, &[]),
    ("schedule: {a: {function: manage.upp, seconds: 5}}\n", 1, &["there is no function 'manage.upp'"]),
    ("ext_pillar: [{cmd_yamll: ls}]\n", 1, &["'cmd_yamll'"]),
    ("event_return: sqlite\n", 1, &["unknown returner 'sqlite'", "did you mean 'sqlite3'?"]),
    ("state_output: tersee\n", 1, &["option 'state_output' is invalid", "did you mean 'terse'?"]),
    ("nodegroups: {a: 'G@os:Debian and'}\n", 0, &["option 'nodegroups': 'a'"]),
];

/// Configurations of a minion with mistakes, and parts of what `--check` reports.
const OF_MINIONS: &[(&str, i32, &[&str])] = &[
    ("master_finger: 'aa:bb'\n", 1, &["option 'master_finger' is invalid", "got 'aa:bb'"]),
    ("master: nosuch.invalid\n", 1, &["resolving the name 'nosuch.invalid' failed"]),
    ("master_type: failovr\n", 1, &["option 'master_type' is invalid", "failovr"]),
    ("startup_states: highstat\n", 1, &["option 'startup_states' is invalid"]),
    ("state_unknown_arguments: wran\n", 1, &["option 'state_unknown_arguments': expected warn, fail or ignore"]),
    ("top_file_merging_strategy: merge-all\n", 1, &["expected merge, same or merge_all, got 'merge-all'"]),
    ("ciphers: [rot13]\n", 1, &["option 'ciphers'"]),
    ("engines: [{thorium: {}}]\n", 1, &["reactor_rules"]),
    ("return_queue_count: -3\n", 1, &["got -3"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_configurations_are_found_by_the_check() {
    let mut wrong = Vec::new();
    let checked = |tool: &str, directory: &std::path::Path| {
        let output = Command::new(BRINE).args([tool, "--check", "-c"]).arg(directory).output().unwrap();
        (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
    };
    for (options, status, parts) in OF_MASTERS {
        let system = System::new("");
        system.write("srv/salt/x", "");
        system.write("srv/pillar/x", "");
        system.write("rule.yml", "a:\n  rule.cout:\n    - tag: x\n");
        let name = options.split(':').next().unwrap();
        let text = std::fs::read_to_string(system.path("etc/master")).unwrap();
        let others =
            text.lines().filter(|line| !line.starts_with(&format!("{name}:")) && !line.starts_with("timeout:"));
        system.write("etc/master", &format!("{}\n{options}", others.collect::<Vec<_>>().join("\n")));
        let (code, said) = checked("salt-master", &system.path("etc"));
        if code != Some(*status) || !parts.iter().all(|part| said.contains(part)) {
            wrong.push(format!("master, {options}: {code:?} instead of {status}, {parts:?}: {said}"));
        }
    }
    let system = System::start("").await;
    for (options, status, parts) in OF_MINIONS {
        let etc = system.configure_minion("m1", "");
        let text = std::fs::read_to_string(etc.join("minion")).unwrap();
        let name = options.split(':').next().unwrap();
        let others = text.lines().filter(|line| !line.starts_with(&format!("{name}:")));
        system.write("m1/etc/minion", &format!("{}\n{options}", others.collect::<Vec<_>>().join("\n")));
        let (code, said) = checked("salt-minion", &etc);
        if code != Some(*status) || !parts.iter().all(|part| said.contains(part)) {
            wrong.push(format!("minion, {options}: {code:?} instead of {status}, {parts:?}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{} mistakes:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_a_minion_tries_its_master() {
    let mut system = System::new("");
    let check = |system: &System, options: &str| {
        let etc = system.configure_minion("m1", options);
        let output = Command::new(BRINE).args(["salt-minion", "--check", "-c"]).arg(etc).output().unwrap();
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let (code, said) = check(&system, "");
    assert!(code == Some(1) && said.contains("does not answer: Connection refused"), "{said}");
    system.start_master().await;
    let (code, said) = check(&system, "");
    assert!(code == Some(0) && said.contains("accepts connections"), "{said}");
    assert!(!system.path("pki/minions_pre/m1").exists(), "the check has sent a key");
    let mut events = system.events("salt/").await;
    system.spawn_minion("m1");
    events.until("salt/auth").await;
    let (code, said) = check(&system, "");
    assert!(code == Some(0) && said.contains("has not accepted this minion's key yet"), "{said}");
    assert!(system.tool_async("salt-key", &["-y", "-a", "m1"]).await.status.success());
    events.until("salt/minion/m1/start").await;
    let (code, said) = check(&system, "");
    let publish = format!("has accepted this minion's key, and publishes at port {}", system.publish_port);
    assert!(code == Some(0) && said.contains(&publish), "{said}");
    let port = format!("master_port: {}\n", system.publish_port);
    let etc = system.configure_minion("m1", "");
    let text = std::fs::read_to_string(etc.join("minion")).unwrap();
    system.write("m1/etc/minion", &text.replace(&format!("master_port: {}\n", system.ret_port), &port));
    let output = Command::new(BRINE).args(["salt-minion", "--check", "-c"]).arg(&etc).output().unwrap();
    let said = stdout(&output);
    assert!(output.status.code() == Some(1) && said.contains("the peer is a publish port"), "{said}");
}
