use super::*;
use crate::rsa::tests::{KEY, made_by_salt};

const DIGEST: &[u8] = b"f0ae0bb64d5d14e5ea4ce5c2f7f7a4d4";

#[test]
fn a_signature_is_byte_for_byte_that_of_salt() {
    let digest = KEY.public().recover_x931(&made_by_salt("x931_digest")).unwrap();
    assert_eq!(digest.len(), 64);
    assert_eq!(KEY.sign_x931(&digest).unwrap(), made_by_salt("x931_digest"));
    assert_eq!(KEY.sign_x931(b"salt").unwrap(), made_by_salt("x931_salt"));
    assert_eq!(KEY.public().recover_x931(&made_by_salt("x931_salt")).unwrap(), b"salt");
}

#[test]
fn data_of_every_permitted_length_is_recovered() {
    for length in [1, 2, 251, 252] {
        let data = vec![0xBB; length];
        assert_eq!(KEY.public().recover_x931(&KEY.sign_x931(&data).unwrap()).unwrap(), data, "{length}");
    }
    for length in [0, 253, 254, 255, 256, 1000] {
        assert!(matches!(KEY.sign_x931(&vec![1; length]), Err(CryptError::BadLength(_))), "{length}");
    }
}

#[test]
fn modified_or_foreign_signatures_are_refused() {
    let good = KEY.sign_x931(DIGEST).unwrap();
    let pkcs1 = KEY.sign(DIGEST, crate::SignatureAlgorithm::Pkcs1v15Sha1).unwrap();
    let mut long = good.clone();
    long.push(0);
    for bad in [&pkcs1[..], &good[1..], &long, &[0; 256], &[0xFF; 256], b""] {
        assert!(matches!(KEY.public().recover_x931(bad), Err(CryptError::BadSignature)), "{bad:?}");
    }
    for bit in (0..good.len() * 8).step_by(37) {
        let mut changed = good.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(KEY.public().recover_x931(&changed).ok().as_deref(), Some(DIGEST), "{bit}");
    }
}

#[test]
fn a_number_is_subtracted_from_the_modulus() {
    for (number, modulus, expected) in [
        (&[0, 0][..], &[1, 2][..], Some(&[1, 2][..])),
        (&[0, 3], &[1, 2], Some(&[0, 255])),
        (&[1, 255, 255], &[3, 0, 0], Some(&[1, 0, 1])),
        (&[0, 0, 1], &[1, 0, 0], Some(&[0, 255, 255])),
        (&[1, 2], &[1, 2], None),
        (&[1, 3], &[1, 2], None),
        (&[1], &[1, 2], None),
    ] {
        assert_eq!(negative(number, modulus).as_deref(), expected, "{modulus:?} - {number:?}");
    }
}

#[test]
fn only_complete_blocks_are_stripped() {
    for (block, data) in [
        (&[0x6B, 0xBB, 0xBA, 1, 0xCC][..], Some(&[1][..])),
        (&[0x6B, 0xBB, 0xBB, 0xBA, 0xBA, 0xCC, 0xCC], Some(&[0xBA, 0xCC])),
        (&[0x6B, 0xBA, 1, 0xCC], None),
        (&[0x6B, 0xBB, 0xBA, 0xCC], None),
        (&[0x6B, 0xBB, 1, 0xCC], None),
        (&[0x6B, 0xBB, 0xBA, 1, 0xCD], None),
        (&[0x6A, 0xBB, 0xBA, 1, 0xCC], None),
        (&[0x6B, 0xBB, 0xBB], None),
        (&[0x6B], None),
        (&[], None),
    ] {
        assert_eq!(strip(block), data, "{block:x?}");
    }
}
