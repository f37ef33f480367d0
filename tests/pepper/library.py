"""Calls each method of pepper's library at the URL of the first argument."""
import json
import sys

from pepper import Pepper
from pepper.exceptions import PepperException


def equal(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def first(answer):
    equal(len(answer["return"]), 1)
    return answer["return"][0]


def denied(call):
    try:
        call()
    except PepperException as error:
        equal(str(error), "Authentication denied")
    else:
        raise AssertionError("the call is not denied")


api = Pepper(sys.argv[1])
denied(lambda: api.login("fred", "wrong", "file"))
denied(lambda: api.local("*", "test.ping"))
session = api.login("fred", "one", "file")
equal((session["user"], session["eauth"], session["perms"]), ("fred", "file", [".*", "@jobs", "@runner", "@wheel"]))
equal((len(session["token"]), api.salt_version), (40, None))

both = {"m1": True, "m2": True}
equal(first(api.local("*", "test.ping")), both)
equal(first(api.local("m1", "test.echo", "hi")), {"m1": "hi"})
equal(first(api.local("m1", "test.echo", ["hi"])), {"m1": "hi"})
kwargs = first(api.local("m1", "test.kwarg", kwarg={"a": [1, {"b": None}]}))["m1"]
equal(kwargs["a"], [1, {"b": None}])
for form, target, wanted in [
    ("list", ["m1", "m2"], both),
    ("list", "m1,m2", both),
    ("grain", "id:m1", {"m1": True}),
    ("compound", "G@id:m2", {"m2": True}),
    ("nodegroup", "web", {"m1": True}),
    ("pcre", "m[12]", both),
    ("pillar", "colour:blue", both),
]:
    equal(first(api.local(target, "test.ping", expr_form=form, timeout=20)), wanted)
    equal(sorted(first(api.local_async(target, "test.ping", expr_form=form))["minions"]), sorted(wanted))
    batch = api.local_batch(target, "test.ping", expr_form=form, batch="1")["return"]
    equal({minion: ret for part in batch for minion, ret in part.items()}, wanted)
equal(len(api.local_batch("*", "test.ping")["return"]), 2)

equal(first(api.runner("manage.up")), ["m1", "m2"])
equal(first(api.runner("test.arg", arg=["a"], x=2)), {"args": ["a"], "kwargs": {"x": 2}})
equal(first(api.wheel("key.name_match", match="m1"))["data"]["return"], {"minions": ["m1"]})
equal(first(api.wheel("key.name_match", kwarg={"match": "m1"}))["data"]["return"], {"minions": ["m1"]})
equal(first(api.wheel("key.name_match", arg=["m1"]))["data"]["return"], {"minions": ["m1"]})
equal(first(api.low([{"client": "runner_async", "fun": "manage.up"}]))["tag"][:9], "salt/run/")

# Events follow a job to its end.
events = api.req_stream("/events")
equal(events.status_code, 200)
job = first(api.local_async("*", "test.echo", "streamed"))
missing = set(job["minions"])
for line in events.iter_lines(decode_unicode=True):
    if line.startswith("data: "):
        event = json.loads(line[len("data: "):])
        if event["tag"].startswith(f"salt/job/{job['jid']}/ret/"):
            equal(event["data"]["return"], "streamed")
            missing.remove(event["data"]["id"])
        if not missing:
            break
events.close()
equal(first(api.lookup_jid(job["jid"])), {"m1": "streamed", "m2": "streamed"})

equal(api.req_get("/keys")["return"]["minions"], ["m1", "m2"])
equal(first(api.req_get("/minions/m1"))["m1"]["id"], "m1")
equal(first(api.req_get(f"/jobs/{job['jid']}")), {"m1": "streamed", "m2": "streamed"})
equal(api.req_get("/nothing/there"), None)
equal(api.req("/hook/built", {"ok": True}), {"success": True})
equal(first(api.req("/minions", [{"tgt": "*", "fun": "test.ping"}]))["minions"], ["m1", "m2"])

# A session that was begun elsewhere, and its end.
other = Pepper(sys.argv[1])
other.auth = {"token": session["token"], "user": "fred", "eauth": "file"}
equal(first(other.local("m1", "test.ping")), {"m1": True})
equal(api.req("/logout", {}), {"return": "Your token has been cleared"})
denied(lambda: other.local("m1", "test.ping"))
equal(api.req_get("/keys"), None)

# Tokens of the master, in the chunk.
token = api.token(username="fred", password="one", eauth="file")
equal((token["name"], len(token["token"])), ("fred", 64))
chunk = {"client": "local", "tgt": "m1", "fun": "test.ping", "token": token["token"]}
equal(first(api.low([chunk], path="/run")), {"m1": True})
denied(lambda: api.low([{"client": "local", "tgt": "m1", "fun": "test.ping"}], path="/run"))
weak = Pepper(sys.argv[1])
weak.login("ann", "two", "file")
equal(first(weak.local("*", "test.ping")), both)
denied(lambda: weak.local("*", "cmd.run", "id"))
denied(lambda: weak.runner("manage.up"))
