//! Transcripts of RabbitMQ 3.10.8 for the states; `tests/rabbitmq.rs` tests with a real server.

mod upstreams;
mod users;

use brine_value::{Map, Value, json, list, map};

use crate::testing::applied;

/// The lists that the states read.
const LISTS: &str = r#"
    $ rabbitmqctl list_users -q --formatter=json
    | [
    | {"user":"joe","tags":["monitoring"]}
    | ,{"user":"guest","tags":["administrator"]}
    | ]
    $ rabbitmqctl list_user_permissions -q --formatter=json joe
    | [
    | {"vhost":"shop","configure":"","write":"","read":".*"}
    | ]
    $ rabbitmqctl list_user_permissions -q --formatter=json new
    | []
    $ rabbitmqctl authenticate_user joe
    | Authenticating user "joe" ...
    | Password:
    | Success
    $ rabbitmqctl list_vhosts -q --formatter=json
    | [
    | {"name":"shop"}
    | ]
    $ rabbitmqctl list_policies -q --formatter=json -p shop
    | [
    | {"vhost":"shop","name":"HA","pattern":".*","apply-to":"queues","definition":"{\"max-length\":10}","priority":1}
    | ]
    $ rabbitmqctl list_policies -q --formatter=json -p /
    | []
    $ rabbitmqctl list_policies -q --formatter=json -p none
    ! Virtual host 'none' does not exist
    = 65
    $ rabbitmqctl list_parameters -q --formatter=json
    | [
    | {"component":"federation-upstream","name":"up","value":"{\"max-hops\":2,\"uri\":\"amqp://u:p@h\"}"}
    | ]
    $ rabbitmq-plugins list -m -e
    | Listing plugins with pattern ".*" ...
    | rabbitmq_federation
    $ rabbitmqctl cluster_status -q --formatter=json
    | {"cluster_name":"brine9@vm","disk_nodes":["brinex@localhost"],"ram_nodes":["brine2@localhost"],"running_nodes":["brinex@localhost"]}
"#;

/// A state, the commands of its change, and its result: the comment, and the changes as JSON.
struct Case {
    function: &'static str,
    args: Map,
    test: bool,
    transcript: &'static str,
    expected: (Option<bool>, &'static str, &'static str),
}

fn case(
    function: &'static str,
    args: Map,
    transcript: &'static str,
    expected: (Option<bool>, &'static str, &'static str),
) -> Case {
    Case { function, args, test: expected.0.is_none(), transcript, expected }
}

fn check(cases: Vec<Case>) {
    for Case { function, args, test, transcript, expected } in cases {
        let report = applied(function, args.clone(), test, &format!("{LISTS}{transcript}"));
        let changes = match &report.changes {
            Value::Map(changes) if changes.is_empty() => String::new(),
            changes => json::to_json(changes),
        };
        let got = (report.result, report.comment.as_str(), changes.as_str());
        assert_eq!(got, expected, "{function} {args:?}");
        // The commands of the transcript are run; in test mode none is.
        for line in transcript.lines().filter_map(|line| line.trim_start().strip_prefix("$ ")) {
            assert!(report.ran.contains(line), "{function} {args:?}: {line} is not in:\n{}", report.ran);
        }
        assert!(!report.ran.contains("s3cret"), "{}", report.ran);
    }
}

const DOWN: &str = "! Error: unable to perform an operation on node 'gone@localhost'.\n= 69\n";

