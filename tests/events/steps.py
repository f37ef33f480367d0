"""The steps of `record` with a Salt master and its minions, and the files for them."""
import json
import subprocess
import sys
import time

WAIT = 40  # the timeout of an event, in seconds

# Requests for which Salt has no tool are made by its Python clients.
WHEEL = """
import json, sys, salt.config, salt.wheel
opts = salt.config.master_config(sys.argv[1])
print(salt.wheel.WheelClient(opts).cmd(sys.argv[2], kwarg=json.loads(sys.argv[3])))
"""
LOCAL = """
import json, sys, salt.client
print(salt.client.LocalClient(sys.argv[1]).cmd(sys.argv[2], sys.argv[3], **json.loads(sys.argv[4])))
"""
STRANGER = """
import sys, salt.config, salt.channel.client
opts = salt.config.master_config(sys.argv[1])
opts["master_uri"] = "tcp://127.0.0.1:%s" % opts["ret_port"]
channel = salt.channel.client.ReqChannel.factory(opts, crypt="clear", master_uri=opts["master_uri"])
channel.send({"cmd": "publish", "fun": "test.ping", "arg": [], "tgt": "*", "jid": "20261121000000000000",
              "ret": "", "tgt_type": "glob", "user": "nobody", "key": "wrong"})
"""


def script(s, text, *words):
    command = [sys.executable, "-c", text, str(s.root / "etc/master"), *words]
    subprocess.run(command, capture_output=True, timeout=60, check=False)


def wheel(s, fun, kwarg):
    script(s, WHEEL, fun, json.dumps(kwarg))


def local(s, tgt, fun, **more):
    script(s, LOCAL, tgt, fun, json.dumps(more))


def a_new_key_is_shown(s):
    s.configure_minion("web1", BEACON)
    s.daemon("web1", "salt-minion", "web1")


def another_key_is_shown_for_a_known_id(s):
    s.configure_minion("web1", folder="other")
    s.minion("other", "test.ping")


def a_key_is_shown_with_grains_to_sign_it_by(s):
    s.configure_minion("web2", "autosign_grains: [kernel]")
    s.minion("web2", "test.ping")


def the_mine_is_updated(s):
    s.run("salt", "web1", "mine.send", "test.ping")
    s.run("salt", "web1", "mine.update")


def a_running_batch_is_stopped(s):
    before = len(s.seen())
    s.run("salt", "*", "test.sleep", "8", "-b", "1", "--async")
    s.until("salt/batch/<jid>/new", before)
    jid = next(data["jid"] for tag, data in s.seen(before) if tag.startswith("salt/batch/"))
    s.run("salt-run", "batch.stop", jid)


def a_file_of_the_file_server_changes(s):
    s.write("srv/salt/new.txt", "new\n")
    s.run("salt-run", "fileserver.update")


def a_job_of_the_minion_s_schedule_runs(s):
    s.run("salt", "web1", "schedule.add", "often", "function=test.ping", "seconds=1", "return_job=True")
    time.sleep(4)
    s.run("salt", "web1", "schedule.delete", "often")


def a_second_minion_starts_and_ends(s):
    s.start_minion("web2", extra="start_event_grains: [kernel]\nenable_legacy_startup_events: False\n")
    time.sleep(6)
    s.stop("web2")


def a_minion_pings_its_master(s):
    s.start_minion("db1", extra="ping_interval: 1\nenable_legacy_startup_events: False\n")
    time.sleep(60 - WAIT / 2)
    s.until("minion_ping", 0)
    s.stop("db1")


def a_master_with_room_for_one_minion_starts(s):
    s.stop("master")
    s.configure_master("auto_accept: True\nmax_minions: 1\nmaster_stats: True\nmaster_stats_event_iter: 2\n"
                       "schedule: {often: {function: test.arg, seconds: 2, args: [1]}}\n")
    s.start_master()
    s.daemon("web1", "salt-minion", "web1")
    s.configure_minion("db1")
    s.daemon("db1", "salt-minion", "db1")
    time.sleep(12)


def there_are_as_many_minions_as_may_be(s):
    s.configure_minion("db2")
    s.daemon("db2", "salt-minion", "db2")


def the_master_s_statistics_are_told(s):
    for _ in range(3):
        s.minion("web1", "test.ping")


