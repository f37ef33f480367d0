//! Salt's own `RunnerClient`, `WheelClient` and `salt.key`, unmodified and of several releases, on the host of a Brine master.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "support/salt.rs"]
mod salt;
mod support;

use std::process::Stdio;

use brine_value::{json, list, map};
use salt::{RELEASES, environment};
use support::{System, stderr, stdout, within_limit};

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
        // Salt 3007 leaves events unread until another one arrives.
        let is_slow = release.starts_with("3007");
        let mut command = within_limit(&environment(release).join("bin/python").display().to_string());
        command.args(["clients.py", &config, if is_slow { "slow" } else { "all" }]);
        command.stdin(Stdio::null()).current_dir(system.path(""));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let (out, err) = (stdout(&output), stderr(&output));
        let line = out.lines().find_map(|line| line.strip_prefix("done "));
        let done = json::from_json(line.unwrap_or_else(|| panic!("{release}: {out}{err}"))).unwrap();
        let mut expected = map! {
            "async" => list!["jid", "tag"],
            "forbidden" => "EauthAuthenticationError",
            "unknown" => "EauthAuthenticationError",
            "inside" => list!["x"],
            "keys" => list!["web1"],
            "matching" => map! {"minions" => list!["web1"]},
            "by_key" => true,
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
            assert_eq!(done.get(&name.to_string()), Some(&expected), "{release} {name}: {done} {err}");
        }
    }
}