#[test]
fn virtual_hosts_are_added_and_deleted() {
    check(vec![
        case(
            "rabbitmq_vhost.present",
            map! {"name" => "shop"},
            "",
            (Some(true), "Virtual Host 'shop' already exists.", ""),
        ),
        case(
            "rabbitmq_vhost.present",
            map! {"name" => "new"},
            "",
            (None, "Virtual Host 'new' will be created.", r#"{"old": "", "new": "new"}"#),
        ),
        case(
            "rabbitmq_vhost.present",
            map! {"name" => "new"},
            "$ rabbitmqctl add_vhost new\n| Adding vhost \"new\" ...\n",
            (Some(true), "Adding vhost \"new\" ...", r#"{"old": "", "new": "new"}"#),
        ),
        case(
            "rabbitmq_vhost.present",
            map! {"name" => "-x"},
            "",
            (Some(false), "'-x' cannot be used: it starts with '-' or is empty", ""),
        ),
        case(
            "rabbitmq_vhost.absent",
            map! {"name" => "new"},
            "",
            (Some(true), "Virtual Host 'new' is not present.", ""),
        ),
        case(
            "rabbitmq_vhost.absent",
            map! {"name" => "shop"},
            "",
            (None, "Virtual Host 'shop' will be removed.", r#"{"new": "", "old": "shop"}"#),
        ),
        case(
            "rabbitmq_vhost.absent",
            map! {"name" => "shop"},
            "$ rabbitmqctl delete_vhost shop\n| Deleting vhost \"shop\" ...\n",
            (Some(true), "Deleting vhost \"shop\" ...", r#"{"new": "", "old": "shop"}"#),
        ),
    ]);
}

#[test]
fn policies_are_set_and_deleted() {
    let policy = |more: Map| {
        let mut args = map! {"name" => "HA", "vhost" => "shop", "pattern" => ".*", "definition" => r#"{"max-length": 10}"#, "priority" => 1};
        args.extend(more);
        args
    };
    let present = "Policy shop HA is already present";
    check(vec![
        case("rabbitmq_policy.present", policy(map! {}), "", (Some(true), present, "")),
        case(
            "rabbitmq_policy.present",
            policy(map! {"apply_to" => "queues", "definition" => map! {"max-length" => 10}}),
            "",
            (Some(true), present, ""),
        ),
        case(
            "rabbitmq_policy.present",
            policy(map! {"name" => "new"}),
            "",
            (None, "Policy shop new is set to be created", r#"{"old": {}, "new": "new"}"#),
        ),
        case(
            "rabbitmq_policy.present",
            policy(map! {"vhost" => "/", "priority" => 0}),
            "$ rabbitmqctl set_policy -p / HA '.*' '{\"max-length\": 10}'\n| Setting policy \"HA\" ...\n",
            (Some(true), "Setting policy \"HA\" ...", r#"{"old": {}, "new": "HA"}"#),
        ),
        case(
            "rabbitmq_policy.present",
            policy(map! {"pattern" => "^a", "definition" => "{}", "apply_to" => "all", "priority" => -2}),
            "",
            (
                None,
                "Policy shop HA is set to be updated",
                r#"{"old": {"pattern": ".*", "apply_to": "queues", "definition": "{\"max-length\":10}", "priority": "1"}, "new": ["Pattern", "Definition", "Applyto", "Priority"]}"#,
            ),
        ),
        case(
            "rabbitmq_policy.present",
            policy(map! {"priority" => -2}),
            "$ rabbitmqctl set_policy -p shop --priority=-2 HA '.*' '{\"max-length\": 10}'\n\
             ! Error:\n! JSON decoding error. Reason: badarg\n= 69\n",
            (Some(false), "RabbitMQ command failed: Error:\nJSON decoding error. Reason: badarg", ""),
        ),
        case("rabbitmq_policy.absent", map! {"name" => "HA"}, "", (Some(true), "Policy '/ HA' is not present.", "")),
        case(
            "rabbitmq_policy.absent",
            map! {"name" => "HA", "vhost" => "none"},
            "",
            (Some(true), "Policy 'none HA' is not present.", ""),
        ),
        case(
            "rabbitmq_policy.absent",
            map! {"name" => "HA", "vhost" => "shop"},
            "",
            (None, "Policy 'shop HA' will be removed.", r#"{"new": "", "old": "HA"}"#),
        ),
        case(
            "rabbitmq_policy.absent",
            map! {"name" => "HA", "vhost" => "shop"},
            "$ rabbitmqctl clear_policy -p shop HA\n| Clearing policy \"HA\" on vhost \"shop\" ...\n",
            (Some(true), "Deleted", r#"{"new": "", "old": "HA"}"#),
        ),
    ]);
    let report = applied("rabbitmq_policy.present", policy(map! {"definition" => "{nope"}), false, LISTS);
    assert!(report.comment.starts_with("the definition of policy 'HA' is invalid: "), "{}", report.comment);
}

#[test]
fn plugins_are_enabled_and_disabled() {
    let (federation, shovel) = (map! {"name" => "rabbitmq_federation"}, map! {"name" => "rabbitmq_shovel"});
    check(vec![
        case(
            "rabbitmq_plugin.enabled",
            federation.clone(),
            "",
            (Some(true), "Plugin 'rabbitmq_federation' is already enabled.", ""),
        ),
        case(
            "rabbitmq_plugin.enabled",
            shovel.clone(),
            "",
            (None, "Plugin 'rabbitmq_shovel' is set to be enabled.", r#"{"old": "", "new": "rabbitmq_shovel"}"#),
        ),
        case(
            "rabbitmq_plugin.enabled",
            shovel.clone(),
            "$ rabbitmq-plugins enable rabbitmq_shovel\n| started 1 plugins.\n",
            (Some(true), "Plugin 'rabbitmq_shovel' was enabled.", r#"{"old": "", "new": "rabbitmq_shovel"}"#),
        ),
        case(
            "rabbitmq_plugin.enabled",
            map! {"name" => "nope"},
            "$ rabbitmq-plugins enable nope\n! Error:\n! {:plugins_not_found, [:nope]}\n= 70\n",
            (Some(false), "Error: RabbitMQ command failed: Error:\n{:plugins_not_found, [:nope]}", ""),
        ),
        case("rabbitmq_plugin.disabled", shovel, "", (Some(true), "Plugin 'rabbitmq_shovel' is already disabled.", "")),
        case(
            "rabbitmq_plugin.disabled",
            federation,
            "$ rabbitmq-plugins disable rabbitmq_federation\n| stopped 1 plugins.\n",
            (Some(true), "Plugin 'rabbitmq_federation' was disabled.", r#"{"old": "rabbitmq_federation", "new": ""}"#),
        ),
    ]);
}

#[test]
fn nodes_join_a_cluster() {
    let node = |user: &str, host: &str| map! {"name" => "c", "user" => user, "host" => host};
    let new = r#"{"old": "", "new": "rabbit@db1"}"#;
    check(vec![
        case("rabbitmq_cluster.joined", node("brine2", "localhost"), "", (Some(true), "Already in cluster", "")),
        case(
            "rabbitmq_cluster.joined",
            node("brine9", "vm"),
            "",
            (None, "Node is set to join cluster brine9@vm", r#"{"old": "", "new": "brine9@vm"}"#),
        ),
        case(
            "rabbitmq_cluster.join",
            map! {"name" => "c", "host" => "db1"},
            "$ rabbitmqctl stop_app\n$ rabbitmqctl join_cluster rabbit@db1\n\
             | Clustering node brinex@localhost with rabbit@db1\n$ rabbitmqctl start_app\n",
            (Some(true), "Clustering node brinex@localhost with rabbit@db1", new),
        ),
        case(
            "rabbitmq_cluster.joined",
            map! {"name" => "c", "host" => "db1", "ram_node" => true},
            "$ rabbitmqctl stop_app\n$ rabbitmqctl join_cluster --ram rabbit@db1\n! Error: x\n= 69\n\
             $ rabbitmqctl start_app\n",
            (Some(false), "RabbitMQ command failed: Error: x", ""),
        ),
    ]);
}

#[test]
fn a_server_that_does_not_answer_fails_the_states() {
    let comment = "RabbitMQ command failed: Error: unable to perform an operation on node 'gone@localhost'.";
    for (function, args, prefix) in [
        ("rabbitmq_user.present", map! {}, "Error: "),
        ("rabbitmq_user.absent", map! {}, "Error: "),
        ("rabbitmq_vhost.present", map! {}, ""),
        ("rabbitmq_vhost.absent", map! {}, ""),
        ("rabbitmq_policy.present", map! {"pattern" => "", "definition" => "{}"}, ""),
        ("rabbitmq_policy.absent", map! {}, ""),
        ("rabbitmq_plugin.enabled", map! {}, "Error: "),
        ("rabbitmq_plugin.disabled", map! {}, "Error: "),
        ("rabbitmq_upstream.present", map! {"uri" => "amqp://h"}, "Error: "),
        ("rabbitmq_upstream.absent", map! {}, "Error: "),
        ("rabbitmq_cluster.joined", map! {"host" => "h"}, ""),
    ] {
        let mut args = args;
        args.insert("name".into(), "x".into());
        let report =
            applied(function, args, false, &format!("$ rabbitmqctl ...\n{DOWN}$ rabbitmq-plugins ...\n{DOWN}"));
        assert_eq!((report.result, report.comment), (Some(false), format!("{prefix}{comment}")), "{function}");
        assert!(
            !report.changes.is_truthy()
                && report.ran.lines().all(|line| line.contains(" list ")
                    || line.contains(" list_")
                    || line.contains(" cluster_status ")),
            "{function}: {}",
            report.ran
        );
    }
}
