//! Salt's own `salt-api` (rest_cherrypy), unmodified and of several releases, on the host of a Brine master.

use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::salt::{RELEASES, environment};
use crate::support::{System, free_port, stderr, stdout, until, within_limit};
use brine_value::{json, list, map};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

const CLIENT: &str = r#"
import json, sys, threading, urllib.error, urllib.request

base = "http://127.0.0.1:%s" % sys.argv[1]


def request(path, load=None, token="", timeout=100):
    headers = {"Accept": "application/json", "Content-Type": "application/json", "X-Auth-Token": token}
    data = None if load is None else json.dumps(load).encode()
    return urllib.request.urlopen(urllib.request.Request(base + path, data, headers), timeout=timeout)


def ask(path, load=None, token=""):
    try:
        with request(path, load, token) as reply:
            answer = json.load(reply)["return"]
            return answer[0] if isinstance(answer, list) else answer
    except urllib.error.HTTPError as error:
        return error.code


def login(user, password):
    return ask("/login", {"username": user, "password": password, "eauth": "file"})


fred = login("fred", "one")
token, ann = fred["token"], login("ann", "two")["token"]
done = {
    "user": [fred["user"], fred["eauth"], fred["perms"]],
    "wrong": login("fred", "two"),
    "nobody": login("root", ""),
    "local": ask("/", [{"client": "local", "tgt": "*", "fun": "test.ping"}], token),
    "runner": ask("/", [{"client": "runner", "fun": "test.arg", "arg": ["x"], "kwarg": {"y": 3}}], token),
    "keys": ask("/keys", token=token)["minions"],
    "wheel": ask("/", [{"client": "wheel", "fun": "key.name_match", "match": "web*"}], token)["data"]["return"],
    "minions": ask("/minions/web1", token=token)["web1"]["id"],
    "posted": sorted(ask("/minions", [{"tgt": "*", "fun": "test.ping"}], token)),
    "run": ask("/run", [{"client": "local", "tgt": "*", "fun": "test.echo", "arg": ["z"], "username": "ann",
                         "password": "two", "eauth": "file"}]),
}
jid = ask("/", [{"client": "local_async", "tgt": "web1", "fun": "test.arg", "arg": ["x"]}], token)["jid"]
tags = []
with request("/events", token=token) as stream:
    asked = threading.Thread(target=ask, args=("/", [{"client": "local", "tgt": "*", "fun": "test.version"}], token))
    asked.start()
    for line in stream:
        line = line.decode()
        if line.startswith("data: ") and json.loads(line[6:])["data"].get("fun") == "test.version":
            tags.append(json.loads(line[6:])["tag"])
        if tags and tags[-1].endswith("/ret/web1"):
            break
    asked.join()
done["events"] = [tag.split("/")[3] for tag in (tags[0], tags[-1])]
done["jobs"] = jid in ask("/jobs", token=token)
done["job"] = ask("/jobs/%s" % jid, token=token)["web1"]["args"]
# Without rights or a login.
done["refused"] = [
    ask("/", [{"client": "local", "tgt": "*", "fun": "test.ping"}]),
    ask("/", [{"client": "local", "tgt": "*", "fun": "test.ping"}], "f" * 64),
    ask("/events"),
    ask("/events", token="f" * 64),
    ask("/", [{"client": "runner", "fun": "test.arg"}], ann),
    ask("/", [{"client": "wheel", "fun": "key.list_all"}], ann),
    ask("/jobs", token=ann),
]
ask("/logout", {}, token)
done["left"] = ask("/", [{"client": "local", "tgt": "*", "fun": "test.ping"}], token)
print("done " + json.dumps(done))
"#;

/// Salt's daemon, in a process group of its own.
struct Daemon(Child);

impl Daemon {
    fn start(program: &Path, system: &System) -> Self {
        let log = std::fs::File::create(system.path("api.log")).unwrap();
        let child = Command::new(program)
            .args(["-c", &system.etc(), "-l", "info"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        Daemon(child)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn salts_own_api_of_all_releases_serves_a_master_of_brine() {
    let port = free_port();
    // Salt 3007 leaves events unread until another one arrives: there is one each second.
    let mut system = System::new(&format!(
        "auto_accept: True\nsalt_client_files: True\nexternal_auth:\n  file: {{^filename: ROOT/users, fred: ['.*', '@runner', '@wheel'], ann: ['test.*']}}\n\
         rest_cherrypy: {{host: 127.0.0.1, port: {port}, disable_ssl: True}}\n\
         netapi_enable_clients: [local, local_async, runner, wheel]\n\
         api_pidfile: ROOT/api.pid\napi_logfile: ROOT/api-own.log\n\
         schedule: {{tick: {{function: event.send, args: [tick], seconds: 1}}}}\n",
    ));
    system.write("users", "fred:one\nann:two\n");
    system.start_master().await;
    system.start_minion("web1").await;
    system.write("client.py", CLIENT);
    for release in RELEASES {
        let environment = environment(release);
        let mut daemon = Daemon::start(&environment.join("bin/salt-api"), &system);
        let log = || std::fs::read_to_string(system.path("api.log")).unwrap_or_default();
        until("salt-api listens", || {
            assert!(daemon.0.try_wait().unwrap().is_none(), "{release}: salt-api has ended: {}", log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        })
        .await;
        let mut command = within_limit(&environment.join("bin/python").display().to_string());
        command.args(["client.py", &port.to_string()]).stdin(Stdio::null()).current_dir(system.path(""));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let (out, err) = (stdout(&output), stderr(&output));
        let line = out.lines().find_map(|line| line.strip_prefix("done "));
        let answers = json::from_json(line.unwrap_or_else(|| panic!("{release}: {out}{err}{}", log()))).unwrap();
        let expected = map! {
            "user" => list!["fred", "file", list![".*", "@runner", "@wheel"]],
            "wrong" => 401,
            "nobody" => 401,
            "local" => map! {"web1" => true},
            "runner" => map! {"args" => list!["x"], "kwargs" => map! {"y" => 3}},
            "keys" => list!["web1"],
            "wheel" => map! {"minions" => list!["web1"]},
            "minions" => "web1",
            "posted" => list!["jid", "minions"],
            "run" => map! {"web1" => "z"},
            "events" => list!["new", "ret"],
            "jobs" => true,
            "job" => list!["x"],
            "refused" => list![401, 401, 401, 401, 401, 401, 401],
            "left" => 401,
        };
        for (name, expected) in expected {
            assert_eq!(answers.get(&name.to_string()), Some(&expected), "{release} {name}: {answers} {}", log());
        }
        // A logout also revokes the token behind the session; the other user's token stays.
        for (user, tokens) in [("fred", 0), ("ann", 1)] {
            let listed = system.tool("salt-run", &["auth.list_tokens", &format!("user={user}"), "--out=json"]);
            let listed = json::from_json(&stdout(&listed)).unwrap();
            assert_eq!(listed.as_map().unwrap().len(), tokens, "{release} {user}: {listed}");
        }
        assert_eq!(stdout(&system.tool("salt-run", &["auth.del_tokens", "ann", "--out=json"])).trim(), "1");
        drop(daemon);
        // Its processes may listen a little longer, and the next daemon uses the same port.
        until("the port is free", || TcpStream::connect(("127.0.0.1", port)).is_err()).await;
    }
}
