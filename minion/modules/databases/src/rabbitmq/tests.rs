//! Transcripts of RabbitMQ 3.10.8; `tests/rabbitmq.rs` tests with a real server.

use brine_testing::Scripted;
use brine_value::{Map, Value, list, map};

use crate::testing::{answers, context_with};

/// Calls functions with these programs; returns the results and the commands.
fn called(transcript: &str, calls: &[(&str, Value, Map)]) -> (String, String) {
    let programs = Scripted::new(transcript);
    let context = context_with(map! {}, programs.clone());
    (answers(&context, calls), programs.ran())
}

/// Returns a text without the indentation of its lines and empty lines.
fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn lists_are_parsed() {
    let transcript = r#"
        $ rabbitmqctl list_users -q --formatter=json
        | [
        | {"user":"joe","tags":["monitoring","administrator"]}
        | ,{"user":"uni","tags":[]}
        | ]
        $ rabbitmqctl list_vhosts -q --formatter=json
        | [
        | {"name":"/"}
        | ,{"name":"a\nb"}
        | ,{"name":"$(touch /tmp/pwned)\"\\"}
        | ]
        $ rabbitmqctl list_permissions -q --formatter=json -p shop
        | [
        | {"user":"joe","configure":"^a\\.b$","write":"","read":".*"}
        | ]
        $ rabbitmqctl list_permissions -q --formatter=json -p none
        ! Virtual host 'none' does not exist
        = 65
        $ rabbitmqctl list_user_permissions -q --formatter=json joe
        | [
        | {"vhost":"shop","configure":"^a\\.b$","write":"","read":".*"}
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
        | ,{"component":"shovel","name":"other","value":"{}"}
        | ]
        $ rabbitmqctl list_queues -q --formatter=json
        | [
        | {"name":"q 1\tx","messages":0}
        | ,{"name":"jobs","messages":0}
        | ]
        $ rabbitmqctl list_queues -q --formatter=json -p / messages name arguments durable policy
        | [
        | {"messages":0,"name":"q 1\tx","arguments":[["x-max-length","long",10]],"durable":true,"policy":""}
        | ]
        $ rabbitmqctl list_queues -q --formatter=json name
        | [
        | {"name":"jobs"}
        | ]
        $ rabbitmq-plugins list -m
        | Listing plugins with pattern ".*" ...
        | rabbitmq_amqp1_0
        | rabbitmq_federation
        $ rabbitmq-plugins list -m -e
        | Listing plugins with pattern ".*" ...
        | rabbitmq_federation
    "#;
    let columns = list!["/", Value::Nil, "messages", "name", "arguments", "durable", "policy"];
    let calls = [
        ("list_users", list![]),
        ("user_exists", list!["uni"]),
        ("user_exists", list!["un"]),
        ("list_vhosts", list![]),
        ("vhost_exists", list!["a\nb"]),
        ("vhost_exists", list!["b"]),
        ("list_permissions", list!["shop"]),
        ("list_permissions", list!["none"]),
        ("list_permissions", list!["--node=x"]),
        ("list_user_permissions", list!["joe"]),
        ("list_policies", list!["shop"]),
        ("list_policies", list![]),
        ("policy_exists", list!["shop", "HA"]),
        ("policy_exists", list!["/", "HA"]),
        ("policy_exists", list!["none", "HA"]),
        ("list_policies", list!["none"]),
        ("list_upstreams", list![]),
        ("upstream_exists", list!["other"]),
        ("list_queues", list![]),
        ("list_queues", list![Value::Nil, "name"]),
        ("list_queues", list![Value::Nil, "--node=x"]),
        ("list_queues_vhost", columns),
        ("list_available_plugins", list![]),
        ("list_enabled_plugins", list![]),
        ("plugin_is_enabled", list!["rabbitmq_amqp1_0"]),
    ];
    let calls: Vec<_> =
        calls.into_iter().map(|(function, args)| (format!("rabbitmq.{function}"), args, map! {})).collect();
    let calls: Vec<_> =
        calls.iter().map(|(function, args, keyword)| (function.as_str(), args.clone(), keyword.clone())).collect();
    let expected = r#"
        rabbitmq.list_users: {"joe": ["monitoring", "administrator"], "uni": []}
        rabbitmq.user_exists: true
        rabbitmq.user_exists: false
        rabbitmq.list_vhosts: ["/", "a\nb", "$(touch /tmp/pwned)\"\\"]
        rabbitmq.vhost_exists: true
        rabbitmq.vhost_exists: false
        rabbitmq.list_permissions: {"joe": {"configure": "^a\\.b$", "write": "", "read": ".*"}}
        rabbitmq.list_permissions: ERROR: RabbitMQ command failed: Virtual host 'none' does not exist
        rabbitmq.list_permissions: ERROR: '--node=x' cannot be used: it starts with '-' or is empty
        rabbitmq.list_user_permissions: {"shop": {"configure": "^a\\.b$", "write": "", "read": ".*"}}
        rabbitmq.list_policies: {"shop": {"HA": {"pattern": ".*", "apply_to": "queues", "definition": "{\"max-length\":10}", "priority": "1"}}}
        rabbitmq.list_policies: {}
        rabbitmq.policy_exists: true
        rabbitmq.policy_exists: false
        rabbitmq.policy_exists: false
        rabbitmq.list_policies: ERROR: RabbitMQ command failed: Virtual host 'none' does not exist
        rabbitmq.list_upstreams: {"up": "{\"max-hops\":2,\"uri\":\"amqp://u:p@h\"}"}
        rabbitmq.upstream_exists: false
        rabbitmq.list_queues: {"q 1\tx": ["0"], "jobs": ["0"]}
        rabbitmq.list_queues: {"jobs": ""}
        rabbitmq.list_queues: ERROR: '--node=x' cannot be used: it starts with '-' or is empty
        rabbitmq.list_queues_vhost: {"0": ["q 1\tx", "[[\"x-max-length\", \"long\", 10]]", "true", ""]}
        rabbitmq.list_available_plugins: ["rabbitmq_amqp1_0", "rabbitmq_federation"]
        rabbitmq.list_enabled_plugins: ["rabbitmq_federation"]
        rabbitmq.plugin_is_enabled: false
    "#;
    assert_eq!(called(transcript, &calls).0, trimmed(expected));
}

