use super::*;

#[test]
fn networks_parse_as_in_python() {
    for (text, as_interface, is_network) in [
        ("10.1.2.3", Some("10.1.2.3/32"), true),
        ("10.0.0.0/8", Some("10.0.0.0/8"), true),
        ("10.1.2.3/8", Some("10.1.2.3/8"), false),
        ("10.0.0.0/255.0.0.0", Some("10.0.0.0/8"), true),
        ("10.0.0.0/0.255.255.255", Some("10.0.0.0/8"), true),
        ("10.0.0.0/0.0.0.0", Some("10.0.0.0/0"), false),
        ("0.0.0.0/0", Some("0.0.0.0/0"), true),
        ("::1", Some("::1/128"), true),
        ("fe80::/10", Some("fe80::/10"), true),
        ("fe80::1/64", Some("fe80::1/64"), false),
        ("10.0.0.0/33", None, false),
        ("10.0.0.0/256", None, false),
        ("10.0.0.0/", None, false),
        ("10.0.0.0/-1", None, false),
        ("10.0.0.0/+8", None, false),
        ("10.0.0.0/255.0.255.0", None, false),
        ("fe80::/ffc0::", None, false),
        ("fe80::/255.0.0.0", None, false),
        ("010.1.2.3", None, false),
        (" 10.1.2.3", None, false),
        ("10.1", None, false),
        ("", None, false),
    ] {
        assert_eq!(interface(text).map(|interface| interface.to_string()).as_deref(), as_interface, "{text}");
        assert_eq!(network(text).is_some(), is_network, "{text}");
    }
}

#[test]
fn private_addresses_are_recognised() {
    for (text, expected) in [
        ("10.1.2.3", true),
        ("192.168.0.1", true),
        ("127.0.0.1", true),
        ("169.254.1.1", true),
        ("8.8.8.8", false),
        ("fd00::1", true),
        ("fe80::1", true),
        ("::1", true),
        ("2001:db8::1", false),
    ] {
        assert_eq!(is_private(text.parse().unwrap()), expected, "{text}");
    }
}
