use brine_value::list;

use super::super::tests::{poll_once, wrong};
use super::*;

// Output of OpenSSL 3.0.19.
const OUTPUT: &str = "subject=
    C=DE
    O=Exam, ple
    CN=ex.org
    emailAddress=a@ex.org
issuer=
    CN=Authority
serial=1553C584D6E6858850AC49BE3BD48C9C5EAADB75
notBefore=Nov  5 05:55:31 2026 GMT
notAfter=Dec 25 05:55:31 2026 GMT
Certificate:
    Data:
        Version: 3 (0x2)
        Signature Algorithm: sha256WithRSAEncryption
        X509v3 extensions:
            X509v3 Subject Key Identifier: 
                CA:61:18
            X509v3 Basic Constraints: critical
                CA:TRUE
            X509v3 CRL Distribution Points: 
                Full Name:
                  URI:http://x/

            1.2.3.4: 
                ..
";

// The expected values are those of Salt 3008.5 with pyOpenSSL 24 for the same certificate.
#[test]
fn certificates_have_the_fields_of_salt() {
    let expected = map! {
        "cert_path" => "/c.pem",
        "issuer" => "CN=\"Authority\"", "issuer_dict" => map! {"CN" => "Authority"},
        "notAfter_raw" => "20261225055531Z", "notAfter" => "2026-12-25 05:55:31Z",
        "notBefore_raw" => "20261105055531Z", "notBefore" => "2026-11-05 05:55:31Z",
        "serial_number" => Value::whole_number(false, "121756974362031389798019527160757778702582602613", 10).unwrap(),
        "signature_algorithm" => "sha256WithRSAEncryption",
        "subject" => "C=\"DE\",O=\"Exam, ple\",CN=\"ex.org\",emailAddress=\"a@ex.org\"",
        "subject_dict" => map! {"C" => "DE", "O" => "Exam, ple", "CN" => "ex.org", "emailAddress" => "a@ex.org"},
        "version" => 2,
        "extensions" => list![
            map! {"ext_name" => "subjectKeyIdentifier", "ext_data" => "CA:61:18"},
            map! {"ext_name" => "basicConstraints", "ext_data" => "CA:TRUE"},
            map! {"ext_name" => "crlDistributionPoints", "ext_data" => "Full Name:\n  URI:http://x/"},
            map! {"ext_name" => "1.2.3.4", "ext_data" => ".."},
        ],
        "has_expired" => false,
    };
    let now = "2026-12-20T00:00:00Z".parse().unwrap();
    assert_eq!(expiring("/c.pem", parsed(OUTPUT).unwrap(), 45.0, now).unwrap(), expected);
    assert!(parsed("unable to load certificate").is_none());
}

#[test]
fn certificates_are_reported_near_their_expiry() {
    for (days, now, expected) in [
        (45.0, "2026-11-01T00:00:00Z", None),
        (-1.0, "2026-11-01T00:00:00Z", Some(false)),
        (45.0, "2026-11-09T06:00:00Z", Some(false)),
        (0.0, "2026-12-25T00:00:00Z", Some(false)),
        (0.0, "2026-12-24T00:00:00Z", None),
        (15.0, "2027-01-01T00:00:00Z", Some(true)),
    ] {
        let report = expiring("/c.pem", parsed(OUTPUT).unwrap(), days, now.parse().unwrap());
        let has_expired = report.map(|report| report.get("has_expired").and_then(Value::as_bool).unwrap());
        assert_eq!(has_expired, expected, "{days} {now}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_certificates_do_not_affect_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("bad.pem"), "no certificate").unwrap();
    let words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=x"];
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(words).args(["-keyout", &path("key.pem"), "-out", &path("good.pem")]);
    assert!(openssl.output().unwrap().status.success());
    let config = |days: i64| {
        let file = map! {path("good.pem") => map! {"notify_days" => days}};
        list![map! {"files" => list![path("none.pem"), path("bad.pem"), file]}]
    };
    assert!(poll_once("cert_info", &config(10)).unwrap().is_empty());
    let report = poll_once("cert_info", &config(40)).unwrap();
    let certificates = report[0].get("certificates").and_then(Value::as_list).unwrap();
    assert_eq!((certificates.len(), certificates[0].get("subject")), (1, Some(&"CN=\"x\"".into())));
}

#[test]
fn options_are_checked() {
    for (config, error) in [
        (list![], "option 'files' is missing"),
        (list![map! {"files" => "/x"}], "option 'files': expected a list of paths, got /x"),
        (list![map! {"files" => list![5]}], "option 'files': expected a string, got 5"),
        (
            list![map! {"files" => list![]}, map! {"notify_days" => "soon"}],
            "option 'notify_days': expected a number, got soon",
        ),
    ] {
        assert_eq!(wrong("cert_info", &config), error);
    }
}