#[test]
fn output_that_is_no_list_is_an_error() {
    for output in ["", "user\\ttags", "[", "[1]", "{}", "[{\"tags\":[]}]", "null"] {
        let transcript = format!("$ rabbitmqctl list_users ...\n| {output}\n");
        let (answer, _) = called(&transcript, &[("rabbitmq.list_users", list![], map! {})]);
        assert!(answer.starts_with("rabbitmq.list_users: ERROR: the output of"), "{output}: {answer}");
    }
}

#[test]
fn changes_return_the_messages_of_the_server() {
    let transcript = r#"
        $ rabbitmqctl add_user joe
        | Adding user "joe" ...
        | Password:
        | Done. Don't forget to grant the user permissions to some virtual hosts! See 'rabbitmqctl help set_permissions' to learn more.
        $ rabbitmqctl add_user old
        | Adding user "old" ...
        | Password:
        ! Error:
        ! User "old" already exists
        = 70
        $ rabbitmqctl add_user open
        | Adding user "open" ...
        | Password:
        | Done. Don't forget to grant the user permissions to some virtual hosts! See 'rabbitmqctl help set_permissions' to learn more.
        $ rabbitmqctl clear_password open
        | Clearing password for user "open" ...
        $ rabbitmqctl change_password joe
        | Changing password for user "joe" ...
        | Password:
        $ rabbitmqctl authenticate_user joe
        | Authenticating user "joe" ...
        | Password:
        | Success
        $ rabbitmqctl authenticate_user joe
        | Authenticating user "joe" ...
        | Password:
        ! Error:
        ! Error: failed to authenticate user "joe"
        ! user 'joe' - invalid credentials
        = 65
        $ rabbitmqctl authenticate_user joe
        ! Error: unable to perform an operation on node 'gone@localhost'. Please see diagnostics information and suggestions below.
        = 69
        $ rabbitmqctl set_user_tags joe monitoring administrator
        | Setting tags for user "joe" to [monitoring, administrator] ...
        $ rabbitmqctl delete_user joe
        | Deleting user "joe" ...
        $ rabbitmqctl add_vhost shop
        | Adding vhost "shop" ...
        $ rabbitmqctl set_permissions -p shop joe '^a\.b$' '' '.*'
        | Setting permissions for user "joe" in vhost "shop" ...
        $ rabbitmqctl delete_vhost shop
        ! Virtual host 'shop' does not exist
        = 65
        $ rabbitmqctl set_policy -p shop --priority=1 --apply-to queues HA '.*' '{"max-length": 10}'
        | Setting policy "HA" for pattern ".*" to "{"max-length": 10}" with priority "1" for vhost "shop" ...
        $ rabbitmqctl clear_policy -p shop HA
        | Clearing policy "HA" on vhost "shop" ...
        $ rabbitmqctl set_parameter federation-upstream up '{"uri": "amqp://u:p@h", "max-hops": 2}'
        | Setting runtime parameter "up" for component "federation-upstream" to "{"uri":"amqp://u:p@h","max-hops":2}" in vhost "/" ...
        $ rabbitmqctl set_parameter federation-upstream up2 '{"uri": "bogus://u:p@h"}'
        ! Error:
        ! Validation failed
        !
        ! "bogus://u:p@h" not a valid URI
        = 69
        $ rabbitmqctl clear_parameter federation-upstream up
        | Clearing runtime parameter "up" for component "federation-upstream" on vhost "/" ...
        $ rabbitmq-plugins enable nope
        | Enabling plugins on node brinex@localhost:
        | nope
        ! Error:
        ! {:plugins_not_found, [:nope]}
        = 70
        $ rabbitmq-plugins disable nope
        | Disabling plugins on node brinex@localhost:
        | nope
        | Plugin configuration unchanged.
        $ rabbitmqctl status
        | Status of node brinex@localhost ...
        $ rabbitmqctl stop_app
        | Stopping rabbit application on node brinex@localhost ...
        $ rabbitmqctl join_cluster --ram rabbit@nowhere
        | Clustering node brinex@localhost with rabbit@nowhere
        ! Error: unable to perform an operation on node 'rabbit@nowhere'. Please see diagnostics information and suggestions below.
        = 69
        $ rabbitmqctl join_cluster brine2@localhost
        | Clustering node brinex@localhost with brine2@localhost
        $ rabbitmqctl start_app
        | Starting node brinex@localhost ...
        $ rabbitmqctl force_reset
        | Forcefully resetting node brinex@localhost ...
    "#;
    let calls = [
        ("rabbitmq.add_user", list!["joe", "s3cret"], map! {}),
        ("rabbitmq.add_user", list!["old"], map! {}),
        ("rabbitmq.add_user", list!["open"], map! {}),
        ("rabbitmq.add_user", list!["-n", "s3cret"], map! {}),
        ("rabbitmq.add_user", list!["joe", " s3cret"], map! {}),
        ("rabbitmq.add_user", list!["joe", ""], map! {}),
        ("rabbitmq.change_password", list!["joe", "s3cret"], map! {}),
        ("rabbitmq.change_password", list!["joe", "s3cret\nx"], map! {}),
        ("rabbitmq.check_password", list!["joe", "s3cret"], map! {}),
        ("rabbitmq.check_password", list!["joe", "wrong"], map! {}),
        ("rabbitmq.check_password", list!["joe", "s3cret"], map! {}),
        ("rabbitmq.set_user_tags", list!["joe", list!["monitoring", "administrator"]], map! {}),
        ("rabbitmq.set_user_tags", list!["joe", "--x"], map! {}),
        ("rabbitmq.delete_user", list!["joe"], map! {}),
        ("rabbitmq.add_vhost", list!["shop"], map! {}),
        ("rabbitmq.add_vhost", list![""], map! {}),
        ("rabbitmq.set_permissions", list!["shop", "joe", "^a\\.b$", ""], map! {}),
        ("rabbitmq.set_permissions", list!["shop", "joe", "-x"], map! {}),
        ("rabbitmq.delete_vhost", list!["shop"], map! {}),
        ("rabbitmq.set_policy", list!["shop", "HA", ".*", map! {"max-length" => 10}, 1], map! {"apply_to" => "queues"}),
        ("rabbitmq.set_policy", list!["shop", "HA", ".*", 5], map! {}),
        ("rabbitmq.delete_policy", list!["shop", "HA"], map! {}),
        ("rabbitmq.set_upstream", list!["up", "amqp://u:p@h"], map! {"max_hops" => 2, "expires" => 0}),
        ("rabbitmq.set_upstream", list!["up2", "bogus://u:p@h"], map! {}),
        ("rabbitmq.delete_upstream", list!["up"], map! {}),
        ("rabbitmq.enable_plugin", list!["nope"], map! {}),
        ("rabbitmq.disable_plugin", list!["nope"], map! {}),
        ("rabbitmq.status", list![], map! {}),
        ("rabbitmq.join_cluster", list!["nowhere"], map! {"ram_node" => true}),
        ("rabbitmq.join_cluster", list!["localhost", "brine2"], map! {}),
        ("rabbitmq.force_reset", list![], map! {}),
    ];
    let (answers, ran) = called(transcript, &calls);
    let expected = r#"
        rabbitmq.add_user: {"Added": "Adding user \"joe\" ...\nDone. Don't forget to grant the user permissions to some virtual hosts! See 'rabbitmqctl help set_permissions' to learn more."}
        rabbitmq.add_user: ERROR: RabbitMQ command failed: Error:
        User "old" already exists
        rabbitmq.add_user: {"Added": "Adding user \"open\" ...\nDone. Don't forget to grant the user permissions to some virtual hosts! See 'rabbitmqctl help set_permissions' to learn more."}
        rabbitmq.add_user: ERROR: '-n' cannot be used: it starts with '-' or is empty
        rabbitmq.add_user: ERROR: the password of user 'joe' is invalid: expected one line that is not empty and has no white space around it
        rabbitmq.add_user: ERROR: the password of user 'joe' is invalid: expected one line that is not empty and has no white space around it
        rabbitmq.change_password: {"Password Changed": "Changing password for user \"joe\" ..."}
        rabbitmq.change_password: ERROR: the password of user 'joe' is invalid: expected one line that is not empty and has no white space around it
        rabbitmq.check_password: true
        rabbitmq.check_password: false
        rabbitmq.check_password: ERROR: RabbitMQ command failed: Error: unable to perform an operation on node 'gone@localhost'. Please see diagnostics information and suggestions below.
        rabbitmq.set_user_tags: {"Tag(s) set": "Setting tags for user \"joe\" to [monitoring, administrator] ..."}
        rabbitmq.set_user_tags: ERROR: '--x' cannot be used: it starts with '-' or is empty
        rabbitmq.delete_user: {"Deleted": "Deleting user \"joe\" ..."}
        rabbitmq.add_vhost: {"Added": "Adding vhost \"shop\" ..."}
        rabbitmq.add_vhost: ERROR: '' cannot be used: it starts with '-' or is empty
        rabbitmq.set_permissions: {"Permissions Set": "Setting permissions for user \"joe\" in vhost \"shop\" ..."}
        rabbitmq.set_permissions: ERROR: the regular expression '-x' cannot be used: it starts with '-'; begin it with '[-]'
        rabbitmq.delete_vhost: ERROR: RabbitMQ command failed: Virtual host 'shop' does not exist
        rabbitmq.set_policy: {"Set": "Setting policy \"HA\" for pattern \".*\" to \"{\"max-length\": 10}\" with priority \"1\" for vhost \"shop\" ..."}
        rabbitmq.set_policy: ERROR: The 'definition' argument must be a dictionary or JSON string
        rabbitmq.delete_policy: {"Deleted": "Clearing policy \"HA\" on vhost \"shop\" ..."}
        rabbitmq.set_upstream: true
        rabbitmq.set_upstream: ERROR: RabbitMQ command failed: Error:
        Validation failed
        "bogus://u:***@h" not a valid URI
        rabbitmq.delete_upstream: true
        rabbitmq.enable_plugin: ERROR: RabbitMQ command failed: Error:
        {:plugins_not_found, [:nope]}
        rabbitmq.disable_plugin: {"Disabled": "Disabling plugins on node brinex@localhost:\nnope\nPlugin configuration unchanged."}
        rabbitmq.status: "Status of node brinex@localhost ..."
        rabbitmq.join_cluster: ERROR: RabbitMQ command failed: Error: unable to perform an operation on node 'rabbit@nowhere'. Please see diagnostics information and suggestions below.
        rabbitmq.join_cluster: {"Join": "Clustering node brinex@localhost with brine2@localhost"}
        rabbitmq.force_reset: "Forcefully resetting node brinex@localhost ..."
    "#;
    assert_eq!(trimmed(&answers), trimmed(expected));
    assert!(!ran.contains("s3cret"), "{ran}");
    // The application is started again after a failure, and a failed addition leaves an existing user alone.
    let started = "rabbitmqctl join_cluster --ram rabbit@nowhere\nrabbitmqctl start_app\nrabbitmqctl stop_app\n";
    assert!(ran.contains(started) && !ran.contains("clear_password old"), "{ran}");
}
