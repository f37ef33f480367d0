//! Events that minions publish: only under their own name and tags, with the master's time.

use brine_crypt::Cipher;
use brine_value::{Map, Value, list, map};

use crate::cve::is_refusal;
use crate::support::raw::Raw;
use crate::support::{System, text};

const JID: &str = "20261120235852025555";
/// The tag of the last event of a test: all others are published before it.
const LAST: &str = "mine/last";

/// Returns tags that belong to the master, another minion, or a syndic.
fn forbidden() -> Vec<String> {
    let fixed = [
        "salt/auth",
        "salt/auth/x",
        "salt/key",
        "salt/key/x",
        "key",
        "salt/presence/present",
        "salt/presence/change",
        "salt/minion/web1/start",
        "salt/beacon/web1/load/",
        "minion/refresh/web1",
        "salt/cloud/web1/created",
        "salt/cluster/peer/x",
        "salt/netapi/hook/x",
        "salt/engines/x",
        "salt/reactor/error",
        "salt/reactors/manage/add",
        "salt/fileserver/roots/update",
        "salt/minion/web1",
        "salt/anything/else",
        "salt/",
        "syndic/web1/x",
        "syndic/rogue/x",
        "salt/syndic/x",
        "__schedule_return",
        "resource/refresh/web1",
    ];
    let of_job = ["new", "ret/web1", "publish", "return", "start/web1", "prog/web1/0", "sub/web1/error/state.sls"];
    let of_call = ["new", "ret", "return", "args"];
    let mut tags: Vec<String> = fixed.iter().map(ToString::to_string).collect();
    tags.extend(of_job.iter().map(|end| format!("salt/job/{JID}/{end}")));
    for kind in ["run", "wheel", "batch"] {
        tags.extend(of_call.iter().map(|end| format!("salt/{kind}/{JID}/{end}")));
    }
    tags.push(format!("salt/state_result/{JID}/web1/x"));
    tags
}

/// Sends events as one minion. Returns all events on the bus, and the replies.
async fn fired(requests: Vec<Map>) -> (Vec<(String, Map)>, Vec<Value>) {
    let system = System::start("").await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let mut events = system.events("").await;
    let mut answers = Vec::new();
    for request in requests {
        answers.push(rogue.ask(request).await);
    }
    assert!(!is_refusal(&rogue.ask(map! {"cmd" => "_minion_event", "tag" => LAST, "data" => map! {}}).await));
    let mut seen = Vec::new();
    loop {
        let (tag, data) = events.next().await;
        if tag == LAST {
            return (seen, answers);
        }
        seen.push((tag, data));
    }
}

/// Asserts that none of the forbidden tags reached the bus, and that each request was refused.
async fn assert_refused(requests: Vec<Map>) {
    let (seen, answers) = fired(requests.clone()).await;
    let taken: Vec<_> = requests.iter().zip(&answers).filter(|(_, answer)| !is_refusal(answer)).collect();
    let forged: Vec<_> =
        seen.iter().filter(|(_, data)| format!("{data:?}").contains("FORGED")).map(|(tag, _)| tag).collect();
    assert!(taken.is_empty() && forged.is_empty(), "taken: {taken:?}\non the bus: {forged:?}");
}

/// `_minion_event` published any tag on the master's bus.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22239_minions_fire_no_tags_of_others() {
    let one = |tag: String| map! {"cmd" => "_minion_event", "events" => list![map! {"tag" => tag, "data" => map! {"x" => "FORGED"}}]};
    assert_refused(forbidden().into_iter().map(one).collect()).await;
}

/// Salt does not apply its deny list to a load with `tag` and `data` of a single event.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22239_a_single_event_is_checked_too() {
    let one = |tag: String| map! {"cmd" => "_minion_event", "tag" => tag, "data" => map! {"x" => "FORGED"}};
    assert_refused(forbidden().into_iter().map(one).collect()).await;
}

/// Salt publishes an event below `pretag` before it checks its deny list.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22239_pretag_is_refused() {
    let mut requests = Vec::new();
    for (pretag, tag) in [
        ("salt/job", "20261120235852025555/new"),
        ("salt", "auth"),
        ("salt/minion", "web1/start"),
        ("free", "tag"),
        ("", "salt/auth"),
    ] {
        let event = map! {"tag" => tag, "data" => map! {"x" => "FORGED"}};
        requests.push(map! {"cmd" => "_minion_event", "pretag" => pretag, "events" => list![event]});
        requests
            .push(map! {"cmd" => "_minion_event", "pretag" => pretag, "tag" => tag, "data" => map! {"x" => "FORGED"}});
    }
    assert_refused(requests).await;
}

