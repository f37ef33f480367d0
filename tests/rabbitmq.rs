//! Module and states of RabbitMQ, by `salt-call --local` against a server that the test starts.

use crate::support::local_minion::Minion;
use crate::support::rabbitmq::RabbitServer;
use crate::support::service::free_port;
use serde_json::{Value, json};

/// No shell expands the name or the password.
const VHOST: &str = "shop $(touch made) \"1\"";
const PASSWORD: &str = "pä€😀 \"x\" $y'\\";

const SLS: &str = r#"
'shop $(touch made) "1"':
  rabbitmq_vhost.present: []
joe:
  rabbitmq_user.present:
    - password: "pä€😀 \"x\" $y'\\"
    - tags: [monitoring, management]
    - perms:
      - 'shop $(touch made) "1"': ['^a\.b$', '', '.*']
open:
  rabbitmq_user.present: []
limit:
  rabbitmq_policy.present:
    - vhost: 'shop $(touch made) "1"'
    - pattern: '^a\.'
    - definition: '{"max-length": 10}'
    - priority: -1
    - apply_to: queues
rabbitmq_federation:
  rabbitmq_plugin.enabled: []
up:
  rabbitmq_upstream.present:
    - uri: amqp://u:s3cret@localhost
    - max_hops: 2
"#;

const ABSENT: &str = r#"
up:
  rabbitmq_upstream.absent: []
rabbitmq_federation:
  rabbitmq_plugin.disabled: []
limit:
  rabbitmq_policy.absent:
    - vhost: 'shop $(touch made) "1"'
joe:
  rabbitmq_user.absent: []
'shop $(touch made) "1"':
  rabbitmq_vhost.absent: []
"#;

#[test]
fn states_create_and_remove_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = RabbitServer::start(directory.path(), free_port(), "");
    let mut minion = Minion::new("");
    minion.environment = server.environment.clone();
    let call = |words: &[&str]| minion.call(words);
    let permissions = json!({VHOST: {"configure": "^a\\.b$", "write": "", "read": ".*"}});
    let tags = json!(["monitoring", "management"]);

    let planned = minion.apply(SLS, true);
    let created = json!({"old": "", "new": VHOST});
    assert_eq!(planned[0], json!([null, format!("Virtual Host '{VHOST}' will be created."), created]));
    assert_eq!(planned[1][1], "User 'joe' is set to be created.");
    assert_eq!(planned[3][1], format!("Policy {VHOST} limit is set to be created"));

    let first = minion.apply(SLS, false);
    let text = format!("Adding vhost \"{VHOST}\" ...");
    assert_eq!(first[0], json!([true, text, {"old": "", "new": VHOST}]));
    let changes = json!({
        "user": {"old": "", "new": "joe"},
        "tags": {"old": [], "new": &tags},
        "perms": {"new": &permissions},
    });
    assert_eq!(first[1], json!([true, "'joe' was configured.", changes]));
    assert_eq!(first[2], json!([true, "'open' was configured.", {"user": {"old": "", "new": "open"}}]));
    assert_eq!((&first[3][0], &first[3][2]), (&json!(true), &json!({"old": {}, "new": "limit"})), "{}", first[3]);
    let enabled = json!({"old": "", "new": "rabbitmq_federation"});
    assert_eq!(first[4], json!([true, "Plugin 'rabbitmq_federation' was enabled.", enabled]));
    let settings = json!({"uri": "amqp://u:***@localhost", "max-hops": 2});
    assert_eq!(first[5], json!([true, "Upstream \"up\" created.", {"old": null, "new": settings}]));

    let present = [
        format!("Virtual Host '{VHOST}' already exists."),
        "'joe' is already in the desired state.".to_owned(),
        "User 'open' is already present.".to_owned(),
        format!("Policy {VHOST} limit is already present"),
        "Plugin 'rabbitmq_federation' is already enabled.".to_owned(),
        "Upstream \"up\" already present as specified.".to_owned(),
    ];
    assert_eq!(minion.apply(SLS, false), present.map(|comment| json!([true, comment, {}])));

    // The server itself has the users, their password and permissions.
    assert_eq!(call(&["rabbitmq.list_users"])["joe"], tags);
    assert_eq!(call(&["rabbitmq.list_user_permissions", "joe"]), permissions);
    assert_eq!(call(&["rabbitmq.check_password", "joe", PASSWORD]), true);
    assert_eq!(call(&["rabbitmq.check_password", "joe", "wrong"]), false);
    assert!(call(&["rabbitmq.list_vhosts"]).as_array().unwrap().contains(&json!(VHOST)));
    assert_eq!(call(&["rabbitmq.list_policies", VHOST])[VHOST]["limit"]["priority"], "-1");

    let planned = minion.apply(&SLS.replace("pä€😀", "new").replace("max_hops: 2", "max_hops: 3"), true);
    let change = json!({"password": {"old": "", "new": "Set password."}});
    assert_eq!(planned[1], json!([null, "Configuration for 'joe' will change.", change]));
    assert_eq!(planned[5], json!([null, "Upstream \"up\" would have been updated.", {}]));

    let comments = |states: Vec<Value>| states.into_iter().map(|state| state[1].clone()).collect::<Vec<_>>();
    let removed = [
        "Upstream \"up\" has been deleted.".to_owned(),
        "Plugin 'rabbitmq_federation' was disabled.".to_owned(),
        "Deleted".to_owned(),
        "The user 'joe' was removed.".to_owned(),
        format!("Deleting vhost \"{VHOST}\" ..."),
    ];
    assert_eq!(comments(minion.apply(ABSENT, false)), removed);
    let users = call(&["rabbitmq.list_users"]);
    assert_eq!(users, json!({"guest": ["administrator"], "open": []}));
    let absent = [
        "The upstream \"up\" is already absent.".to_owned(),
        "Plugin 'rabbitmq_federation' is already disabled.".to_owned(),
        format!("Policy '{VHOST} limit' is not present."),
        "The user 'joe' is not present.".to_owned(),
        format!("Virtual Host '{VHOST}' is not present."),
    ];
    assert_eq!(minion.apply(ABSENT, false), absent.map(|comment| json!([true, comment, {}])));

    server.stop();
    let state = &minion.apply("joe:\n  rabbitmq_user.present: []\n", false)[0];
    let comment = state[1].as_str().unwrap();
    assert!(state[0] == false && comment.starts_with("Error: RabbitMQ command failed: Error: unable to"), "{state}");
    assert!(!directory.path().join("made").exists());
}
