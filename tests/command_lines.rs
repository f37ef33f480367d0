//! Command lines with hostile input: no option panics, no text of a peer controls a terminal or forges a log line, and
//! daemons stop on request.

use std::collections::BTreeSet;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::raw::Raw;
use crate::support::{BRINE, System, TIMEOUT, stderr, stdout, until, within_limit};
use brine::escape::{escape_control, escape_line};
use brine_crypt::{Cipher, PrivateKey};
use brine_value::{list, map, msgpack};
use brine_wire::Envelope;
use brine_zmtp::{Limits, RequestClient};

/// Characters that control terminals or reorder text.
const HOSTILE: &str =
    "\u{7}\u{8}\u{e}\u{1b}[2J\u{7f}\u{80}\u{85}\u{9b}2J\u{9f}\u{2028}\u{202a}\u{202e}\u{2066}\r\u{2069}";

fn run(system: &System, tool: &str, words: &[&str]) -> Output {
    let mut command = within_limit(BRINE);
    command.arg(tool).args(words).current_dir(system.path("")).stdin(Stdio::null());
    command.output().unwrap()
}

/// Returns the long options in a tool's help.
fn options(system: &System, tool: &str) -> BTreeSet<String> {
    let help = stdout(&run(system, tool, &["--help"]));
    let words = help.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(str::split_whitespace);
    let options = words.map(|word| word.trim_end_matches([',', ']'])).filter(|word| word.starts_with("--"));
    options.map(str::to_owned).collect()
}

