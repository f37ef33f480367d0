//! Interoperability with openssl: it reads and verifies what this crate writes, and vice versa.

#![allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories")]
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use brine_value::{Value, list, map};
use brine_x509::{
    Certificate, Container, Encoding, Entry, Extension, Issuer, Name, Plan, PrivateKey, Request, RequestPlan,
    RevocationList, RevocationPlan, digest, now, serial_number,
};

/// Runs openssl in a directory and returns its output.
fn openssl(directory: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new("openssl").args(args).current_dir(directory).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(text) } else { Err(text) }
}

fn name(common: &str) -> Name {
    Name::of(&map! {"CN" => common, "O" => "Brine", "C" => "DE"}.into()).unwrap()
}

fn authority(key: &PrivateKey, hash: &str) -> Certificate {
    let public = key.public().unwrap();
    let issuer = Issuer { subject: Some(&public), key: Some(&public), certificate: None };
    let extensions = [
        ("basicConstraints", Value::from("critical, CA:TRUE, pathlen:1")),
        ("keyUsage", "critical, cRLSign, keyCertSign".into()),
        ("subjectKeyIdentifier", "hash".into()),
        ("authorityKeyIdentifier", "keyid".into()),
    ];
    let extensions = extensions.iter().map(|(name, value)| Extension::build(name, value, &issuer).unwrap()).collect();
    let plan = Plan {
        serial: serial_number(&Value::Nil).unwrap(),
        issuer: name("authority"),
        subject: name("authority"),
        not_before: now() - 60,
        not_after: now() + 86_400,
        key: key.public().unwrap(),
        extensions,
    };
    plan.sign(key, digest(hash).unwrap()).unwrap()
}

fn keys() -> Vec<PrivateKey> {
    [("rsa", None), ("ec", Some(256)), ("ec", Some(384)), ("ec", Some(521)), ("ed25519", None)]
        .into_iter()
        .map(|(algorithm, size)| PrivateKey::generate(algorithm, size).unwrap())
        .collect()
}

#[test]
fn openssl_verifies_certificates_of_every_key() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    for (key, hash) in keys().iter().zip(["sha256", "sha512", "sha384", "sha224", "sha256"]) {
        let ca = authority(key, hash);
        let subject = PrivateKey::generate("ec", None).unwrap().public().unwrap();
        let issuer = Issuer { subject: Some(&subject), certificate: Some(&ca), key: None };
        let all: Vec<(&str, Value)> = vec![
            ("basicConstraints", "critical, CA:FALSE".into()),
            ("keyUsage", list!["digitalSignature", "keyEncipherment"]),
            ("extendedKeyUsage", "serverAuth, clientAuth, 1.2.3.4".into()),
            ("subjectKeyIdentifier", "hash".into()),
            ("authorityKeyIdentifier", "keyid:always, issuer:always".into()),
            ("issuerAltName", "DNS:ca.example.com".into()),
            ("authorityInfoAccess", "OCSP;URI:http://ocsp.example.com/,caIssuers;URI:http://ca.example.com/ca.cer".into()),
            ("subjectAltName", "DNS:www.example.com, IP:10.0.0.1, email:a@example.com".into()),
            (
                "crlDistributionPoints",
                list![
                    map! {"fullname" => "URI:http://a.example/x.crl", "crlissuer" => "dirName:CN=x", "reasons" => list!["keyCompromise", "privilegeWithdrawn"]},
                    "URI:http://b.example/y.crl"
                ],
            ),
            ("certificatePolicies", map! {"1.2.3.4" => list!["https://example.com/policy", map! {"organization" => "o", "noticeNumbers" => list![1, 2], "text" => "t"}]}.into()),
            ("noCheck", true.into()),
            ("tlsfeature", "status_request".into()),
        ];
        let extensions = all.iter().map(|(name, value)| Extension::build(name, value, &issuer).unwrap()).collect();
        let plan = Plan {
            serial: serial_number(&"00:AB:CD".into()).unwrap(),
            issuer: ca.subject.clone(),
            subject: name("leaf"),
            not_before: now() - 60,
            not_after: now() + 3600,
            key: subject,
            extensions,
        };
        let leaf = plan.sign(key, digest(hash).unwrap()).unwrap();
        assert!(leaf.is_signed_by(&key.public().unwrap()) && ca.is_signed_by(&key.public().unwrap()));
        write("ca.crt", &ca.to_pem());
        write("leaf.crt", &leaf.to_pem());
        assert_eq!(
            openssl(directory.path(), &["verify", "-x509_strict", "-CAfile", "ca.crt", "leaf.crt"]).unwrap(),
            "leaf.crt: OK\n"
        );
        let text = openssl(directory.path(), &["x509", "-in", "leaf.crt", "-noout", "-text"]).unwrap();
        for expected in [
            "Serial Number: 43981 (0xabcd)",
            "Subject: C = DE, O = Brine, CN = leaf",
            "DNS:www.example.com, IP Address:10.0.0.1, email:a@example.com",
            "TLS Web Server Authentication, TLS Web Client Authentication, 1.2.3.4",
            "OCSP - URI:http://ocsp.example.com/",
            "URI:http://a.example/x.crl",
            "Key Compromise, Privilege Withdrawn",
            "CPS: https://example.com/policy",
            "Explicit Text: t",
            "TLS Feature:",
            "OCSP No Check:",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }
}

