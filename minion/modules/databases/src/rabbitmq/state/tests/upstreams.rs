//! The states `rabbitmq_upstream`.

use super::*;

#[test]
fn upstreams_are_set_and_deleted() {
    let up = |more: Map| {
        let mut args = map! {"name" => "up", "uri" => "amqp://u:p@h", "max_hops" => 2};
        args.extend(more);
        args
    };
    check(vec![
        case(
            "rabbitmq_upstream.present",
            up(map! {"trust_user_id" => false}),
            "",
            (Some(true), "Upstream \"up\" already present as specified.", ""),
        ),
        case(
            "rabbitmq_upstream.present",
            up(map! {"name" => "new"}),
            "",
            (None, "Upstream \"new\" would have been created.", ""),
        ),
        case(
            "rabbitmq_upstream.present",
            up(map! {"max_hops" => 3}),
            "",
            (None, "Upstream \"up\" would have been updated.", ""),
        ),
        case(
            "rabbitmq_upstream.present",
            map! {"name" => "new", "uri" => "amqp://u:s3@h", "ack_mode" => "no-ack"},
            "$ rabbitmqctl set_parameter federation-upstream new '{\"uri\": \"amqp://u:s3@h\", \"ack-mode\": \"no-ack\"}'\n",
            (
                Some(true),
                "Upstream \"new\" created.",
                r#"{"old": null, "new": {"uri": "amqp://u:***@h", "ack-mode": "no-ack"}}"#,
            ),
        ),
        case(
            "rabbitmq_upstream.present",
            map! {"name" => "up", "uri" => "amqp://u:p@h", "expires" => 9},
            "$ rabbitmqctl set_parameter federation-upstream up '{\"uri\": \"amqp://u:p@h\", \"expires\": 9}'\n",
            (Some(true), "Upstream \"up\" updated.", r#"{"old": {"max-hops": 2}, "new": {"expires": 9}}"#),
        ),
        case(
            "rabbitmq_upstream.present",
            map! {"name" => "up", "uri" => "x://u:p@h"},
            "$ rabbitmqctl set_parameter federation-upstream up '{\"uri\": \"x://u:p@h\"}'\n\
             ! Validation failed: \"x://u:p@h\" not a valid URI\n= 69\n",
            (
                Some(false),
                "Error trying to update upstream: RabbitMQ command failed: Validation failed: \"x://u:***@h\" not a valid URI",
                "",
            ),
        ),
        case(
            "rabbitmq_upstream.absent",
            map! {"name" => "new"},
            "",
            (Some(true), "The upstream \"new\" is already absent.", ""),
        ),
        case(
            "rabbitmq_upstream.absent",
            map! {"name" => "up"},
            "",
            (None, "Upstream \"up\" would have been deleted.", ""),
        ),
        case(
            "rabbitmq_upstream.absent",
            map! {"name" => "up"},
            "$ rabbitmqctl clear_parameter federation-upstream up\n",
            (Some(true), "Upstream \"up\" has been deleted.", r#"{"old": "up", "new": null}"#),
        ),
    ]);
}