#[test]
fn no_option_alone_panics() {
    let system = System::new("");
    system.write("etc/minion", "id: local\nroot_dir: ROOT\nfile_client: local\nmaster: 127.0.0.1\n");
    let etc = system.etc();
    // Tools that start a daemon are run only with options that make them exit at once.
    let starts = |option: &str| option == "--daemon";
    let mut tried = 0;
    for (tool, words) in [
        ("salt", &["x"][..]),
        ("salt-call", &["x"]),
        ("salt-key", &["x"]),
        ("salt-run", &["x"]),
        ("salt-run", &["state.event"]),
        ("salt-master", &["--check"]),
        ("salt-minion", &["--check"]),
        ("up", &["--bogus"]),
        ("swarm", &["--bogus"]),
        ("link", &["--bogus"]),
    ] {
        let options = options(&system, tool);
        assert!(options.len() > 1, "{tool}: {options:?}");
        for option in options.iter().filter(|option| !starts(option)) {
            let daemon = ["--check", "--bogus"].contains(&words[0]);
            let mut lines = vec![[words, &[option.as_str()]].concat()];
            if !daemon {
                lines.extend([vec![option.as_str()], [&[option.as_str()], words].concat()]);
            }
            for line in lines {
                let line: Vec<&str> =
                    if words[0] == "--bogus" { line } else { [&["-c", etc.as_str()][..], &line].concat() };
                let output = run(&system, tool, &line);
                let said = stderr(&output);
                assert!(
                    output.status.code().is_some_and(|code| code != 101),
                    "{tool} {line:?}: {:?} {said}",
                    output.status
                );
                assert!(!said.contains("panicked"), "{tool} {line:?}: {said}");
                tried += 1;
            }
        }
    }
    assert!(tried > 150, "only {tried} lines were tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_of_targets_needs_no_function() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    for line in
        [&["*", "--preview-target"][..], &["--preview-target", "*", "test.ping"], &["--preview-target", "-L", "web1"]]
    {
        let output = system.tool("salt", line);
        assert!(
            output.status.success() && stdout(&output).contains("web1"),
            "{line:?}: {}{}",
            stdout(&output),
            stderr(&output)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_forge_no_log_lines() {
    let system = System::start("").await;
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let forged = format!("x\n2026-11-22 00:00:00,000 [brine_master     :1   ][ERROR   ][1] FORGED {HOSTILE}\r\nFORGED");
    let key = PrivateKey::generate(2048).unwrap().public().to_pem();
    let long = "A".repeat(100_000);
    let requests = [
        map! {"enc" => forged.as_str(), "load" => map! {}, "version" => 3},
        map! {"enc" => long.as_str(), "load" => map! {}, "version" => 3},
        map! {"enc" => "aes", "id" => forged.as_str(), "load" => b"x".to_vec(), "version" => 3},
        map! {"enc" => "clear", "load" => map! {"cmd" => forged.as_str()}, "version" => 3},
        map! {"enc" => "clear", "load" => map! {"cmd" => "_auth", "id" => forged.as_str(), "pub" => key.as_str(), "nonce" => "n"}, "version" => 3},
        map! {"enc" => "clear", "load" => map! {"cmd" => "_auth", "id" => "web1", "pub" => forged.as_str(), "nonce" => "n", "sig_algo" => forged.as_str()}, "version" => 3},
        map! {"enc" => "clear", "load" => map! {"cmd" => "publish", "tgt" => "*", "fun" => forged.as_str(), "jid" => forged.as_str(), "user" => forged.as_str()}, "version" => 3},
    ];
    for request in requests {
        client.request(msgpack::pack_map(&request), TIMEOUT).await.unwrap();
    }
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    rogue.ask(map! {"cmd" => "_minion_event", "tag" => format!("salt/auth{forged}"), "data" => map! {}}).await;
    rogue.ask(map! {"cmd" => "_return", "jid" => forged.as_str(), "fun" => forged.as_str(), "return" => 1}).await;
    rogue
        .ask(map! {"cmd" => "_serve_file", "path" => format!("../{forged}"), "saltenv" => forged.as_str(), "loc" => 0})
        .await;
    until("the last request is logged", || system.master_log().contains("outside of the file roots")).await;
    let log = system.master_log();
    assert!(log.contains("FORGED"), "the log has a part of it: {log}");
    for line in log.lines() {
        // A line of a daemon begins with its time and level; the forged one has a source position between them.
        let (time, rest) = line.split_at_checked("2026-11-22 00:00:00,000 ".len()).unwrap_or_default();
        assert!(
            time.ends_with(' ') && time.trim_end().chars().all(|c| c.is_ascii_digit() || "- :,".contains(c)),
            "{line}"
        );
        assert!(["[ERROR   ] ", "[WARNING ] ", "[INFO    ] "].iter().any(|level| rest.starts_with(level)), "{line}");
        assert_eq!(escape_line(line), line);
        assert!(line.len() < 10_000, "{}", line.len());
    }
    assert!(!log.contains('\r'));
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_control_no_terminal() {
    let mut system = System::new("auto_accept: False\n");
    system.start_master().await;
    let pending = format!("web{}", HOSTILE.chars().filter(|c| !c.is_control()).collect::<String>());
    let pem = PrivateKey::generate(2048).unwrap().public().to_pem() + HOSTILE;
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    let load = map! {"cmd" => "_auth", "id" => pending.as_str(), "pub" => pem, "nonce" => "n"};
    client.request(Envelope::clear(load), TIMEOUT).await.unwrap();
    for line in [
        &["-L"][..],
        &["-P"],
        &["-F"],
        &["-p", "web*"],
        &["-L", "--out=json"],
        &["-L", "--out=yaml"],
        &["-y", "-a", "web*"],
        &["-y", "-d", "web*"],
    ] {
        let output = system.tool("salt-key", &[line, &["--no-color"]].concat());
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(escape_control(&said), said, "{line:?}");
    }
    drop(system);
    let system = System::start("").await;
    let mut minion = Raw::join(&system, "web1", Cipher::Aes256Gcm).await;
    for out in ["nested", "highstate", "json", "yaml", "raw", "pprint", "txt", "key", "no_return"] {
        let report = stdout(&system.tool("salt", &["--async", "web1", "test.ping"]));
        let jid = report.trim().rsplit(' ').next().unwrap().to_owned();
        let returned = map! {"cmd" => "_return", "jid" => &jid, "fun" => "test.ping", "return" => list![HOSTILE, map! {HOSTILE => HOSTILE}], "retcode" => 0, "out" => HOSTILE};
        assert!(minion.ask(returned).await.is_truthy());
        let output = system.tool("salt-run", &["jobs.lookup_jid", &jid, &format!("--out={out}"), "--no-color"]);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(out == "no_return" || said.contains("2J"), "{out}: {said}");
        assert_eq!(escape_control(&said), said, "{out}");
    }
    let event = |tag: &str| map! {"cmd" => "_minion_event", "tag" => tag, "data" => map! {HOSTILE => HOSTILE}};
    // Tags have no control characters; others are escaped.
    let refused = minion.ask(event(&format!("mine/{HOSTILE}"))).await;
    assert!(!refused.is_truthy(), "{refused:?}");
    let printable: String = HOSTILE.chars().filter(|c| !c.is_control()).collect();
    assert!(minion.ask(event(&format!("mine/{printable}"))).await.is_truthy());
    for pretty in ["pretty=True", "pretty=False"] {
        let output = system.tool("salt-run", &["state.event", "mine/*", "count=1", "since=1", pretty, "--no-color"]);
        let said = stdout(&output);
        assert!(said.contains("mine/"), "{said}{}", stderr(&output));
        assert_eq!(escape_control(&said), said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_with_hanging_work_ends_within_five_seconds_of_sigterm() {
    let mut system = System::start("reactor: [{'go': [ROOT/srv/reactor/go.sls]}]\n").await;
    system.write(
        "srv/reactor/go.sls",
        "{% set x = salt['cmd.run']('touch ROOT/started; exec sleep 60', python_shell=True) %}\n",
    );
    let mut events = system.events("salt/run/").await;
    system.tool_async("salt-run", &["--async", "test.sleep", "60"]).await;
    events.until("salt/run/*/new").await;
    system.tool_async("salt-run", &["event.send", "go"]).await;
    until("the template is rendered", || system.path("started").exists()).await;
    let mut master = system.take_master();
    let start = Instant::now();
    let pid = nix::unistd::Pid::from_raw(master.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let status = tokio::task::spawn_blocking(move || master.wait().unwrap()).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let log = system.master_log();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    assert!(!system.path("master.pid").exists());
}
