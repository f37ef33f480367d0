use super::*;

fn keys() -> Vec<PrivateKey> {
    vec![
        PrivateKey::generate_rsa(2048).unwrap(),
        PrivateKey::generate_ec(Curve::P256).unwrap(),
        PrivateKey::generate_ec(Curve::P384).unwrap(),
        PrivateKey::generate_ec(Curve::P521).unwrap(),
        PrivateKey::generate_ed25519().unwrap(),
    ]
}

#[test]
fn every_key_signs_with_every_hash_function() {
    use Digest::*;
    let digests =
        [Sha1, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256, Sha3_224, Sha3_256, Sha3_384, Sha3_512];
    for key in keys() {
        let public = VerifyingKey::from_der(&key.public_der().unwrap()).unwrap();
        assert_eq!((public.kind(), public.bits()), (key.kind(), key.bits()));
        let digests = if key.kind() == KeyKind::Ed25519 { vec![None] } else { digests.map(Some).to_vec() };
        for digest in digests {
            let mut signature = key.sign(b"message", digest).unwrap_or_else(|| panic!("{:?} {digest:?}", key.kind()));
            assert!(public.verify(b"message", &signature, digest, Padding::Default), "{digest:?}");
            assert!(!public.verify(b"massage", &signature, digest, Padding::Default), "{digest:?}");
            signature[9] ^= 1;
            assert!(!public.verify(b"message", &signature, digest, Padding::Default), "{digest:?}");
        }
    }
}

#[test]
fn keys_are_encoded_and_parsed() {
    for key in keys() {
        let public = key.public_der();
        let plain = PrivateKey::from_der(&key.to_der().unwrap()).unwrap();
        assert_eq!(plain.public_der(), public);
    }
}

#[test]
fn invalid_input_is_refused() {
    for bytes in [&b""[..], b"\x30", b"\x30\x80", &[0x30; 300], &vec![0x30; MAX_INPUT + 1]] {
        assert!(PrivateKey::from_der(bytes).is_none());
        assert!(VerifyingKey::from_der(bytes).is_none());
    }
    assert!(PrivateKey::generate_rsa(0).is_none());
}
