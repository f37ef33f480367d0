use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use brine_context::Context;
use brine_function::{Args, CallResult};
use brine_value::{Map, Value, list, map};

use super::policy::merged;
use crate::testing::{context, state_context};

/// Calls an execution function.
fn call(context: &Context, function: &str, keyword: Map) -> CallResult {
    context.call(&format!("x509.{function}"), Args::keyword(keyword))
}

fn good(context: &Context, function: &str, keyword: Map) -> Value {
    call(context, function, keyword).unwrap_or_else(|error| panic!("{function}: {error}"))
}

fn refused(context: &Context, function: &str, keyword: Map) -> String {
    call(context, function, keyword).unwrap_err().message()
}

/// Writes the key and the certificate of an authority, and returns their paths.
fn authority(context: &Context, directory: &Path) -> (String, String) {
    let path = |name: &str| directory.join(name).display().to_string();
    let (key, certificate) = (path("ca.key"), path("ca.crt"));
    good(context, "create_private_key", map! {"algo" => "ec", "path" => &key});
    good(
        context,
        "create_certificate",
        map! {
            "signing_private_key" => &key, "CN" => "ca", "basicConstraints" => "critical, CA:TRUE",
            "keyUsage" => "critical, keyCertSign, cRLSign", "subjectKeyIdentifier" => "hash", "path" => &certificate,
        },
    );
    (key, certificate)
}

#[test]
fn certificates_are_created_read_and_verified() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let (key, ca) = authority(&context, directory.path());
    let leaf = good(&context, "create_private_key", map! {"algo" => "ed25519"});
    let csr = good(
        &context,
        "create_csr",
        map! {"private_key" => leaf.clone(), "CN" => "www", "subjectAltName" => "DNS:www.example.com"},
    );
    let certificate = good(
        &context,
        "create_certificate",
        map! {
            "signing_private_key" => &key, "signing_cert" => &ca, "csr" => csr.clone(), "CN" => "www", "days_valid" => 3,
            "authorityKeyIdentifier" => "keyid:always", "copypath" => directory.path().display().to_string(),
            "serial_number" => "0A:BC", "prepend_cn" => true,
        },
    );
    let read = good(&context, "read_certificate", map! {"certificate" => certificate.clone()});
    let get = |path: &[&str]| path.iter().fold(read.clone(), |value, key| value.get(key).cloned().unwrap_or_default());
    assert_eq!(get(&["subject_str"]), "CN=www".into());
    assert_eq!(get(&["issuer"]), map! {"CN" => "ca"}.into());
    assert_eq!(get(&["serial_number"]), "0A:BC".into());
    assert_eq!(get(&["key_type"]), "ed25519".into());
    assert_eq!(get(&["signature_algorithm"]), "ecdsa-with-SHA256".into());
    assert_eq!(
        get(&["extensions", "subjectAltName"]),
        map! {"critical" => false, "value" => list!["DNS:www.example.com"]}.into()
    );
    assert_eq!(std::fs::read_to_string(directory.path().join("www-abc.crt")).unwrap(), certificate.to_string());
    for (function, keyword, expected) in [
        ("verify_signature", map! {"certificate" => certificate.clone(), "signing_pub_key" => &ca}, true),
        ("verify_signature", map! {"certificate" => certificate.clone()}, false),
        ("verify_signature", map! {"certificate" => &ca}, true),
        ("verify_private_key", map! {"private_key" => leaf.clone(), "public_key" => certificate.clone()}, true),
        ("verify_private_key", map! {"private_key" => &key, "public_key" => csr}, false),
        ("expires", map! {"certificate" => certificate.clone()}, false),
        ("expires", map! {"certificate" => certificate.clone(), "days" => 4}, true),
    ] {
        assert_eq!(good(&context, function, keyword), expected.into(), "{function}");
    }
    assert_eq!(
        good(&context, "will_expire", map! {"certificate" => &ca, "days" => 400}),
        map! {"check_days" => 400, "path" => &ca, "cn" => "ca", "will_expire" => true}.into()
    );
    assert_eq!(good(&context, "get_private_key_size", map! {"private_key" => &key}), 256.into());
    let all = good(&context, "read_certificates", map! {"glob_path" => format!("{}/*", directory.path().display())});
    assert_eq!(all.as_map().unwrap().len(), 2);
}

