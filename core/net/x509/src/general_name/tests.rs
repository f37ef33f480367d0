use super::*;

#[test]
fn names_are_built_and_shown() {
    for (text, expected) in [
        ("email:me@example.com", "mail:me@example.com"),
        ("email:.example.com", "mail:.example.com"),
        ("DNS:*.example.com", "DNS:*.example.com"),
        ("dns:.example.com", "DNS:.example.com"),
        ("dirName:CN=a,O=b", "dirName:CN=a,O=b"),
        ("URI:http://example.com:80/x.crl", "URI:http://example.com:80/x.crl"),
        ("IP:10.0.0.1", "IP:10.0.0.1"),
        ("IP:192.168.0.0/255.255.0.0", "IP:192.168.0.0/16"),
        ("ip:2001:db8::1", "IP:2001:0db8:0000:0000:0000:0000:0000:0001"),
        ("ip:2001:db8::/33", "IP:2001:0db8:0000:0000:0000:0000:0000:0000/33"),
        ("RID:1.2.3.4", "RID:1.2.3.4"),
    ] {
        let built = build_text(text).unwrap();
        assert_eq!(show(&Reader(&built).next().unwrap()), expected);
    }
}

#[test]
fn invalid_names_are_refused() {
    for (text, error) in [
        ("x", "'x' is invalid: expected type:value"),
        ("foo:x", "GeneralName type foo is invalid"),
        ("otherName:x", "otherName is currently not implemented"),
        ("IP:300.0.0.1", "Provided value 300.0.0.1 does not seem to be an IP address or network range."),
        ("IP:10.0.0.1/8", "Provided value 10.0.0.1/8 does not seem to be an IP address or network range."),
        ("IP:10.0.0.0/33", "Provided value 10.0.0.0/33 does not seem to be an IP address or network range."),
        (
            "IP:10.0.0.0/255.0.255.0",
            "Provided value 10.0.0.0/255.0.255.0 does not seem to be an IP address or network range.",
        ),
        ("email:*.example.com", "Wildcards are not allowed in this context"),
        ("email:a@.b", "Leading dots are not allowed in this context"),
        ("DNS:a_b.c", "Codepoint U+005F at position 2 of 'a_b' not allowed"),
        ("DNS:a..b", "Empty Label"),
        ("RID:x", "Invalid oid: x"),
    ] {
        assert_eq!(build_text(text).unwrap_err().to_string(), error);
    }
}
