//! `reactor.replay` in a real master: the journal against another configuration, and who may name files.

use brine_value::{Value, json};

use crate::support::{System, stdout};

const CONFIG: &str = "reactor:
  - 'deploy/*': [ROOT/react/deploy.sls]
external_auth:
  file:
    ^filename: ROOT/users
    bob: ['@reactor']
";

async fn system() -> System {
    let mut system = System::new(&format!("auto_accept: True\n{CONFIG}"));
    system.write("users", "bob:one\n");
    system.write("react/deploy.sls", "a:\n  runner.test.arg:\n    - n: {{ data.n }}\n");
    system.write("tree/new.sls", "a:\n  runner.test.arg:\n    - n: {{ data.n + 1 }}\n");
    system.write("srv/salt/new.yml", "reactor:\n  - 'deploy/2': ['salt://new.sls']\n");
    system.write("new.yml", "reactor:\n  - 'deploy/2': ['salt://new.sls']\nreactor_rules: []\n");
    system.write("event.json", "{\"tag\": \"deploy/2\", \"data\": {\"n\": 5}}");
    system.start_master().await;
    for tag in ["deploy/1", "deploy/2", "other"] {
        let sent = system.tool_async("salt-run", &["event.send", tag, "{n: 1}"]).await;
        assert!(sent.status.success());
    }
    system
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_is_compared_with_a_new_configuration() {
    let system = system().await;
    let (new, tree) = (system.path("new.yml").display().to_string(), system.path("tree").display().to_string());
    let run = async |words: &[&str]| {
        let words = [&["--out=json", "reactor.replay"], words].concat();
        let text = stdout(&system.tool_async("salt-run", &words).await);
        json::from_json(&text).unwrap_or_else(|_| panic!("{text}"))
    };
    let number = |report: &Value, name: &str| report.get(name).and_then(Value::as_i64);
    let report = run(&["since=1h", &format!("config={new}"), &format!("tree={tree}")]).await;
    assert_eq!(
        (number(&report, "added"), number(&report, "lost"), number(&report, "changed")),
        (Some(0), Some(1), Some(1)),
        "{report}"
    );
    let entry = report.get("entries").unwrap().get("deploy/2").unwrap();
    assert!(entry.to_string().contains("'n': 2"), "{entry}");
    // One event of a file, and the other way round.
    let event = format!("event={}", system.path("event.json").display());
    let report = run(&[&format!("against={new}"), &format!("tree={tree}"), &event]).await;
    assert_eq!(number(&report, "events"), Some(1), "{report}");
    assert_eq!(report.get("complete"), Some(&true.into()), "{report}");
    // Nothing is dispatched.
    let history = stdout(&system.tool_async("salt-run", &["reactor.history", "tag=deploy/*"]).await);
    assert!(!history.contains("new.sls"), "{history}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_callers_with_the_key_of_the_master_name_files() {
    let system = system().await;
    let bob = ["-a", "file", "--username", "bob", "--password", "one", "--out=json", "reactor.replay"];
    let run = async |words: &[&str]| stdout(&system.tool_async("salt-run", &[&bob[..], words].concat()).await);
    for words in [
        &["config=/etc/passwd"][..],
        &["against=/etc/passwd"],
        &["tree=/etc"],
        &["config=salt://new.yml", "event=/etc/passwd"],
        &["config={reactor: /etc/passwd}"],
        &["config=[{'x': [/etc/passwd]}]"],
        &["config={reactor_rules: [/etc/passwd]}"],
    ] {
        let refused = run(words).await;
        let is_refused = refused.contains("is refused: only callers with the master's own key")
            || refused.contains("sls is invalid: expected a salt:// path");
        assert!(is_refused && !refused.contains("root:"), "{words:?}: {refused}");
    }
    let report = run(&["since=1h", "config=salt://new.yml"]).await;
    assert!(report.contains("\"lost\""), "{report}");
}