#[test]
fn openssl_verifies_requests_and_revocation_lists() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(directory.path().join(name), bytes).unwrap();
    for key in keys() {
        let none = Issuer::default();
        let san = Extension::build("subjectAltName", &list!["DNS:a.example", map! {"ip" => "::1"}], &none).unwrap();
        let plan = RequestPlan { subject: name("request"), extensions: vec![san] };
        let request = plan.sign(&key, digest("sha256").unwrap()).unwrap();
        assert!(request.is_authentic());
        write("a.csr", request.to_pem().as_bytes());
        let text = openssl(directory.path(), &["req", "-in", "a.csr", "-noout", "-verify", "-text"]).unwrap();
        assert!(text.contains("verify OK") && text.contains("DNS:a.example, IP Address:0:0:0:0:0:0:0:1"), "{text}");

        let ca = authority(&key, "sha256");
        let issuer = Issuer { certificate: Some(&ca), ..Issuer::default() };
        let entry = |serial: u8, reason: &str| Entry {
            serial: vec![serial],
            date: now() - 5,
            extensions: vec![Extension::build("CRLReason", &reason.into(), &none).unwrap()],
        };
        let plan = RevocationPlan {
            issuer: ca.subject.clone(),
            last_update: now(),
            next_update: now() + 86_400,
            entries: vec![entry(7, "keyCompromise"), entry(200, "superseded")],
            extensions: vec![
                Extension::build("authorityKeyIdentifier", &"keyid".into(), &issuer).unwrap(),
                Extension::build("cRLNumber", &3.into(), &issuer).unwrap(),
                Extension::build(
                    "issuingDistributionPoint",
                    &map! {"critical" => true, "fullname" => list!["URI:http://a.example/x.crl"], "onlyuser" => true}
                        .into(),
                    &issuer,
                )
                .unwrap(),
            ],
        };
        let list = plan.sign(&key, digest("sha256").unwrap()).unwrap();
        assert_eq!(list.number(), Some(3));
        write("ca.crt", ca.to_pem().as_bytes());
        write("a.crl", list.der());
        let args = ["crl", "-in", "a.crl", "-inform", "der", "-noout", "-CAfile", "ca.crt", "-text"];
        let text = openssl(directory.path(), &args).unwrap();
        for expected in ["verify OK", "Serial Number: C8", "Key Compromise", "Superseded", "Only User Certificates"] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        assert_eq!(RevocationList::load(list.to_pem().as_bytes()).unwrap().0.entries, plan.entries);
    }
}

#[test]
fn openssl_reads_keys_and_containers() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for key in keys() {
        let ca = authority(&key, "sha256");
        std::fs::write(path("plain.key"), key.to_pem(None).unwrap()).unwrap();
        std::fs::write(path("sealed.key"), key.to_pem(Some("sécret")).unwrap()).unwrap();
        for args in [
            &["pkey", "-in", "plain.key", "-pubout"][..],
            &["pkey", "-in", "sealed.key", "-passin", "pass:sécret", "-pubout"],
        ] {
            assert_eq!(openssl(directory.path(), args).unwrap(), key.public().unwrap().to_pem());
        }
        assert!(openssl(directory.path(), &["pkey", "-in", "sealed.key", "-passin", "pass:wrong"]).is_err());
        for (compatible, password) in [(false, Some("secret")), (true, Some("secret")), (false, None)] {
            let container = Container {
                key: Some(PrivateKey::load(key.to_pem(None).unwrap().as_bytes(), None).unwrap().key),
                certificate: Some(ca.der().to_vec()),
                others: vec![authority(&key, "sha256").der().to_vec()],
                name: Some("a name".into()),
            };
            std::fs::write(path("a.p12"), container.to_der(password, compatible).unwrap()).unwrap();
            let word = format!("pass:{}", password.unwrap_or_default());
            let text = openssl(directory.path(), &["pkcs12", "-in", "a.p12", "-passin", &word, "-nodes"]).unwrap();
            assert_eq!(text.matches("BEGIN CERTIFICATE").count(), 2, "{text}");
            assert!(text.contains("friendlyName: a name") && text.contains("BEGIN PRIVATE KEY"), "{text}");
            let bytes = std::fs::read(path("a.p12")).unwrap();
            let read = Certificate::load(&bytes, password).unwrap();
            assert_eq!((read.encoding, read.chain.len(), read.name.as_deref()), (Encoding::Pkcs12, 1, Some("a name")));
            assert!(PrivateKey::load(&bytes, Some("wrong")).is_err());
        }
        for (encoding, form) in [(Encoding::Pkcs7Pem, "pem"), (Encoding::Pkcs7Der, "der")] {
            let bytes = ca.encode(encoding, &[authority(&key, "sha256")]);
            std::fs::write(path("a.p7"), &bytes).unwrap();
            let args = ["pkcs7", "-in", "a.p7", "-inform", form, "-print_certs"];
            assert_eq!(openssl(directory.path(), &args).unwrap().matches("BEGIN CERTIFICATE").count(), 2);
            let read = Certificate::load(&bytes, None).unwrap();
            assert_eq!((read.encoding, read.chain.len()), (encoding, 1));
        }
    }
}

