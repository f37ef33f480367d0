use super::*;
use brine_value::map;

const NOW: u64 = 1_800_000_000;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| (name.parse::<axum::http::HeaderName>().unwrap(), value.parse().unwrap()))
        .collect()
}

fn hmac(secret: &str, signed: &str) -> String {
    hex(Digest::Sha256.hmac(secret.as_bytes(), signed.as_bytes()).unwrap())
}

#[test]
fn a_path_with_a_secret_needs_the_signature_of_its_body() {
    let secrets = Secrets::new(&map! {"github/push" => "it's a secret", "/github/x/" => "other"}, 300).unwrap();
    let valid = hmac("it's a secret", "body");
    let in_base64 =
        base64::engine::general_purpose::STANDARD.encode(Digest::Sha256.hmac(b"it's a secret", b"body").unwrap());
    for (path, header, expected) in [
        ("travis/build", None, "not needed"),
        ("github/push", None, "invalid"),
        ("github/push", Some(("x-hub-signature-256", format!("sha256={valid}"))), "valid"),
        ("github/push", Some(("x-signature", valid.clone())), "valid"),
        ("github/push", Some(("x-signature", in_base64)), "valid"),
        ("github/push", Some(("x-signature", valid.to_uppercase())), "valid"),
        ("github/push", Some(("x-signature", hmac("other", "body"))), "invalid"),
        ("github/push", Some(("x-signature", hmac("it's a secret", "other body"))), "invalid"),
        ("github/x", Some(("x-signature", hmac("other", "body"))), "valid"),
        // A signature for one path is not valid for another one.
        ("github/x", Some(("x-signature", valid.clone())), "invalid"),
        ("github/push", Some(("x-signature", String::new())), "invalid"),
    ] {
        let pairs: Vec<_> = header.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let actual = match secrets.check(path, &headers(&pairs), b"body", NOW) {
            Signature::NotNeeded => "not needed",
            Signature::Valid(mark) => {
                assert!(mark.unwrap().time.is_none());
                "valid"
            }
            Signature::Invalid(_) => "invalid",
        };
        assert_eq!(actual, expected, "{path} {header:?}");
    }
}

#[test]
fn a_signature_of_the_request_covers_its_time_path_and_body() {
    let secrets = Secrets::new(&map! {"ci/*" => "key", "exact" => "key"}, 300).unwrap();
    let sign = |time: u64, path: &str, body: &str| hmac("key", &format!("{time}\n{path}\n{body}"));
    let check = |path: &str, time: &str, signature: &str, body: &str| {
        let request_headers = headers(&[("x-brine-timestamp", time), ("x-brine-signature", signature)]);
        matches!(secrets.check(path, &request_headers, body.as_bytes(), NOW), Signature::Valid(Some(_)))
    };
    let (now, valid) = (NOW.to_string(), sign(NOW, "ci/a", "body"));
    assert!(check("ci/a", &now, &valid, "body"));
    assert!(check("ci/a", &now, &format!("sha256={valid}"), "body"));
    assert!(check("exact", &now, &sign(NOW, "exact", ""), ""));
    for (path, time, signature, body) in [
        ("ci/b", now.as_str(), &valid, "body"),
        ("exact", &now, &valid, "body"),
        ("ci/a", &now, &valid, "other"),
        ("ci/a", &(NOW + 1).to_string(), &valid, "body"),
        ("ci/a", "", &valid, "body"),
        ("ci/a", &format!("+{NOW}"), &valid, "body"),
        ("ci/a", &now, &String::new(), "body"),
        ("ci/a", &(NOW - 301).to_string(), &sign(NOW - 301, "ci/a", "body"), "body"),
        ("ci/a", &(NOW + 301).to_string(), &sign(NOW + 301, "ci/a", "body"), "body"),
    ] {
        assert!(!check(path, time, signature, body), "{path} {time} {signature} {body}");
    }
    for time in [NOW - 300, NOW + 300] {
        assert!(check("ci/a", &time.to_string(), &sign(time, "ci/a", "body"), "body"));
    }
    // The secret of a pattern takes no signature of the body alone.
    let body_alone = headers(&[("x-signature", &hmac("key", "body"))]);
    assert!(matches!(secrets.check("ci/a", &body_alone, b"body", NOW), Signature::Invalid(_)));
    assert!(matches!(secrets.check("exact", &body_alone, b"body", NOW), Signature::Valid(_)));
}

#[test]
fn secrets_are_strings_or_mappings() {
    let body_of_pattern = map! {"ci/*" => map! {"secret" => "key", "signs" => "body", "repeats" => true}};
    let secrets = Secrets::new(&body_of_pattern, 300).unwrap();
    let request_headers = headers(&[("x-signature", &hmac("key", "body"))]);
    assert_eq!(secrets.check("ci/a", &request_headers, b"body", NOW), Signature::Valid(None));
    let request = Secrets::new(&map! {"exact" => map! {"secret" => "key", "signs" => "request"}}, 300).unwrap();
    assert!(matches!(request.check("exact", &request_headers, b"body", NOW), Signature::Invalid(_)));
    for (configured, expected) in [
        (map! {"a" => 5}, "the secret of 'a' is not a string"),
        (map! {"a" => ""}, "the secret of 'a' is not a string"),
        (map! {"a" => map! {"signs" => "body"}}, "the secret of 'a' is not a string"),
        (map! {"a" => map! {"secret" => "x", "signs" => "path"}}, "'signs' of 'a' is invalid"),
        (map! {"a" => map! {"secret" => "x", "repeats" => 5}}, "'repeats' of 'a' is invalid"),
        (map! {"a" => map! {"secret" => "x", "sings" => "body"}}, "'sings' of 'a' is unknown"),
        (map! {"a" => "x", "b" => "x"}, "'a' and 'b' have the same secret"),
        (map! {"a" => "x", "b/*" => map! {"secret" => "x", "signs" => "body"}}, "'a' and 'b/*' have the same secret"),
    ] {
        let error = Secrets::new(&configured, 300).map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{configured:?} {error}");
    }
    for accepted in
        [map! {"a" => "x", "b/*" => "x"}, map! {"a" => "x", "b" => map! {"secret" => "x", "signs" => "request"}}]
    {
        assert!(Secrets::new(&accepted, 300).is_ok(), "{accepted:?}");
    }
}