#[test]
fn revocation_lists_are_created_and_verified() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let (key, ca) = authority(&context, directory.path());
    let list = good(
        &context,
        "create_crl",
        map! {
            "signing_private_key" => &key, "signing_cert" => &ca, "extensions" => map! {"cRLNumber" => 7, "unknown" => 1},
            "revoked" => list![
                map! {"serial_number" => "AB", "revocation_date" => "2020-01-01 00:00:00", "extensions" => map! {"CRLReason" => "keyCompromise"}},
                map! {"serial_number" => "CD", "not_after" => "2020-01-01 00:00:00"},
                map! {"certificate" => &ca, "reason" => "superseded"},
                map! {"old" => list![map! {"serial_number" => "EF"}, map! {"reason" => "superseded"}]},
            ],
        },
    );
    let read = good(&context, "read_crl", map! {"crl" => list.clone()});
    let entries = read.get("revoked_certificates").unwrap().as_map().unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(
        entries.get(&Value::from("AB")).unwrap(),
        &map! {"revocation_date" => "2020-01-01 00:00:00", "extensions" => map! {"CRLReason" => map! {"critical" => false, "value" => "keyCompromise"}}}.into()
    );
    assert_eq!(read.get("extensions").unwrap().get("cRLNumber").unwrap().get("value"), Some(&7.into()));
    assert_eq!(good(&context, "verify_crl", map! {"crl" => list, "cert" => &ca}), true.into());
}

#[test]
fn keys_are_encrypted_and_encoded() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let key = good(&context, "create_private_key", map! {"algo" => "ec", "passphrase" => "secret"});
    assert!(key.to_string().starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
    for (encoding, passphrase) in [("der", None), ("pkcs12", Some("other")), ("pem", Some("other"))] {
        let args = map! {"private_key" => key.clone(), "private_key_passphrase" => "secret", "encoding" => encoding, "passphrase" => passphrase};
        let encoded = good(&context, "encode_private_key", args);
        let public = good(&context, "get_public_key", map! {"key" => encoded, "passphrase" => passphrase});
        assert_eq!(public, good(&context, "get_public_key", map! {"key" => key.clone(), "passphrase" => "secret"}));
    }
    let path = directory.path().join("a.p12");
    let container = map! {
        "signing_private_key" => key.clone(), "signing_private_key_passphrase" => "secret", "CN" => "a",
        "encoding" => "pkcs12", "path" => path.display().to_string(),
    };
    good(&context, "create_certificate", container);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let state = path.with_file_name("b.p12").display().to_string();
    let args = map! {
        "name" => &state, "signing_private_key" => key.clone(), "signing_private_key_passphrase" => "secret",
        "encoding" => "pkcs12",
    };
    assert_eq!(applied(false, "certificate_managed", args).1, "The certificate has been created");
    assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
    let path = directory.path().join("a.key").display().to_string();
    assert_eq!(good(&context, "create_private_key", map! {"path" => &path}), format!("PEM written to {path}").into());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        refused(&context, "get_public_key", map! {"key" => key}),
        "Private key is encrypted. Please provide a password."
    );
}

