use brine_value::{list, map};

use crate::testing::{Scripted, answers, context_with};

// As written by firewalld 1.3.3.
#[test]
fn zones_are_described_and_changed() {
    let programs = Scripted::new(
        "
            $ firewall-cmd --version
            | 1.3.3
            $ firewall-cmd --get-default-zone
            | public
            $ firewall-cmd --get-zones --permanent
            | block dmz public
            $ firewall-cmd --zone=public --list-all
            | public (active)
            |   target: default
            |   services: dhcpv6-client ssh
            |   ports: \n            |   masquerade: no
            |   rich rules: \n            | \trule family=\"ipv4\" source address=\"10.0.0.0/8\" accept
            | \trule protocol value=\"ah\" accept
            $ firewall-cmd --list-all-zones --permanent
            | dmz
            |   services: ssh
            |
            | public
            |   masquerade: yes
            $ firewall-cmd --zone=public --add-service=http --permanent
            | success
            $ firewall-cmd --remove-service=http
            | success
            $ firewall-cmd --zone=none --list-services --permanent
            ! INVALID_ZONE: get_zone(): none
            = 112
            $ firewall-cmd --new-zone=mine --permanent
            | success
            $ firewall-cmd --reload
            | success
            $ firewall-cmd --zone=public --list-all --permanent
            | public
            |   masquerade: no
            $ firewall-cmd --zone=public --add-masquerade --permanent
            | success
            $ firewall-cmd --zone=public --add-port=443/tcp --permanent
            | success
            $ firewall-cmd --zone=public --add-forward-port=port=80:proto=tcp:toport=443:toaddr= --permanent
            | success
            $ firewall-cmd --zone=public --list-forward-ports --permanent
            | port=80:proto=tcp:toport=443:toaddr=
            $ firewall-cmd --get-icmptypes --permanent
            | echo-reply echo-request
            $ firewall-cmd --zone=public --list-icmp-blocks --permanent
            | echo-reply
            $ firewall-cmd --zone=public --add-icmp-block=echo-request --permanent
            | success
            $ firewall-cmd '--zone=public' '--add-rich-rule=rule x' --permanent
            | success
            $ firewall-cmd --zone=public '--add-rich-rule=rule x' --permanent
            | success
            $ firewall-cmd --get-services --permanent
            | http ssh
            $ firewall-cmd --service=http --add-port=81/tcp --permanent
            | success
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("firewalld.version", list![], map! {}),
        ("firewalld.default_zone", list![], map! {}),
        ("firewalld.get_zones", list![], map! {}),
        ("firewalld.list_all", list!["public"], map! {"permanent" => false}),
        ("firewalld.list_zones", list![], map! {}),
        ("firewalld.add_service", list!["http", "public"], map! {}),
        ("firewalld.remove_service", list!["http"], map! {"permanent" => false}),
        ("firewalld.list_services", list!["none"], map! {}),
        ("firewalld.new_zone", list!["mine"], map! {}),
        ("firewalld.get_masquerade", list!["public"], map! {}),
        ("firewalld.add_port", list!["public", "443/tcp"], map! {"force_masquerade" => true}),
        ("firewalld.add_port_fwd", list!["public", 80, 443], map! {}),
        ("firewalld.list_port_fwd", list!["public"], map! {}),
        ("firewalld.block_icmp", list!["public", "echo-request"], map! {}),
        ("firewalld.block_icmp", list!["public", "echo-reply"], map! {}),
        ("firewalld.allow_icmp", list!["public", "nonsense"], map! {}),
        ("firewalld.add_rich_rule", list!["public", "rule x"], map! {}),
        ("firewalld.add_service_port", list!["http", "81/tcp"], map! {}),
        ("firewalld.add_service_port", list!["none", "81/tcp"], map! {}),
    ]), @r#"
        firewalld.version: "1.3.3"
        firewalld.default_zone: "public"
        firewalld.get_zones: ["block", "dmz", "public"]
        firewalld.list_all: {"public (active)": {"target": ["default"], "services": ["dhcpv6-client ssh"], "ports": [""], "masquerade": ["no"], "rich rules": ["", "rule family=\"ipv4\" source address=\"10.0.0.0/8\" accept", "rule protocol value=\"ah\" accept"]}}
        firewalld.list_zones: {"dmz": {"services": ["ssh"]}, "public": {"masquerade": ["yes"]}}
        firewalld.add_service: "success"
        firewalld.remove_service: "success"
        firewalld.list_services: ERROR: firewall-cmd failed: INVALID_ZONE: get_zone(): none
        firewalld.new_zone: "success"
        firewalld.get_masquerade: false
        firewalld.add_port: "success"
        firewalld.add_port_fwd: "success"
        firewalld.list_port_fwd: [{"Source port": "80", "Protocol": "tcp", "Destination port": "443", "Destination address": ""}]
        firewalld.block_icmp: "success"
        firewalld.block_icmp: "success"
        firewalld.allow_icmp: false
        firewalld.add_rich_rule: "success"
        firewalld.add_service_port: "success"
        firewalld.add_service_port: ERROR: The service does not exist.
        "#);
}