# The label, the events that the step must cause, and its function.
STEPS = [
    ("a new key is shown", ["salt/auth act=pend"], a_new_key_is_shown),
    ("a key is accepted and the minion starts",
     ["salt/key act=accepted", "salt/auth act=accept", "minion_start", "salt/minion/<id>/start", "minion/refresh/<id>",
      "salt/presence/change", "salt/beacon/<id>/load/"],
     lambda s: s.run("salt-key", "-y", "-a", "web1")),
    ("modules are synchronised", ["salt/job/<jid>/ret/<id>"], lambda s: s.run("salt", "web1", "saltutil.sync_all")),
    ("another key is shown for a known id", ["salt/auth act=denied"], another_key_is_shown_for_a_known_id),
    ("a key is shown with grains to sign it by", ["salt/auth act=pend"], a_key_is_shown_with_grains_to_sign_it_by),
    ("a key is rejected", ["salt/key act=rejected"], lambda s: s.run("salt-key", "-y", "-r", "web2")),
    ("a rejected key is shown", ["salt/auth act=reject"], lambda s: s.minion("web2", "test.ping")),
    ("a rejected key is deleted", ["salt/key act=delete"], lambda s: s.run("salt-key", "-y", "-d", "web2")),
    ("a denied key is deleted",
     ["salt/key act=delete", "key"],
     lambda s: wheel(s, "key.delete_dict", {"match": {"minions_denied": ["web1"]}})),
    ("a wheel function is called",
     ["salt/wheel/<jid>/new", "salt/wheel/<jid>/ret"],
     lambda s: wheel(s, "key.list_all", {})),
    ("a wheel function fails", ["salt/wheel/<jid>/ret"], lambda s: wheel(s, "error.error", {"name": "ValueError", "message": "no"})),
    ("a job is published and returned",
     ["salt/job/<jid>/new", "salt/job/<jid>/publish", "salt/job/<jid>/ret/<id>"],
     lambda s: s.run("salt", "web1", "test.ping")),
    ("a job has arguments and a returner",
     ["salt/job/<jid>/ret/<id>"],
     lambda s: s.run("salt", "web1", "test.arg", "1", "a=b", "--return", "local_cache")),
    ("a job has metadata",
     ["salt/job/<jid>/ret/<id>"],
     lambda s: local(s, "web1", "test.ping", metadata={"who": "me"})),
    ("a job asks for its start",
     ["salt/job/<jid>/start/<id>"],
     lambda s: local(s, "web1", "test.ping", start_event=True)),
    ("a job names a minion that is not known",
     ["salt/job/<jid>/new"],
     lambda s: s.run("salt", "-L", "web1,db9", "test.ping", "-t", "2")),
    ("a job has several functions",
     ["salt/job/<jid>/ret/<id>"],
     lambda s: s.run("salt", "web1", "test.ping,test.echo", ",", "hi")),
    ("a job has a function that fails",
     ["salt/job/<jid>/ret/<id>"],
     lambda s: s.run("salt", "web1", "test.exception", "no")),
    ("a job has a function that is not there",
     ["salt/job/<jid>/ret/<id>"],
     lambda s: s.run("salt", "web1", "no.such")),
    ("a job is published by a stranger", ["salt/job/<jid>/error"], lambda s: script(s, STRANGER)),
    ("a job gives its result in parts",
     ["salt/job/<jid>/prog/<id>/0"],
     lambda s: s.run("salt", "web1", "parts.three")),
    ("states are applied",
     ["salt/job/<jid>/prog/<id>/0", "salt/job/<jid>/prog/<id>/1", "salt/job/<jid>/ret/<id>"],
     lambda s: s.run("salt", "web1", "state.apply", "good")),
    ("a state fails",
     ["salt/job/<jid>/sub/<id>/error/state.sls", "test.fail_without_changes"],
     lambda s: s.run("salt", "web1", "state.sls", "bad")),
    ("a state says fire_event: True",
     ["salt/state_result/<jid>/<id>/shown"],
     lambda s: s.run("salt", "web1", "state.apply", "fire_true")),
    ("a state says fire_event and a text",
     ["salt/state_result/<jid>/<id>/my/text"],
     lambda s: s.run("salt", "web1", "state.apply", "fire_text")),
    ("a state sends an event", ["try/state/send"], lambda s: s.run("salt", "web1", "state.apply", "send")),
    ("event.send by a job",
     ["try/send/job"],
     lambda s: s.run("salt", "web1", "event.send", "try/send/job", "{a: 1}", "b=text")),
    ("event.fire_master",
     ["try/from/minion"],
     lambda s: s.run("salt", "web1", "event.fire_master", "{a: 1}", "try/from/minion")),
    ("event.fire stays with the minion", [], lambda s: s.run("salt", "web1", "event.fire", "{a: 1}", "try/fire")),
    ("event.send by salt-call",
     ["try/send/call"],
     lambda s: s.minion("web1", "event.send", "try/send/call", "{a: 1}", "b=text")),
    ("event.send with grains, pillar and environment",
     ["try/send/with"],
     lambda s: s.minion("web1", "event.send", "try/send/with", "with_grains=[id, kernel]",
                        "with_pillar=True", "with_env=[TRY]", "with_env_opts=True")),
    ("event.send with all grains",
     ["try/send/grains"],
     lambda s: s.minion("web1", "event.send", "try/send/grains", "with_grains=True")),
    ("event.send without data", ["try/send/none"], lambda s: s.minion("web1", "event.send", "try/send/none")),
    ("salt-call runs a function", ["salt/job/<jid>/ret/<id>"], lambda s: s.minion("web1", "test.ping")),
    ("salt-call applies states",
     ["salt/job/<jid>/prog/<id>/0", "salt/job/<jid>/ret/<id>"],
     lambda s: s.minion("web1", "state.apply", "good")),
    ("salt-run event.send", ["try/run/send"], lambda s: s.run("salt-run", "event.send", "try/run/send", "{a: 1}")),
    ("a runner function is called",
     ["salt/run/<jid>/new", "salt/run/<jid>/ret"],
     lambda s: s.run("salt-run", "test.arg", "1", "a=b")),
    ("a runner function is called with --async",
     ["salt/run/<jid>/ret"],
     lambda s: s.run("salt-run", "--async", "test.arg", "1")),
    ("a runner function is called wrongly",
     ["salt/run/<jid>/ret"],
     lambda s: s.run("salt-run", "test.sleep", "a", "b", "c")),
    ("a runner function fails",
     ["salt/run/<jid>/ret"],
     lambda s: s.run("salt-run", "error.error", "ValueError", "nothing")),
    ("a runner function is not there", [], lambda s: s.run("salt-run", "no.such")),
    ("a runner function says how its result is shown",
     ["salt/run/<jid>/ret"],
     lambda s: s.run("salt-run", "jobs.lookup_jid", "20261121000000000000")),
    ("a runner function tells of its progress",
     ["salt/run/<jid>/progress"],
     lambda s: s.run("salt-run", "jobs.list_jobs", "display_progress=True")),
    ("a runner publishes a job", ["salt/job/<jid>/new"], lambda s: s.run("salt-run", "manage.up")),
    ("an orchestration runs",
     ["salt/run/<jid>/args", "salt/run/<jid>/ret"],
     lambda s: s.run("salt-run", "state.orchestrate", "orch")),
    ("one step of an orchestration runs",
     ["salt/run/<jid>/progress"],
     lambda s: s.run("salt-run", "state.orchestrate_single", "fun=salt.wheel", "name=key.list_all")),
    ("the reactor calls a runner function",
     ["salt/run/<jid>/new user=Reactor", "salt/run/<jid>/ret user=Reactor"],
     lambda s: s.run("salt-run", "event.send", "try/reactor/runner")),
    ("the reactor calls a wheel function",
     ["salt/wheel/<jid>/new user=Reactor", "salt/wheel/<jid>/ret user=Reactor"],
     lambda s: s.run("salt-run", "event.send", "try/reactor/wheel")),
    ("the reactor publishes a job",
     ["salt/job/<jid>/new"],
     lambda s: s.run("salt-run", "event.send", "try/reactor/local")),
    ("the reactor is listed",
     ["salt/run/<jid>/salt/reactors/manage/list", "salt/reactors/manage/list-results"],
     lambda s: s.run("salt-run", "reactor.list")),
    ("the reactor is added to",
     ["salt/run/<jid>/salt/reactors/manage/add", "salt/reactors/manage/add-complete"],
     lambda s: s.run("salt-run", "reactor.add", "try/added", f"reactors={s.root}/reactor/runner.sls")),
    ("the reactor is taken from",
     ["salt/run/<jid>/salt/reactors/manage/delete", "salt/reactors/manage/delete-complete"],
     lambda s: s.run("salt-run", "reactor.delete", "try/added")),
    ("the reactor is asked whether it leads",
     ["salt/run/<jid>/salt/reactors/manage/is_leader", "salt/reactors/manage/leader/value"],
     lambda s: s.run("salt-run", "reactor.is_leader")),
    ("the reactor is told to lead",
     ["salt/run/<jid>/salt/reactors/manage/set_leader", "salt/reactors/manage/leader/value"],
     lambda s: s.run("salt-run", "reactor.set_leader", "True")),
    ("a pillar is refreshed",
     ["salt/job/<jid>/ret/<id>"],
     lambda s: s.run("salt", "web1", "saltutil.refresh_pillar")),
    ("the mine is updated", ["salt/job/<jid>/ret/<id>"], the_mine_is_updated),
    ("a job is published in batches",
     ["salt/batch/<jid>/new", "salt/batch/<jid>/progress", "salt/batch/<jid>/complete"],
     lambda s: s.run("salt", "web1", "test.ping", "-b", "1")),
    ("a batch is handed to the master",
     ["salt/batch/<jid>/new", "salt/batch/<jid>/complete"],
     lambda s: s.run("salt", "web1", "test.ping", "-b", "1", "--async")),
    ("a running batch is stopped", ["salt/batch/<jid>/stop", "salt/batch/<jid>/halted"], a_running_batch_is_stopped),
    ("a file of the file server changes", ["salt/fileserver/roots/update"], a_file_of_the_file_server_changes),
    ("a queue cannot be processed",
     ["salt/run/<jid>/progress"],
     lambda s: s.run("salt-run", "queue.process_queue", "myqueue")),
    ("a job of the minion's schedule runs",
     ["salt/job/<jid>/ret/<id> schedule=often"],
     a_job_of_the_minion_s_schedule_runs),
    ("a second minion starts and ends", ["salt/presence/change"], a_second_minion_starts_and_ends),
    ("a minion pings its master", ["minion_ping"], a_minion_pings_its_master),
    ("an accepted key is deleted", ["salt/key act=delete", "key"], lambda s: s.run("salt-key", "-y", "-d", "web2")),
    ("the last minion ends", ["salt/presence/change"], lambda s: s.stop("web1")),
    ("a master with room for one minion starts", [], a_master_with_room_for_one_minion_starts),
    ("there are as many minions as may be", ["salt/auth act=full"], there_are_as_many_minions_as_may_be),
    ("the master's statistics are told", ["salt/stats/MWorker-<n>"], the_master_s_statistics_are_told),
    ("a job of the master's schedule runs", ["__schedule_return"], lambda s: time.sleep(5)),
]

