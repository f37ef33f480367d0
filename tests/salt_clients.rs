//! Salt's own Python clients, unmodified and of several releases, on the host of a Brine master.

use std::process::Stdio;

use crate::support::salt::{RELEASES, environment};
use crate::support::{System, stderr, stdout, within_limit};
use brine_value::{Value, json, list, map};

const CLIENT: &str = r#"
import json, sys
import salt.client, salt.config, salt.utils.event

path, is_slow = sys.argv[1], sys.argv[2] == "slow"
client = salt.client.LocalClient(path)
pairs = lambda returns: sorted((name, one["ret"]) for part in returns for name, one in part.items())
plain = lambda returns: sorted((name, one) for part in returns for name, one in part.items())


def of_both(call):
    """A client that leaves events unread may give up before it reads them."""
    for _ in range(3 if is_slow else 1):
        found = call()
        if len(found) == 2:
            break
    return found


done = {
    "cmd": of_both(lambda: client.cmd("*", "test.ping", timeout=5)),
    "batch": of_both(lambda: plain(client.cmd_batch("*", "test.ping", batch="1"))),
}
if not is_slow:
    done.update({
        "arguments": client.cmd("web1", "test.arg", ["a"], kwarg={"b": 1}, timeout=30)["web1"]["kwargs"]["b"],
        "iter": pairs(client.cmd_iter("*", "test.echo", ["x"], timeout=30)),
        "cli": pairs(client.cmd_cli("*", "test.echo", ["y"], timeout=30)),
        "subset": len(client.cmd_subset("*", "test.ping", subset=1, timeout=30)),
        "list": client.cmd(["web2"], "test.echo", ["z"], tgt_type="list", timeout=30),
    })
    published = client.run_job("*", "test.echo", ["later"], listen=True)
    returns = client.get_cli_event_returns(published["jid"], set(published["minions"]), timeout=30)
    done["event_returns"] = pairs(returns)
    cached = client.get_cache_returns(published["jid"])
    done["cached"] = sorted((name, one["ret"]) for name, one in cached.items())
opts = salt.config.client_config(path)
with salt.utils.event.get_event("master", opts=opts, sock_dir=opts["sock_dir"], listen=True) as event:
    done["fired"] = event.fire_event({"n": 1, "text": "x" * 100000}, "my/tag")
    found = event.get_event(tag="my/tag", wait=30)
    done["event"] = [found["n"], len(found["text"])]
print(json.dumps(done))
"#;

/// Runs a program of a release with the master's configuration.
async fn run(system: &System, release: &str, program: &str, words: &[&str]) -> (String, String) {
    let mut command = within_limit(&environment(release).join("bin").join(program).display().to_string());
    command.args(words).stdin(Stdio::null()).env("PYTHONWARNINGS", "ignore").current_dir(system.path(""));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (stdout(&output), stderr(&output))
}

