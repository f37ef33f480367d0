//! Custom beacons and returners in Python, on a minion with a master.

use crate::support::{System, stderr, stdout, until};

const BEACON: &str = r#"
def validate(config):
    options = {}
    for one in config:
        options.update(one)
    if "limit" not in options:
        return False, "option 'limit' is missing"
    return True, "valid"

def beacon(config):
    __context__["polls"] = __context__.get("polls", 0) + 1
    options = {}
    for one in config:
        options.update(one)
    return [{"tag": "full/now", "limit": options["limit"], "name": options["_beacon_name"],
             "polls": __context__["polls"], "echo": __salt__["test.echo"]("built in")}]
"#;

const RETURNER: &str = r#"
__virtualname__ = "audit"

def __virtual__():
    return __virtualname__

def returner(ret):
    if ret["fun"] == "test.fail":
        raise Exception("no disk")
    with open("ROOT/audit", "a") as out:
        out.write("%s %s %s\n" % (ret["id"], ret["fun"], ret["return"]))
"#;

#[tokio::test(flavor = "multi_thread")]
async fn beacons_and_returners_of_the_file_server_are_used_once_they_are_synced() {
    let mut system = System::start("").await;
    system.write("srv/salt/_beacons/queue.py", BEACON);
    system.write("srv/salt/_returners/own_audit.py", RETURNER);
    let beacons = "beacons: {queue: [{limit: 5}, {interval: 1}], wrong: [{beacon_module: queue}]}\nloop_interval: 1\n";
    system.configure_minion("m1", &format!("{beacons}return: ''\n"));
    let (mut starts, mut events) = (system.events("salt/minion/").await, system.events("salt/beacon/").await);
    system.spawn_minion("m1");
    starts.until("salt/minion/m1/start").await;
    until("the beacon is unknown before the sync", || {
        system.minion_log("m1").contains("beacon 'queue' is invalid: unknown beacon 'queue'")
    })
    .await;
    let synced = system.salt_json(&["m1", "saltutil.sync_all"]);
    assert!(
        synced.to_string().contains("beacons.queue") && synced.to_string().contains("returners.own_audit"),
        "{synced}"
    );
    let (_, first) = events.until("salt/beacon/m1/queue/full/now").await;
    let fields = |body: &brine_value::Map| {
        let data = body.get("data").and_then(brine_value::Value::as_map).unwrap_or(body).clone();
        ["limit", "name", "echo", "id", "polls"].map(|name| data.get(name).map(ToString::to_string).unwrap_or_default())
    };
    assert_eq!(fields(&first)[..4], ["5", "queue", "built in", "m1"], "{first:?}");
    // `__context__` persists from one poll to the next.
    let (_, second) = events.until("salt/beacon/m1/queue/full/now").await;
    let polls = |body| fields(body)[4].parse::<u32>().unwrap();
    assert!(polls(&second) > polls(&first), "{first:?} {second:?}");
    assert!(system.minion_log("m1").contains("beacon 'wrong' is invalid: option 'limit' is missing"));
    let listed = system.salt_json(&["m1", "beacons.list_available", "return_yaml=False"]);
    assert!(listed.to_string().contains("queue"), "{listed}");
    // The returner.
    for words in [&["test.echo", "kept"][..], &["test.fail"]] {
        _ = system.tool("salt", &[&["--return", "audit", "m1"], words].concat());
    }
    until("the return is stored", || {
        std::fs::read_to_string(system.path("audit")).is_ok_and(|text| text == "m1 test.echo kept\n")
    })
    .await;
    until("the failure is logged", || {
        let log = system.minion_log("m1");
        log.contains("storing a return failed") && log.contains("no disk")
    })
    .await;
    let unknown = system.tool("salt", &["--return", "nowhere", "m1", "test.ping"]);
    assert_eq!(unknown.status.code(), Some(1), "{}{}", stdout(&unknown), stderr(&unknown));
    assert!(
        stderr(&unknown).contains("m1: the result is not stored: unknown returner 'nowhere'"),
        "{}",
        stderr(&unknown)
    );
}