/// Tags outside Salt's deny list can name other minions: each is only accepted from its own minion.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22239_permitted_tags_are_published_with_the_senders_id() {
    let tags = [
        "my/tag",
        "minion_start",
        "salt/minion/rogue/start",
        "salt/beacon/rogue/load/",
        "salt/job/20261120235852025555/prog/rogue/0",
    ];
    let mut requests = Vec::new();
    for tag in tags {
        let forged = map! {"_from" => "web1", "id" => "web1", "_stamp" => "2100-01-01T00:00:00.000000"};
        requests
            .push(map! {"cmd" => "_minion_event", "events" => list![map! {"tag" => tag, "data" => forged.clone()}]});
        let mut single = map! {"cmd" => "_minion_event", "tag" => tag, "data" => forged.clone(), "_from" => "web1", "_stamp" => "2100-01-01T00:00:00.000000"};
        single.shift_remove("id");
        requests.push(single);
    }
    let count = requests.len();
    let (seen, answers) = fired(requests).await;
    assert!(!answers.iter().any(is_refusal), "{answers:?}");
    let own: Vec<_> = seen.iter().filter(|(tag, _)| tags.contains(&tag.as_str())).collect();
    assert_eq!(own.len(), count);
    for (tag, data) in own {
        assert_eq!(text(data, "_from"), "rogue", "{tag}: {data:?}");
        assert!(!text(data, "_stamp").starts_with("2100"), "{tag}: {data:?}");
        assert!(text(data, "_sender_stamp").starts_with("2100"), "{tag}: {data:?}");
        if tag.starts_with("salt/") {
            assert_eq!(text(data, "id"), "rogue", "{tag}: {data:?}");
        }
    }
}

/// A crafted message on the event bus started a job on other minions.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22236_events_become_no_jobs() {
    let mut system = System::start("").await;
    system.start_minion("web1").await;
    let target = system.path("owned").display().to_string();
    let mut rogue = Raw::join(&system, "rogue", Cipher::AesCbcHmac).await;
    let job = map! {
        "jid" => JID, "fun" => "cmd.run", "arg" => list![format!("touch {target}")], "tgt" => "*", "tgt_type" => "glob",
        "ret" => "", "user" => "root", "minions" => list!["web1"],
    };
    for tag in [
        format!("salt/job/{JID}/new"),
        format!("salt/job/{JID}/publish"),
        "publish".into(),
        "fire_master".into(),
        "_minion_pub".into(),
    ] {
        rogue
            .ask(
                map! {"cmd" => "_minion_event", "events" => list![map! {"tag" => tag.as_str(), "data" => job.clone()}]},
            )
            .await;
        rogue.ask(map! {"cmd" => "_minion_event", "tag" => tag, "data" => job.clone()}).await;
    }
    // Jobs run in order: when this one has returned, forged ones would have too.
    assert_eq!(system.salt_json(&["web1", "test.ping"]), map! {"web1" => true}.into());
    assert!(!system.path("owned").exists());
}

/// Names of failed states become tags of events (there is no CVE for it in Salt).
#[tokio::test(flavor = "multi_thread")]
async fn tags_from_the_content_of_a_return_name_no_other_minion() {
    let system = System::start("").await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let mut events = system.events("").await;
    for tag in forbidden() {
        let states = map! {
            format!("{tag}_|-a_|-a_|-b") => map! {"result" => false, "comment" => "FORGED", "fun" => "test.ping"},
            format!("{}_|-a_|-a_|-{}", tag.split_once('.').map_or("salt", |(module, _)| module), tag) => map! {"result" => false, "comment" => "FORGED"},
        };
        rogue
            .ask(map! {"cmd" => "_return", "jid" => JID, "fun" => "state.sls", "return" => states, "retcode" => 2})
            .await;
    }
    let states = map! {format!("salt/job/{JID}/ret/web1_|-a_|-a_|-example.com") => map! {"result" => false, "comment" => "FORGED"}};
    rogue.ask(map! {"cmd" => "_return", "jid" => JID, "fun" => "state.sls", "return" => states, "retcode" => 2}).await;
    assert!(!is_refusal(&rogue.ask(map! {"cmd" => "_minion_event", "tag" => LAST, "data" => map! {}}).await));
    loop {
        let (tag, data) = events.next().await;
        if tag == LAST {
            break;
        }
        let own = [format!("salt/job/{JID}/ret/rogue"), format!("salt/job/{JID}/sub/rogue/error/state.sls")];
        let reserved =
            ["salt/", "syndic/", "minion/refresh/", "resource/refresh/"].iter().any(|start| tag.starts_with(start));
        let is_free = !reserved && tag != "key" && tag != "__schedule_return";
        assert!(own.contains(&tag) || is_free || tag == "minion/refresh/rogue", "{tag} {data:?}");
    }
}
