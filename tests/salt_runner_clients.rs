//! Salt's own `RunnerClient`, `WheelClient` and `salt.key`, unmodified and of several releases, on the host of a Brine master.

use crate::support;

use std::process::Stdio;

use crate::support::salt::{RELEASES, environment};
use crate::support::{System, stderr, stdout, within_limit};
use brine_value::{json, list, map};

const CLIENTS: &str = r#"
import json, sys, warnings
import salt.client, salt.config, salt.exceptions, salt.key, salt.runner, salt.wheel

warnings.simplefilter("ignore")
path, is_slow = sys.argv[1], sys.argv[2] == "slow"
# A client of the request port needs the address of the master, which is in these options alone.
runner = salt.runner.RunnerClient(salt.config.client_config(path))
wheel = salt.wheel.WheelClient(salt.config.client_config(path))
fred = {"username": "fred", "password": "one", "eauth": "file"}
ann = {"username": "ann", "password": "two", "eauth": "file"}


def refused(call):
    try:
        return call()
    except salt.exceptions.SaltException as error:
        return type(error).__name__


done = {"async": sorted(runner.cmd_async(dict(fred, fun="test.arg")))}
if not is_slow:
    done.update({
        "arguments": runner.cmd_sync(dict(fred, fun="test.arg", arg=["x", 2], kwarg={"y": 3}), timeout=30),
        "up": runner.cmd_sync(dict(fred, fun="manage.up"), timeout=30),
        "full": runner.cmd_sync(dict(fred, fun="manage.up"), timeout=30, full_return=True)["data"]["success"],
    })
local = salt.client.LocalClient(path)
done.update({
    "forbidden": refused(lambda: runner.cmd_async(dict(ann, fun="test.arg"))),
    "unknown": refused(lambda: runner.cmd_async(dict(fred, password="two", fun="test.arg"))),
    "inside": runner.cmd("test.arg", ["x"], print_event=False)["args"],
    "keys": wheel.cmd_sync(dict(fred, fun="key.list_all"), timeout=30)["data"]["return"]["minions"],
    "matching": wheel.cmd_sync(dict(fred, fun="key.name_match", match="web*"), timeout=30)["data"]["return"],
    "by_key": wheel.cmd_sync({"fun": "key.list_all", "key": local.key}, timeout=30)["data"]["success"],
    "tagged": (lambda ret: ret["data"]["tag"] == ret["tag"])(wheel.cmd_sync(dict(fred, fun="key.list_all"), timeout=30)),
    "without": refused(lambda: wheel.cmd_sync({"fun": "key.list_all"}, timeout=30)),
    "forbidden_wheel": refused(lambda: wheel.cmd_sync(dict(ann, fun="key.list_all"), timeout=30)),
    "inside_wheel": wheel.cmd("key.list_all", print_event=False)["minions"],
})
done["listed"] = salt.key.get_key(salt.config.client_config(path)).list_keys()["minions"]
print("done " + json.dumps(done))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn runner_and_wheel_clients_of_all_releases_call_functions_of_the_master() {
    let mut system = System::new(
        "auto_accept: True\nexternal_auth:\n  file: {^filename: ROOT/users, fred: ['@runner', '@wheel'], ann: ['test.*']}\n",
    );
    system.write("users", "fred:one\nann:two\n");
    system.start_master().await;
    system.start_minion("web1").await;
    system.write("clients.py", CLIENTS);
    let config = format!("{}/master", system.etc());
    for release in RELEASES {
        // Salt 3007 reads an event only when the next one arrives.
        let is_slow = release.starts_with("3007");
        let mut command = within_limit(&environment(release).join("bin/python").display().to_string());
        command.args(["clients.py", &config, if is_slow { "slow" } else { "all" }]);
        command.stdin(Stdio::null()).current_dir(system.path(""));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let (out, err) = (stdout(&output), stderr(&output));
        let line = out.lines().find_map(|line| line.strip_prefix("done "));
        let results = json::from_json(line.unwrap_or_else(|| panic!("{release}: {out}{err}"))).unwrap();
        let mut expected = map! {
            "async" => list!["jid", "tag"],
            "forbidden" => "EauthAuthenticationError",
            "unknown" => "EauthAuthenticationError",
            "inside" => list!["x"],
            "keys" => list!["web1"],
            "matching" => map! {"minions" => list!["web1"]},
            "by_key" => true,
            "tagged" => true,
            "without" => "SaltException",
            "forbidden_wheel" => "EauthAuthenticationError",
            "inside_wheel" => list!["web1"],
            "listed" => list!["web1"],
        };
        if !is_slow {
            expected.extend(map! {
                "arguments" => map! {"args" => list!["x", 2], "kwargs" => map! {"y" => 3}},
                "up" => list!["web1"],
                "full" => true,
            });
        }
        for (name, expected) in expected {
            assert_eq!(results.get(&name.to_string()), Some(&expected), "{release} {name}: {results} {err}");
        }
    }
}