#[test]
fn invalid_arguments_are_rejected() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let (key, ca) = authority(&context, directory.path());
    let other = good(&context, "create_private_key", map! {"algo" => "ec"});
    let digests =
        "sha1, sha224, sha256, sha384, sha512, sha512_224, sha512_256, sha3_224, sha3_256, sha3_384, sha3_512";
    for (function, keyword, error) in [
        ("create_certificate", map! {}, "Creating a certificate locally at least requires a signing private key.".to_owned()),
        ("create_certificate", map! {"encoding" => "x"}, "Invalid value 'x' for encoding. Valid: der, pem, pkcs7_der, pkcs7_pem, pkcs12".to_owned()),
        ("create_certificate", map! {"digest" => "x"}, format!("Invalid value 'x' for digest. Valid: {digests}")),
        ("create_certificate", map! {"encoding" => "der", "append_certs" => list!["x"]}, "Cannot encode a certificate chain in DER".to_owned()),
        ("create_certificate", map! {"ca_server" => "x"}, "signing_policy must be specified to request a certificate from a remote ca_server".to_owned()),
        ("create_certificate", map! {"signing_private_key" => other, "signing_cert" => &ca, "csr" => "zz"}, "Could not load provided source. You need to pass an existing file, (PEM|hex|base64)-encoded string or raw bytes.".to_owned()),
        ("create_certificate", map! {"signing_private_key" => &key, "signing_cert" => &ca}, "This certificate is not self-signed (signing_cert is set) and thus needs public_key, private_key or csr to derive public key to sign".to_owned()),
        ("create_private_key", map! {"algo" => "dsa"}, "Invalid algorithm specified for generating private key: dsa. Valid: rsa, ec, ed25519, ed448".to_owned()),
        ("create_private_key", map! {"keysize" => 512}, "RSA key size must be either 2048, 3072 or 4096 bits.".to_owned()),
        ("create_private_key", map! {"nonsense" => 1}, "Unrecognized keyword arguments: ['nonsense']".to_owned()),
        ("create_crl", map! {"signing_private_key" => &key, "signing_cert" => &ca, "revoked" => list![map! {}]}, "Need serial_number or certificate".to_owned()),
        ("encode_crl", map! {"crl" => "x", "encoding" => "pkcs12"}, "Invalid value 'pkcs12' for encoding. Valid: der, pem".to_owned()),
        ("read_certificate", map! {"certificate" => &key}, "Could not load PEM-encoded certificate.".to_owned()),
    ] {
        assert_eq!(refused(&context, function, keyword), error);
    }
}

#[test]
fn pem_text_is_corrected() {
    let context = context(&[]);
    let body = "A".repeat(70);
    let correct = format!("-----BEGIN CERTIFICATE-----\n{}\n{}\n-----END CERTIFICATE-----\n", &body[..64], &body[64..]);
    for text in [
        correct.clone(),
        format!("x\n-----BEGIN CERTIFICATE-----\n {body} \n-----END CERTIFICATE-----"),
        format!("-----BEGIN CERTIFICATE-----{body}-----END CERTIFICATE-----"),
        format!("-----BEGIN CERTIFICATE----- {} {} -----END CERTIFICATE-----", &body[..30], &body[30..]),
        format!("-----BEGIN CERTIFICATE-----\\n{body}\\n-----END CERTIFICATE-----"),
        format!("-----BEGIN X-----\nAAAA\n-----END X-----\n{correct}"),
    ] {
        let entry = good(&context, "get_pem_entry", map! {"text" => text.as_str(), "pem_type" => "CERTIFICATE"});
        assert_eq!(entry.to_string(), correct, "{text}");
    }
    let wrong = "-----BEGIN PRIVATE KEY-----\nsecret\n";
    assert_eq!(refused(&context, "get_pem_entry", map! {"text" => wrong}), "PEM text not valid");
}

/// The result, comment and changes of a state.
fn applied(test: bool, function: &str, keyword: Map) -> (Value, String, Map) {
    let context = state_context(test, &[]);
    let report =
        context.call.minion.states.call(&context, &format!("x509.{function}"), Args::keyword(keyword)).unwrap();
    let get = |key: &str| report.get(key).cloned().unwrap_or_default();
    (get("result"), get("comment").to_string(), get("changes").as_map().cloned().unwrap_or_default())
}