#[test]
fn keys_and_certificates_of_openssl_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| openssl(directory.path(), args).unwrap();
    let read = |name: &str| std::fs::read(directory.path().join(name)).unwrap();
    run(&[
        "req",
        "-utf8",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "a.key",
        "-out",
        "a.crt",
        "-subj",
        "/C=DE/O=Ö/CN=a",
        "-addext",
        "nameConstraints=critical,permitted;DNS:.example.com,excluded;IP:10.0.0.0/255.0.0.0",
    ]);
    let certificate = Certificate::load(&read("a.crt"), None).unwrap().certificate;
    assert_eq!(certificate.subject.show(), "CN=a,O=Ö,C=DE");
    let constraints =
        map! {"critical" => true, "excluded" => list!["IP:10.0.0.0/8"], "permitted" => list!["DNS:.example.com"]};
    assert_eq!(
        certificate.details().unwrap().get(&Value::from("extensions")).unwrap().get("nameConstraints"),
        Some(&constraints.into())
    );
    let key = PrivateKey::load(&read("a.key"), None).unwrap().key;
    assert!(certificate.public_key().unwrap() == key.public().unwrap());
    for (args, form) in [
        (&["rsa", "-in", "a.key", "-traditional", "-aes256", "-passout", "pass:x", "-out", "b.key"][..], "pem"),
        (&["rsa", "-in", "a.key", "-traditional", "-des3", "-passout", "pass:x", "-out", "b.key"], "pem"),
        (&["pkcs8", "-topk8", "-in", "a.key", "-v2", "aes128", "-passout", "pass:x", "-out", "b.key"], "pem"),
        (
            &[
                "pkcs8",
                "-topk8",
                "-in",
                "a.key",
                "-v2",
                "des3",
                "-v2prf",
                "hmacWithSHA512",
                "-passout",
                "pass:x",
                "-outform",
                "der",
                "-out",
                "b.key",
            ],
            "der",
        ),
        (&["pkcs8", "-topk8", "-in", "a.key", "-v1", "PBE-SHA1-3DES", "-passout", "pass:x", "-out", "b.key"], "pem"),
        (
            &[
                "pkcs12", "-export", "-inkey", "a.key", "-in", "a.crt", "-passout", "pass:x", "-name", "n", "-out",
                "b.key",
            ],
            "pkcs12",
        ),
        (
            &[
                "pkcs12",
                "-export",
                "-certpbe",
                "PBE-SHA1-3DES",
                "-keypbe",
                "PBE-SHA1-3DES",
                "-macalg",
                "sha1",
                "-inkey",
                "a.key",
                "-in",
                "a.crt",
                "-passout",
                "pass:x",
                "-out",
                "b.key",
            ],
            "pkcs12",
        ),
    ] {
        run(args);
        let loaded = PrivateKey::load(&read("b.key"), Some("x")).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        assert_eq!(loaded.encoding, form);
        assert!(loaded.key.public().unwrap() == key.public().unwrap());
        let wrong = PrivateKey::load(&read("b.key"), Some("y")).err().unwrap().to_string();
        assert_eq!(wrong, "Bad decrypt - is the password correct?", "{args:?}");
    }
    assert_eq!(
        PrivateKey::load(&read("a.key"), Some("x")).err().unwrap().to_string(),
        "Private key is unencrypted. Please remove the password."
    );
    run(&["req", "-new", "-key", "a.key", "-out", "a.csr", "-subj", "/CN=x", "-sha512"]);
    let (request, is_pem) = Request::load(&read("a.csr")).unwrap();
    assert!(is_pem && request.is_authentic() && request.digest() == Some(digest("sha512").unwrap()));
    run(&[
        "req",
        "-x509",
        "-new",
        "-key",
        "a.key",
        "-out",
        "pss.crt",
        "-subj",
        "/CN=x",
        "-sigopt",
        "rsa_padding_mode:pss",
        "-sha384",
    ]);
    let pss = Certificate::load(&read("pss.crt"), None).unwrap().certificate;
    assert!(pss.is_signed_by(&key.public().unwrap()));
}