/// Jobs of Brine's `salt`, and grains, read by Salt's functions in the process of a script.
const READER: &str = r#"
import json, sys, warnings
import salt.config, salt.runner

warnings.simplefilter("ignore")
path, jid, silent = sys.argv[1:4]
runner = salt.runner.RunnerClient(salt.config.client_config(path))
call = lambda fun, *args, **kwargs: runner.cmd(fun, list(args), kwarg=kwargs, print_event=False)
job = call("jobs.list_job", jid)
print("done " + json.dumps({
    "lookup": call("jobs.lookup_jid", jid),
    "missing": call("jobs.lookup_jid", silent, missing=True),
    "job": [job["Function"], job["Target"], job["Minions"], job["Result"]["web1"]["retcode"]],
    "listed": [call("jobs.list_jobs")[jid][name] for name in ("Function", "Arguments", "User")],
    "grains": [call("cache.grains", tgt="*")["web1"][name] for name in ("id", "brineversion")][0],
    "pillar": call("cache.pillar", tgt="*"),
}))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn salts_functions_read_jobs_and_grains_with_salt_client_files() {
    let mut system = System::new("auto_accept: True\nsalt_client_files: True\n");
    system.write("srv/pillar/top.sls", "base: {'*': [data]}\n");
    system.write("srv/pillar/data.sls", "secret: xyzzy\n");
    system.start_master().await;
    let mut events = system.events("").await;
    system.start_minion("web1").await;
    let run = |words: &[&str]| {
        let output = system.tool("salt", &[&["--async", "--out=json"], words].concat());
        let text = stdout(&output) + &stderr(&output);
        let digits = |word: &&str| word.len() == 20 && word.chars().all(|letter| letter.is_ascii_digit());
        text.split(|letter: char| !letter.is_ascii_digit()).find(digits).unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    let jid = run(&["web1", "test.echo", "x"]);
    events.until(&format!("salt/job/{jid}/ret/web1")).await;
    let silent = run(&["-L", "web1,web2", "test.ping"]);
    events.until(&format!("salt/job/{silent}/ret/web1")).await;
    system.write("reader.py", READER);
    let config = format!("{}/master", system.etc());
    let written = |name: &str| {
        let output = std::process::Command::new("find").arg(system.path("")).args(["-name", name]).output().unwrap();
        stdout(&output).lines().count()
    };
    support::until("both returns and the grains are written", || written("return.p") == 2 && written("data.p") == 1)
        .await;
    for release in RELEASES {
        let mut command = within_limit(&environment(release).join("bin/python").display().to_string());
        command.args(["reader.py", &config, &jid, &silent]).stdin(Stdio::null()).current_dir(system.path(""));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let (out, err) = (stdout(&output), stderr(&output));
        let line = out.lines().find_map(|line| line.strip_prefix("done "));
        let results = json::from_json(line.unwrap_or_else(|| panic!("{release}: {out}{err}"))).unwrap();
        for (name, expected) in map! {
            "lookup" => map! {"web1" => "x"},
            "missing" => map! {"web1" => true},
            "job" => list!["test.echo", "web1", list!["web1"], 0],
            "listed" => list!["test.echo", list!["x"], "root"],
            "grains" => "web1",
        } {
            assert_eq!(results.get(&name.to_string()), Some(&expected), "{release} {name}: {results} {err}");
        }
        assert!(!results.to_string().contains("xyzzy"), "{release}: {results}");
    }
    // The grains of a deleted minion are removed.
    system.tool("salt-key", &["-y", "-d", "web1"]);
    support::until("the files of the deleted minion are removed", || written("data.p") == 0 && written("web1.p") == 0)
        .await;
}