#[test]
fn states_create_keep_and_renew_files() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let (key, ca) = authority(&context, directory.path());
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (own, list, csr, leaf) = (path("leaf.key"), path("ca.crl"), path("leaf.csr"), path("leaf.crt"));
    let with =
        |base: &Map, more: Map| -> Map { base.iter().chain(&more).map(|(k, v)| (k.clone(), v.clone())).collect() };
    let key_args = map! {"name" => &own, "algo" => "ec"};
    let csr_args =
        map! {"name" => &csr, "private_key" => &own, "CN" => "leaf", "subjectAltName" => list!["DNS:a.example"]};
    let certificate = map! {
        "name" => &leaf, "csr" => &csr, "signing_private_key" => &key, "signing_cert" => &ca, "CN" => "leaf",
        "append_certs" => list![ca.as_str()], "makedirs" => true,
    };
    let crl = map! {
        "name" => &list, "signing_private_key" => &key, "signing_cert" => &ca, "revoked" => list![map! {"serial_number" => "AB"}],
        "extensions" => map! {"cRLNumber" => "auto"},
    };
    let created = |name: &str| map! {"created" => name};
    let ok = |comment: &str, changes: Map| (Value::from(true), comment.to_owned(), changes);
    for (function, args, what, name) in [
        ("private_key_managed", &key_args, "private key", &own),
        ("csr_managed", &csr_args, "certificate signing request", &csr),
        ("certificate_managed", &certificate, "certificate", &leaf),
        ("crl_managed", &crl, "certificate revocation list", &list),
    ] {
        let would = (Value::Nil, format!("The {what} would have been created"), created(name));
        assert_eq!(applied(true, function, args.clone()), would);
        assert!(!Path::new(name).exists());
        assert_eq!(applied(false, function, args.clone()), ok(&format!("The {what} has been created"), created(name)));
        for test in [true, false] {
            assert_eq!(
                applied(test, function, args.clone()),
                ok(&format!("The {what} is in the correct state"), map! {})
            );
        }
    }
    for (function, args, more, what, changes) in [
        ("private_key_managed", &key_args, map! {"keysize" => 384}, "private key", map! {"keysize" => 384}),
        (
            "csr_managed",
            &csr_args,
            map! {"CN" => "other"},
            "certificate signing request",
            map! {"private_key" => true, "subject_name" => "CN=other"},
        ),
        (
            "certificate_managed",
            &certificate,
            map! {"keyUsage" => "digitalSignature", "digest" => "sha512"},
            "certificate",
            map! {
                "digest" => "sha512", "private_key" => true, "extensions" => map! {"added" => list!["keyUsage"], "changed" => list![], "removed" => list![]}
            },
        ),
        (
            "certificate_managed",
            &certificate,
            map! {"days_valid" => 10},
            "certificate",
            map! {
                "digest" => "sha256", "extensions" => map! {"added" => list![], "changed" => list![], "removed" => list!["keyUsage"]}
            },
        ),
        ("certificate_managed", &certificate, map! {}, "certificate", map! {"expiration" => true}),
        (
            "certificate_managed",
            &certificate,
            map! {"encoding" => "pkcs7_pem", "append_certs" => list![]},
            "certificate",
            map! {"encoding" => "pkcs7_pem", "additional_certs" => true},
        ),
        (
            "certificate_managed",
            &certificate,
            map! {"encoding" => "der", "append_certs" => list![]},
            "certificate",
            map! {"encoding" => "der"},
        ),
        (
            "certificate_managed",
            &certificate,
            map! {"encoding" => "pkcs12", "private_key" => &own, "pkcs12_passphrase" => "x"},
            "certificate",
            map! {"encoding" => "pkcs12", "additional_certs" => true},
        ),
        (
            "certificate_managed",
            &certificate,
            map! {"encoding" => "pkcs12", "private_key" => &own, "pkcs12_passphrase" => "y"},
            "certificate",
            map! {"pkcs12_passphrase" => true},
        ),
        (
            "crl_managed",
            &crl,
            map! {"revoked" => list![map! {"serial_number" => "CD"}]},
            "certificate revocation list",
            map! {
                "revocations" => map! {"added" => list!["CD"], "changed" => list![], "removed" => list!["AB"]}
            },
        ),
        (
            "crl_managed",
            &crl,
            map! {"days_remaining" => 101, "encoding" => "der"},
            "certificate revocation list",
            map! {
                "encoding" => "der", "expiration" => true, "revocations" => map! {"added" => list!["AB"], "changed" => list![], "removed" => list!["CD"]}
            },
        ),
    ] {
        let args = with(args, more);
        // A container that cannot be opened counts as missing, as in Salt.
        let verb = if changes.contains_key(&Value::from("pkcs12_passphrase")) { "created" } else { "recreated" };
        let would = (Value::Nil, format!("The {what} would have been {verb}"), changes.clone());
        assert_eq!(applied(true, function, args.clone()), would);
        assert_eq!(applied(false, function, args), ok(&format!("The {what} has been {verb}"), changes));
    }
    // Three lists were issued.
    assert_eq!(
        good(&context, "read_crl", map! {"crl" => &list})
            .get("extensions")
            .unwrap()
            .get("cRLNumber")
            .unwrap()
            .get("value"),
        Some(&3.into())
    );
    assert_eq!(std::fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o400);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 6, "no draft stays");
}