#[tokio::test(flavor = "multi_thread")]
async fn local_clients_of_all_releases_publish_and_see_returns_and_events() {
    let mut system = System::start("").await;
    for id in ["web1", "web2"] {
        system.start_minion(id).await;
    }
    system.write("client.py", CLIENT);
    let config = format!("{}/master", system.etc());
    let mut events = system.events("my/").await;
    for release in RELEASES {
        // Salt 3007 reads an event only when the next one arrives, so each of its calls takes its whole timeout.
        let is_slow = release.starts_with("3007");
        let pace = if is_slow { "slow" } else { "all" };
        let (out, err) = run(&system, release, "python", &["client.py", &config, pace]).await;
        let result = json::from_json(&out).unwrap_or_else(|_| panic!("{release}: {out}{err}"));
        let both = |value: &str| list![list!["web1", value], list!["web2", value]];
        let mut expected = map! {
            "cmd" => map! {"web1" => true, "web2" => true},
            "batch" => list![list!["web1", true], list!["web2", true]],
            "fired" => true,
            "event" => list![1, 100_000],
        };
        if !is_slow {
            expected.extend(map! {
                "arguments" => 1,
                "iter" => both("x"),
                "cli" => both("y"),
                "subset" => 1,
                "list" => map! {"web2" => "z"},
                "event_returns" => both("later"),
                "cached" => both("later"),
            });
        }
        assert_eq!(result, Value::from(expected), "{release}: {err}");
        let (_, data) = events.until("my/tag").await;
        assert_eq!(data.get("n"), Some(&1.into()), "{release}");
        // The command line of that release.
        let words = ["-c", &system.etc(), "*", "test.ping", "--out=json", "--static"];
        let expected = Value::from(map! {"web1" => true, "web2" => true});
        let mut answered = Value::Nil;
        for _ in 0..if is_slow { 3 } else { 1 } {
            let (out, err) = run(&system, release, "salt", &words).await;
            answered = json::from_json(&out).unwrap_or_else(|_| panic!("{release}: {out}{err}"));
            if answered == expected {
                break;
            }
        }
        assert_eq!(answered, expected, "{release}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_all_releases_manage_keys_copy_files_and_call_functions() {
    let mut system = System::start("").await;
    system.write("srv/salt/hi.sls", "hi: test.succeed_without_changes\n");
    system.start_minion("web1").await;
    let (etc, minion_etc) = (system.etc(), system.path("web1/etc").display().to_string());
    let with = |etc: &str, words: &[&str]| -> Vec<String> {
        ["-c", etc].iter().chain(words).map(|word| (*word).to_owned()).collect()
    };
    for release in RELEASES {
        let run = async |program: &str, etc: &str, words: &[&str]| {
            let words = with(etc, words);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            run(&system, release, program, &words).await
        };
        let read = async |program: &str, etc: &str, words: &[&str]| {
            let (out, err) = run(program, etc, &[words, &["--out=json"]].concat()).await;
            json::from_json(&out).unwrap_or_else(|_| panic!("{release} {program} {words:?}: {out}{err}"))
        };
        let keys = || json::from_json(&stdout(&system.tool("salt-key", &["-L", "--out=json"]))).unwrap();

        // Keys: each side sees the changes of the other.
        std::fs::copy(system.path("pki/minions/web1"), system.path("pki/minions_pre/web2")).unwrap();
        let listed = read("salt-key", &etc, &["-L"]).await;
        assert_eq!(listed.get("minions"), Some(&list!["web1"]), "{release}");
        assert_eq!(listed.get("minions_pre"), Some(&list!["web2"]), "{release}");
        let (out, err) = run("salt-key", &etc, &["-y", "-a", "web2"]).await;
        assert_eq!(keys().get("minions"), Some(&list!["web1", "web2"]), "{release}: {out}{err}");
        let (out, err) = run("salt-key", &etc, &["-y", "-d", "web2"]).await;
        assert_eq!(keys().get("minions"), Some(&list!["web1"]), "{release}: {out}{err}");
        assert_eq!(keys().get("minions_pre"), Some(&list![]), "{release}");

        // Salt's own salt-call beside a Brine minion, with its key and its master's files.
        let local = read("salt-call", &minion_etc, &["test.echo", "here"]).await;
        assert_eq!(local, map! {"local" => "here"}.into(), "{release}");
        let applied = read("salt-call", &minion_etc, &["state.apply", "hi"]).await.to_string();
        assert!(applied.contains("Success!"), "{release}: {applied}");

        // Files are copied to minions.
        let (from, to) = (system.write("from", release), system.path(&format!("to-{release}")));
        let (out, err) = run("salt-cp", &etc, &["*", &from.display().to_string(), &to.display().to_string()]).await;
        let copied = std::fs::read_to_string(&to).unwrap_or_else(|error| panic!("{release}: {error}: {out}{err}"));
        assert_eq!(copied, **release);

        // Runner functions that publish jobs.
        let up = read("salt-run", &etc, &["manage.up"]).await;
        assert_eq!(up, list!["web1"], "{release}");
    }
}
