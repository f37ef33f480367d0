//! Texts and queries of `dnsutil`.

use brine_testing::{Scripted, answers};

use crate::testing::{context, context_with};

use super::*;

#[test]
fn hosts_files_are_edited_line_by_line() {
    let (directory, context) = (tempfile::tempdir().unwrap(), context(&[]));
    let path = directory.path().join("hosts");
    std::fs::write(&path, "# hosts\n127.0.0.1 localhost me\n\n::1 localhost").unwrap();
    let call = |function: &str, words: &[&str]| {
        let words = [path.to_str().unwrap()].into_iter().chain(words.iter().copied()).map(Value::from);
        context.call(&format!("dnsutil.{function}"), Args::positional(words)).unwrap()
    };
    assert_eq!(
        call("parse_hosts", &[]),
        map! {"127.0.0.1" => list!["localhost", "me"], "::1" => list!["localhost"]}.into()
    );
    assert!(call("hosts_append", &["127.0.0.1", "me"]).to_string().starts_with("No additional hosts"));
    assert!(call("hosts_append", &["10.0.0.1", "a,b"]).to_string().ends_with("hosts:\n10.0.0.1 a b"));
    call("hosts_remove", &["a,b,me"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "# hosts\n127.0.0.1 localhost\n\n::1 localhost\n");
}

#[test]
fn records_equal_the_output_of_dig() {
    let programs = Scripted::new(
        "$ dig +short example.org A\n| www.example.org.\n| 192.0.2.1\n\
             $ dig +short @10.0.0.1 example.org MX\n| 10 mail.example.org.\n\
             $ dig +short example.org NS\n| ns.example.org.\n\
             $ dig +short ns.example.org. A\n| 192.0.2.2\n\
             $ dig +short example.org SPF\n\
             $ dig +short example.org TXT\n| \"v=spf1 ip4:192.0.2.0/24 include:other.org -all\"\n\
             $ dig +short other.org SPF\n| \"v=spf1 ip4:198.51.100.0/24 include:example.org\"\n",
    );
    let context = context_with(map! {}, programs);
    let transcript = answers(
        &context,
        &[
            ("dnsutil.A", list!["example.org"], map! {}),
            ("dnsutil.MX", list!["example.org"], map! {"nameserver" => "10.0.0.1"}),
            ("dnsutil.NS", list!["example.org"], map! {}),
            ("dnsutil.SPF", list!["example.org"], map! {}),
            ("dnsutil.A", list!["+trace"], map! {}),
            ("dnsutil.check_ip", list!["::1"], map! {}),
        ],
    );
    assert_eq!(
        transcript,
        "dnsutil.A: [\"192.0.2.1\"]\ndnsutil.MX: [[\"10\", \"mail.example.org.\"]]\ndnsutil.NS: [\"192.0.2.2\"]\n\
             dnsutil.SPF: [\"192.0.2.0/24\", \"198.51.100.0/24\"]\n\
             dnsutil.A: ERROR: \"+trace\" is not a valid domain name\ndnsutil.check_ip: true"
    );
}

#[test]
fn next_serial_exceeds_the_stored_one() {
    for (stored, today, next) in [
        ("", "2026010101", "2026010101"),
        ("2026010101", "2026010101", "2026010102"),
        ("2025123105", "2026010101", "2026010101"),
        ("2026010207", "2026010101", "2026010208"),
    ] {
        assert_eq!(next_serial(stored, today.to_owned()), next);
    }
}
