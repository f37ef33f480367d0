//! CVEs of syndics: the jobs that lower masters run, and the returns that they pass on.

use std::process::Output;

use brine_crypt::Cipher;
use brine_value::{list, map};

use crate::support::raw::Raw;
use crate::support::syndic::{Syndic, below};
use crate::support::{System, stderr, stdout};

const CONFIG: &str = "order_masters: True
syndic_wait: 15
sharedsecret: s3cret
external_auth:
  sharedsecret:
    all: ['test.ping']
    web: [{'web*': [test.ping]}]
    one: [{'L@top1': [test.ping]}]
";

fn ping(system: &System, user: &str, target: &str) -> Output {
    let login = ["-a", "sharedsecret", "--username", user, "--password", "s3cret"];
    system.tool("salt", &[&login[..], &[target, "test.ping"]].concat())
}

/// A user who is limited to minions that only a lower master knows publishes nothing, and the lower master enforces the
/// limits of a user, too.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22941_syndics_publish_nothing_beyond_an_entry() {
    let mut upper = System::start(CONFIG).await;
    upper.start_minion("top1").await;
    let mut lower = below(&[upper.ret_port], "");
    lower.start_master().await;
    for minion in ["web1", "top2"] {
        lower.start_minion(minion).await;
    }
    let mut started = upper.events("salt/syndic/").await;
    let _syndic = Syndic::start(&lower, "s1").await;
    started.until("salt/syndic/s1/start").await;
    let all = stdout(&ping(&upper, "all", "*"));
    assert!(["top1:", "top2:", "web1:"].iter().all(|id| all.contains(id)), "{all}");
    let denied = ping(&upper, "web", "web*");
    let text = stdout(&denied);
    assert!(!text.contains("web1:") && text.contains("Authorization error"), "{text}{}", stderr(&denied));
    // The target matches a permitted minion of the upper master, and another minion of the lower one.
    let own = stdout(&ping(&upper, "one", "top*"));
    assert!(own.contains("top1:") && !own.contains("top2:"), "{own}");
    assert!(!lower.minion_log("top2").contains("user=\"one\""));
}

/// A syndic can neither return for a minion of the upper master itself nor use the tag prefix of another syndic.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22941_syndics_return_for_no_minion_of_this_master() {
    let system = System::start("order_masters: True\nsyndics: ['rog*']\n").await;
    let mut other = Raw::join(&system, "other", Cipher::Aes256Gcm).await;
    let _web1 = Raw::join(&system, "web1", Cipher::Aes256Gcm).await;
    let mut rogue = Raw::join(&system, "rogue", Cipher::Aes256Gcm).await;
    let mut events = system.events("salt/job/").await;
    let returned = |id: &str| {
        let returned = map! {id => map! {"return" => "forged", "retcode" => 0, "success" => true}};
        let bundle =
            map! {"id" => "rogue", "jid" => "20261120235852025555", "fun" => "test.ping", "return" => returned};
        map! {"cmd" => "_syndic_return", "load" => list![bundle], "ack" => true}
    };
    assert!(!rogue.ask(returned("web1")).await.is_truthy());
    assert!(!other.ask(returned("below2")).await.is_truthy(), "not in 'syndics'");
    assert!(rogue.ask(returned("below1")).await.is_truthy());
    // The first event is that of the second return.
    let (tag, body) = events.next().await;
    assert_eq!((tag.as_str(), body.get("_from")), ("salt/job/20261120235852025555/ret/below1", Some(&"rogue".into())));
    let event = list![map! {"tag" => "salt/job/20261120235852025555/new", "data" => map! {"minions" => list!["x"]}}];
    for pretag in ["syndic/web1", "salt", "syndic"] {
        let load = map! {"cmd" => "_minion_event", "pretag" => pretag, "events" => event.clone()};
        assert!(!rogue.ask(load).await.is_truthy(), "{pretag}");
    }
    assert!(system.master_log().contains("the minion is one of this master"));
}