#[test]
fn other_minions_get_certificates_by_signing_policies() {
    let (mut context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let (key, ca) = authority(&context, directory.path());
    let policy = map! {"minions" => "web*", "signing_private_key" => &key, "signing_cert" => &ca, "O" => "Brine", "days_valid" => 5};
    let policies =
        map! {"www" => policy.iter().map(|(k, v)| map! {k.clone() => v.clone()}.into()).collect::<Vec<Value>>()};
    context.run_pillar = Some(std::sync::Arc::new(map! {"x509_signing_policies" => policies}));
    let own = good(&context, "create_private_key", map! {"algo" => "ec"});
    let public = good(&context, "get_public_key", map! {"key" => own.clone()});
    let ask = |id: Option<&str>, policy: &str, kwargs: Map, only: bool| {
        let mut context = context.clone();
        let mut job = context.job.for_parallel();
        job.load = id.map(|id| map! {"id" => id}).unwrap_or_default();
        context.job = std::sync::Arc::new(job);
        let args = map! {"signing_policy" => policy, "kwargs" => kwargs, "get_signing_policy_only" => only, "__pub_id" => "web1"};
        let reply = good(&context, "sign_remote_certificate", args);
        (reply.get("data").cloned().unwrap(), reply.get("errors").unwrap().to_string())
    };
    let copies = directory.path().display().to_string();
    let asked = map! {
        "public_key" => public.clone(), "CN" => "web1", "subject" => "CN=root", "copypath" => copies, "days_valid" => 1000,
        "signing_private_key" => own, "basicConstraints" => "CA:FALSE",
    };
    let (certificate, errors) = ask(Some("web1"), "www", asked.clone(), false);
    assert_eq!(errors, "[]");
    let read = good(&context, "read_certificate", map! {"certificate" => certificate.clone()});
    assert_eq!(read.get("subject_str"), Some(&"CN=web1,O=Brine".into()));
    assert_eq!(good(&context, "expires", map! {"certificate" => certificate.clone(), "days" => 6}), true.into());
    assert_eq!(
        good(&context, "verify_signature", map! {"certificate" => certificate, "signing_pub_key" => &ca}),
        true.into()
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "no copy was written");

    let (policy, _) = ask(Some("web1"), "www", map! {}, true);
    let mut names = policy.as_map().unwrap().keys().map(ToString::to_string).collect::<Vec<_>>();
    names.sort();
    assert_eq!(names, ["O", "days_valid", "signing_cert"]);
    for (id, policy, kwargs, error) in [
        (Some("db1"), "www", asked.clone(), "['minion not permitted to use specified signing policy']"),
        (None, "www", asked.clone(), "['minion sending this request could not be identified']"),
        (Some("web1"), "none", asked, "['signing_policy must be specified and defined on signing minion']"),
        // The path of a file on the signing minion is rejected.
        (
            Some("web1"),
            "www",
            map! {"public_key" => &key},
            "['Could not load provided source. You need to pass an existing file, (PEM|hex|base64)-encoded string or raw bytes.']",
        ),
        (
            Some("web1"),
            "www",
            map! {"csr" => &key},
            "['Could not load provided source. You need to pass an existing file, (PEM|hex|base64)-encoded string or raw bytes.']",
        ),
    ] {
        assert_eq!(ask(id, policy, kwargs, false), (Value::Nil, error.to_owned()));
    }
}

#[test]
fn signing_policy_overrides_arguments() {
    let subject = |value: Value| map! {"subject" => value};
    for (policy, args, expected) in [
        (map! {"days_valid" => 1}, map! {"days_valid" => 9, "CN" => "a"}, map! {"days_valid" => 1, "CN" => "a"}),
        (map! {"CN" => "a"}, subject("CN=b".into()), map! {"CN" => "a"}),
        (map! {"commonName" => "a"}, subject("CN=b".into()), map! {"CN" => "a"}),
        (
            subject(map! {"O" => "x"}.into()),
            subject(map! {"O" => "y", "CN" => "b"}.into()),
            subject(map! {"O" => "x", "CN" => "b"}.into()),
        ),
        (subject(list!["O=x"]), subject(list!["CN=b"]), subject(list!["O=x", "CN=b"])),
        (subject(list!["O=x"]), subject("CN=b".into()), subject(list!["O=x"])),
        (map! {}, subject("CN=b".into()), subject("CN=b".into())),
    ] {
        assert_eq!(Value::from(merged(policy, args)), Value::from(expected));
    }
}

/// An argument of a state that `file.managed` has, too, is not passed on to it: `encoding` is not that of a text.
#[test]
fn the_encoding_of_a_state_is_not_that_of_its_text() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let (key, ca) = authority(&context, directory.path());
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (function, encoding, more) in [
        ("private_key_managed", "pem", map! {"algo" => "ec"}),
        ("csr_managed", "pem", map! {"private_key" => &key, "CN" => "a"}),
        ("certificate_managed", "pem", map! {"signing_private_key" => &key, "CN" => "a"}),
        ("certificate_managed", "pkcs7_pem", map! {"signing_private_key" => &key, "CN" => "a"}),
        ("crl_managed", "pem", map! {"signing_private_key" => &key, "signing_cert" => &ca, "revoked" => list![]}),
    ] {
        let name = path(&format!("{function}.{encoding}"));
        let mut keyword = map! {"name" => &name, "encoding" => encoding, "file_encoding" => "ascii"};
        keyword.extend(more);
        let mut state = state_context(false, &[]);
        // As in a state run, the low chunk has the arguments of the state.
        state.chunk = keyword.clone().into();
        let report =
            state.call.minion.states.call(&state, &format!("x509.{function}"), Args::keyword(keyword)).unwrap();
        assert_eq!(report.get("result"), Some(&true.into()), "{function} {encoding}: {report}");
        assert!(std::fs::read(&name).unwrap().starts_with(b"-----BEGIN "), "{function}");
    }
}