BEACON = """
state_events: True
start_event_grains: []
beacons:
  load: [{averages: {1m: [1000.0, 2000.0], 5m: [1000.0, 2000.0], 15m: [1000.0, 2000.0]}}, {onchangeonly: False}, {interval: 30}]
"""

FILES = {
    "srv/salt/good.sls": "one: test.nop\ntwo:\n  test.succeed_with_changes:\n    - require: [{test: one}]\n",
    "srv/salt/bad.sls": "wrong: test.fail_without_changes\n",
    "srv/salt/fire_true.sls": "shown:\n  test.nop:\n    - fire_event: True\n",
    "srv/salt/fire_text.sls": "shown:\n  test.nop:\n    - fire_event: my/text\n",
    "srv/salt/send.sls": "try/state/send:\n  event.send:\n    - data: {a: 1}\n    - b: text\n",
    "srv/salt/orch.sls": "job:\n  salt.function:\n    - name: test.ping\n    - tgt: web1\nstates:\n  salt.state:\n    - tgt: web1\n    - sls: good\n"
                         "run:\n  salt.runner:\n    - name: test.arg\n    - arg: [1]\n",
    "srv/salt/_modules/parts.py": "def three():\n    yield {'a': 1}\n    yield {'b': 2}\n    yield {'c': 3}\n",
    "srv/pillar/top.sls": "base: {'*': [all]}\n",
    "srv/pillar/all.sls": "port: 80\n",
    "reactor/runner.sls": "called:\n  runner.test.arg:\n    - args: [1]\n",
    "reactor/wheel.sls": "called:\n  wheel.key.list:\n    - args: [{match: acc}]\n",
    "reactor/local.sls": "called:\n  local.test.ping:\n    - tgt: web1\n",
}
