use brine_value::{list, map};

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by dig 9.18.49 about records of dnsmasq 2.90.
const TRANSCRIPT: &str = "
    $ dig +short www.example.com A
    | 192.0.2.10
    $ dig +short alias.example.com A
    | a.example.com.
    | 192.0.2.1
    $ dig +short @127.0.0.1 a.example.com AAAA
    | 2001:db8::1
    $ dig +short alias.example.com CNAME
    | a.example.com.
    $ dig +short www.example.com CNAME
    $ dig +short example.com NS
    | ns1.example.com.
    $ dig +short ns1.example.com. A
    | 192.0.2.53
    $ dig +short example.com MX
    | 20 mail2.example.com.
    | 10 mail.example.com.
    $ dig +short mail.example.com. A
    | 192.0.2.25
    $ dig +short mail2.example.com. A
    $ dig +short example.com TXT
    | \"v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 include:_spf.example.com ~all\"
    $ dig +short example.com SPF
    $ dig +short _spf.example.com SPF
    $ dig +short _spf.example.com TXT
    | \"v=spf1 ip4:198.51.100.7 -all\"
    $ dig +short loop.example.com SPF
    $ dig +short loop.example.com TXT
    | \"v=spf1 include:loop.example.com ~all\"
    $ dig +short red.example.com TXT
    | \"v=spf1 redirect=_spf.example.com\"
    $ dig +short -x 192.0.2.1
    | a.example.com.
    $ dig +short down.example.com A
    | ;; communications error to 127.0.0.1#53: connection refused
    | ;; no servers could be reached
    = 9
    $ dig +short long.example.com TXT
    | \"v=spf1 ip4:192.0.2.\" \"0/24 ip4:999.1.1.1 ip6:2001:db8::1 ?ip4:192.0.2.9\"
    | \"unrelated\"
";

#[test]
fn records_are_those_of_dig() {
    let context = context_with(map! {}, Scripted::new(TRANSCRIPT));
    insta::assert_snapshot!(answers(&context, &[
        ("dig.A", list!["www.example.com"], map! {}),
        ("dig.a", list!["alias.example.com"], map! {}),
        ("dig.A", list!["down.example.com"], map! {}),
        ("dig.AAAA", list!["a.example.com", "127.0.0.1"], map! {}),
        ("dig.CNAME", list!["alias.example.com"], map! {}),
        ("dig.CNAME", list!["www.example.com"], map! {}),
        ("dig.NS", list!["example.com"], map! {}),
        ("dig.ns", list!["example.com", false], map! {}),
        ("dig.MX", list!["example.com"], map! {}),
        ("dig.mx", list!["example.com"], map! {"resolve" => true}),
        ("dig.TXT", list!["_spf.example.com"], map! {}),
        ("dig.SPF", list!["example.com"], map! {}),
        ("dig.spf", list!["red.example.com", "TXT"], map! {}),
        ("dig.SPF", list!["loop.example.com"], map! {}),
        ("dig.SPF", list!["long.example.com", "TXT"], map! {}),
        ("dig.PTR", list!["192.0.2.1"], map! {}),
    ]), @r#"
    dig.A: ["192.0.2.10"]
    dig.a: ["192.0.2.1"]
    dig.A: []
    dig.AAAA: ["2001:db8::1"]
    dig.CNAME: "a.example.com."
    dig.CNAME: ""
    dig.NS: ["192.0.2.53"]
    dig.ns: ["ns1.example.com."]
    dig.MX: [["20", "mail2.example.com."], ["10", "mail.example.com."]]
    dig.mx: [["10", "192.0.2.25"]]
    dig.TXT: ["\"v=spf1 ip4:198.51.100.7 -all\""]
    dig.SPF: ["192.0.2.0/24", "2001:db8::/32", "198.51.100.7"]
    dig.spf: ["198.51.100.7"]
    dig.SPF: []
    dig.SPF: ["192.0.2.0/24", "2001:db8::1"]
    dig.PTR: ["a.example.com."]
    "#);
}

#[test]
fn words_of_dig_are_not_names() {
    let context = context_with(map! {}, Scripted::new("$ dig ..."));
    for name in ["+short", "-f", "@a", "a b", "a\nb", "a\0b", "", "a;b"] {
        let answers = answers(
            &context,
            &[
                ("dig.A", list![name], map! {}),
                ("dig.PTR", list![name], map! {}),
                ("dig.MX", list!["a", false, name], map! {}),
                ("dig.SPF", list!["a", name], map! {}),
            ],
        );
        let failures = answers.lines().filter(|line| line.contains("ERROR: ")).count();
        assert!(failures >= 3, "{answers}");
    }
    let context = context_with(map! {}, Scripted::new(""));
    let answers = answers(&context, &[("dig.TXT", list!["a"], map! {})]);
    assert_eq!(answers, "dig.TXT: ERROR: Command 'dig' cannot be found: install it, as with the package dnsutils");
}

#[test]
fn addresses_are_recognised() {
    for (text, expected) in [
        ("127.0.0.1", true),
        ("10.0.0.0/8", true),
        ("10.0.0.0/0", false),
        ("10.0.0.0/33", false),
        ("10.0.0.0/x", false),
        ("1111:2222:3333:4444:5555:6666:7777:8888", true),
        ("2001:db8::/7", false),
        ("2001:db8::/128", true),
        ("www.example.com", false),
        ("", false),
        ("/", false),
    ] {
        assert_eq!(is_address(text), expected, "{text}");
    }
}