#[test]
fn binary_files_are_backed_up_before_they_are_replaced() {
    let (context, directory) = (context(&[]), tempfile::tempdir().unwrap());
    let (key, ca) = authority(&context, directory.path());
    let name = directory.path().join("a").display().to_string();
    for (function, more) in [
        ("private_key_managed", map! {"algo" => "ec", "overwrite" => true}),
        ("csr_managed", map! {"private_key" => &key, "CN" => "a"}),
        ("certificate_managed", map! {"signing_private_key" => &key, "CN" => "a"}),
        ("crl_managed", map! {"signing_private_key" => &key, "signing_cert" => &ca, "revoked" => list![]}),
    ] {
        for (backup, expected) in [(Value::from("minion"), 1), (Value::Nil, 0)] {
            std::fs::write(&name, "1234").unwrap();
            let state = state_context(false, &[]);
            let mut keyword = map! {"name" => &name, "encoding" => "der", "backup" => backup};
            keyword.extend(more.clone());
            let result = state.call.minion.states.call(&state, &format!("x509.{function}"), Args::keyword(keyword));
            assert_eq!(result.unwrap().get("result"), Some(&true.into()), "{function}");
            let backups = state.call.call("file.list_backups", Args::keyword(map! {"path" => &name})).unwrap();
            assert_eq!(backups.as_map().unwrap().len(), expected, "{function}");
        }
    }
}
