use brine_value::list;

use super::*;
use crate::testing::applied;

const FIREWALL: &str = "
        $ firewall-cmd --get-zones --permanent
        | dmz public
        $ firewall-cmd --get-services --permanent
        | http ssh
        $ firewall-cmd --get-icmptypes --permanent
        | echo-reply echo-request
        $ firewall-cmd --get-default-zone
        | public
        $ firewall-cmd --zone=public --list-icmp-blocks --permanent
        | echo-reply
        $ firewall-cmd --zone=public --list-all --permanent
        | public
        |   masquerade: no
        $ firewall-cmd --zone=public --list-ports --permanent
        | 22/tcp 80/tcp
        $ firewall-cmd --zone=public --list-forward-ports --permanent
        | port=80:proto=tcp:toport=443:toaddr=
        $ firewall-cmd --zone=public --list-services --permanent
        | ssh
        $ firewall-cmd --zone=public --list-rich-rules --permanent
        | rule family=\"ipv4\" accept
        $ firewall-cmd --zone=mine --list-ports --permanent
        |
        $ firewall-cmd --service=http --get-ports --permanent
        | 80/tcp
        $ firewall-cmd --service=http --get-protocols --permanent
        |
        $ firewall-cmd --reload
        | success
    ";

/// Returns the commands that change something.
fn changing(ran: &str) -> Vec<String> {
    let changes =
        |line: &&str| ["--add", "--remove", "--new", "--set", "--reload"].iter().any(|word| line.contains(word));
    let short = |line: &str| line.replace("firewall-cmd ", "").replace(" --permanent", "");
    ran.lines().filter(changes).map(short).collect()
}

#[test]
fn missing_zone_settings_are_added() {
    let ok = |commands: &[&str]| -> String {
        let one = |command: &&str| format!("$ firewall-cmd {command} --permanent\n| success\n");
        commands.iter().map(one).collect::<Vec<_>>().concat()
    };
    let public = |key: &str, value: Value, prune: bool| {
        map! {"name" => "public", key => value, format!("prune_{key}") => prune}
    };
    for (keyword, commands, changes) in [
        (public("ports", list!["22/tcp"], false), vec![], map! {}),
        (
            public("ports", list!["22/tcp", "443/tcp"], false),
            vec!["--zone=public --add-port=443/tcp"],
            map! {"ports" => map! {"old" => list!["22/tcp", "80/tcp"], "new" => list!["22/tcp", "80/tcp", "443/tcp"]}},
        ),
        (
            public("ports", list!["22/tcp"], true),
            vec!["--zone=public --remove-port=80/tcp"],
            map! {"ports" => map! {"old" => list!["22/tcp", "80/tcp"], "new" => list!["22/tcp"]}},
        ),
        (
            public("services", list!["http"], true),
            vec!["--zone=public --add-service=http", "--zone=public --remove-service=ssh"],
            map! {"services" => map! {"old" => list!["ssh"], "new" => list!["http"]}},
        ),
        (
            public("block_icmp", list!["echo-request", "nonsense"], false),
            vec!["--zone=public --add-icmp-block=echo-request"],
            map! {"icmp_types" => map! {"old" => list!["echo-reply"], "new" => list!["echo-reply", "echo-request"]}},
        ),
        (public("rich_rules", list!["rule family='ipv4' accept"], true), vec![], map! {}),
        (public("port_fwd", list!["80:443:tcp"], true), vec![], map! {}),
        (
            map! {"name" => "public", "masquerade" => true, "default" => true},
            vec!["--zone=public --add-masquerade"],
            map! {"masquerade" => map! {"old" => false, "new" => "Masquerading successfully set."}},
        ),
        (
            map! {"name" => "mine", "ports" => list!["1/tcp"]},
            vec!["--new-zone=mine", "--reload", "--zone=mine --add-port=1/tcp"],
            map! {
                "mine" => map! {"old" => list!["dmz", "public"], "new" => "mine"},
                "ports" => map! {"old" => list![], "new" => list!["1/tcp"]},
            },
        ),
    ] {
        let report = applied("firewalld.present", keyword.clone(), false, &format!("{FIREWALL}{}", ok(&commands)));
        let is_changed = !changes.is_empty();
        let sentence = if is_changed { "was configured." } else { "is already in the desired state." };
        assert_eq!(
            (report.result, report.changes),
            (Some(true), changes.clone().into()),
            "{keyword:?} {}",
            report.comment
        );
        assert!(report.comment.ends_with(sentence), "{}", report.comment);
        let mut expected: Vec<String> = commands.iter().map(|line| (*line).to_owned()).collect();
        expected.extend(is_changed.then(|| "--reload".to_owned()));
        assert_eq!(changing(&report.ran), expected);
        let planned = applied("firewalld.present", keyword, true, FIREWALL);
        assert_eq!((planned.result, planned.changes), ((!is_changed).then_some(true), changes.into()));
        assert!(changing(&planned.ran).is_empty());
    }
}

#[test]
fn services_have_exactly_their_ports() {
    let changed = "$ firewall-cmd --service=http --add-port=81/tcp --permanent\n| success\n\
                   $ firewall-cmd --service=http --remove-port=80/tcp --permanent\n| success\n";
    let report = applied(
        "firewalld.service",
        map! {"name" => "http", "ports" => list!["81/tcp"]},
        false,
        &format!("{FIREWALL}{changed}"),
    );
    assert_eq!((report.result, &*report.comment), (Some(true), "'http' was configured."));
    let same = applied("firewalld.service", map! {"name" => "http", "ports" => list!["80/tcp"]}, false, FIREWALL);
    assert_eq!((same.result, &*same.comment), (Some(true), "'http' is already in the desired state."));
    let new = applied("firewalld.service", map! {"name" => "new", "ports" => list!["1/tcp"]}, true, FIREWALL);
    assert_eq!((new.result, &*new.comment), (None, "Configuration for 'new' will change."));
}

#[test]
fn errors_of_the_firewall_fail_the_state() {
    let down = "$ firewall-cmd --get-zones --permanent\n! FirewallD is not running\n= 252\n";
    let report = applied("firewalld.present", map! {"name" => "public"}, false, down);
    assert_eq!(
        (report.result, &*report.comment),
        (Some(false), "Error: firewall-cmd failed: FirewallD is not running")
    );
    let wrong = applied("firewalld.present", map! {"name" => "public", "port_fwd" => list!["80"]}, false, FIREWALL);
    assert_eq!(wrong.comment, "Error: port_fwd is invalid: expected such as 22:2222:tcp, got 80");
    for (rule, expected) in [
        (
            "rule family='ipv4' source address=10.0.0.0/8 accept",
            "rule family=\"ipv4\" source address=\"10.0.0.0/8\" accept",
        ),
        ("rule protocol value=\"ah\" accept", "rule protocol value=\"ah\" accept"),
    ] {
        assert_eq!(normalized(rule), expected);
    }
}
