use proptest::prelude::*;

use super::*;

fn read_all(bytes: &[u8]) {
    if let Ok(loaded) = Certificate::load(bytes, Some("x")) {
        let _ = loaded.certificate.details();
    }
    if let Ok((request, _)) = Request::load(bytes) {
        let _ = request.details();
    }
    if let Ok((list, _)) = RevocationList::load(bytes) {
        let _ = list.details();
    }
    let _ = PrivateKey::load(bytes, Some("x"));
    let _ = PublicKey::load(bytes);
}

fn certificate() -> Vec<u8> {
    let key = PrivateKey::generate("ed25519", None).unwrap();
    let public = key.public().unwrap();
    let issuer = Issuer { subject: Some(&public), key: Some(&public), certificate: None };
    let build = |name, value: &str| Extension::build(name, &value.into(), &issuer).unwrap();
    let name = Name::of(&"CN=a,O=b".into()).unwrap();
    let plan = Plan {
        serial: vec![1],
        issuer: name.clone(),
        subject: name,
        not_before: 0,
        not_after: 1,
        key: key.public().unwrap(),
        extensions: vec![
            build("basicConstraints", "CA:TRUE,pathlen:1"),
            build("keyUsage", "cRLSign"),
            build("authorityKeyIdentifier", "keyid"),
            build("subjectAltName", "IP:10.0.0.0/8,dirName:CN=x,RID:1.2.3"),
            build("crlDistributionPoints", "URI:http://a"),
            build("nameConstraints", "permitted;DNS:a,excluded;IP:1.2.3.4/32"),
            build("certificatePolicies", "1.2.3"),
            build("authorityInfoAccess", "OCSP;URI:http://a"),
        ],
    };
    plan.sign(&key, digest("sha256").unwrap()).unwrap().der().to_vec()
}

proptest! {
    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
        read_all(&[b"-----BEGIN CERTIFICATE-----\n", &bytes[..], b"\n-----END CERTIFICATE-----"].concat());
    }

    #[test]
    fn no_modified_certificate_panics(at in any::<prop::sample::Index>(), with in any::<u8>(), cut in 0_usize..4) {
        let mut bytes = certificate();
        let at = at.index(bytes.len());
        bytes[at] = with;
        bytes.truncate(bytes.len() - cut);
        read_all(&bytes);
    }
}

#[test]
fn extensions_that_are_invalid_are_refused() {
    use brine_value::{Value, list, map};
    let cases: [(&str, Value, &str); 16] = [
        ("basicConstraints", "critical".into(), "Invalid configuration for basicContraints: 'ca'"),
        ("basicConstraints", map! {}.into(), "Undefined required key for basicConstraints: 'ca'"),
        ("basicConstraints", map! {"ca" => false, "pathlen" => 1}.into(), "path_length must be None when ca is False"),
        (
            "keyUsage",
            "encipherOnly".into(),
            "encipher_only and decipher_only can only be true when key_agreement is true",
        ),
        ("extendedKeyUsage", "x".into(), "Invalid oid: x"),
        ("subjectKeyIdentifier", "critical, hash".into(), "subjectKeyIdentifier must be marked as non-critical"),
        ("subjectKeyIdentifier", "xyz".into(), "Value must be precomputed hash"),
        (
            "authorityKeyIdentifier",
            "keyid".into(),
            "Need CA certificate or CA pubkey to calculate authorityKeyIdentifier",
        ),
        ("subjectAltName", "DNS".into(), "Codepoint U+005F at position 1 of '__present__' not allowed"),
        ("subjectAltName", map! {"DNS" => "a"}.into(), "subjectAltName is invalid: expected a string or a list"),
        ("issuerAltName", "issuer:copy".into(), "Need CA certificate to copy to issuerAltName"),
        ("nameConstraints", map! {}.into(), "nameConstraints needs at least one definition"),
        ("nsComment", "x".into(), "nsComment is currently not implemented."),
        ("cRLNumber", "x".into(), "cRLNumber must be an integer and must be marked as non-critical"),
        ("CRLReason", list!["x"], "'x' is not a valid ReasonFlags"),
        ("unknown", Value::Nil, "Unknown extension unknown"),
    ];
    for (name, value, error) in cases {
        assert_eq!(Extension::build(name, &value, &Issuer::default()).unwrap_err().to_string(), error);
    }
}

#[test]
fn serial_numbers_are_hexadecimal_strings_or_integers() {
    for (argument, bytes) in [("AB:CD", vec![0xab, 0xcd]), ("0001", vec![1])] {
        assert_eq!(serial_number(&argument.into()), Ok(bytes));
    }
    assert_eq!(serial_number(&258.into()), Ok(vec![1, 2]));
    assert_eq!(serial_number(&u64::MAX.into()), Ok(vec![0xff; 8]));
    for bad in ["123", "xy", "00"] {
        assert!(serial_number(&bad.into()).is_err(), "{bad}");
    }
    assert!(serial_number(&(-1).into()).is_err());
    assert!(serial_number(&"ff".repeat(20).as_str().into()).is_err());
}
