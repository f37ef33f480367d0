//! Compares keys, signatures and encryption with the crate `rsa`.

use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPublicKey};
use rsa::pkcs8::{EncodePrivateKey, EncodePublicKey};
use rsa::traits::PublicKeyParts;
use rsa::{BoxedUint, Oaep, Pkcs1v15Sign, RsaPrivateKey, RsaPublicKey};
use sha1::{Digest, Sha1};
use sha2::Sha224;

use super::*;

fn pair() -> (Key, RsaPublicKey) {
    let key = Key::generate(2048).unwrap();
    let public = RsaPrivateKey::from_pkcs1_der(&key.to_der().unwrap()).unwrap().to_public_key();
    (key, public)
}

#[test]
fn another_implementation_agrees() {
    let (key, public) = pair();
    assert_eq!(key.size(), 256);
    let rng = &mut rand::rng();
    let sha1 = public.encrypt(rng, Oaep::<Sha1>::new(), b"brine").unwrap();
    let sha224 = public.encrypt(rng, Oaep::<Sha224>::new(), b"").unwrap();
    assert_eq!(key.decrypt_oaep(&sha1, Hash::Sha1).unwrap(), b"brine");
    assert_eq!(key.decrypt_oaep(&sha224, Hash::Sha224).unwrap(), b"");

    let (sha1, sha224) = (Sha1::digest(b"brine"), Sha224::digest(b"brine"));
    let signature = key.sign_pkcs1(&sha1, Hash::Sha1).unwrap();
    public.verify(Pkcs1v15Sign::new::<Sha1>(), &sha1, &signature).unwrap();
    let signature = key.sign_pkcs1(&sha224, Hash::Sha224).unwrap();
    public.verify(Pkcs1v15Sign::new::<Sha224>(), &sha224, &signature).unwrap();
}

#[test]
fn the_public_key_matches_the_private_one() {
    let (key, numbers) = pair();
    let public = PublicKey::from_der(numbers.to_pkcs1_der().unwrap().as_bytes()).unwrap();
    assert_eq!(public.size(), 256);
    for hash in [Hash::Sha1, Hash::Sha224] {
        let sealed = public.encrypt_oaep(b"brine", hash).unwrap();
        assert_eq!(key.decrypt_oaep(&sealed, hash).unwrap(), b"brine");
        assert_eq!(public.encrypt_oaep(&[0; 256], hash), None);
        let digest = vec![7; hash.length()];
        let mut signature = key.sign_pkcs1(&digest, hash).unwrap();
        assert!(public.verify_pkcs1(&digest, &signature, hash));
        assert!(!public.verify_pkcs1(&digest[1..], &signature, hash));
        signature[0] ^= 1;
        assert!(!public.verify_pkcs1(&digest, &signature, hash));
    }
    let signature = key.sign_block(&[1; 256]).unwrap();
    assert_eq!(public.recover_block(&signature).unwrap(), [1; 256]);
    for bad in [&[][..], &[0; 255], &[255; 256], &[0; 257]] {
        assert_eq!(public.recover_block(bad), None, "{bad:?}");
    }
    assert!(PublicKey::from_der(&[]).is_none());
}

#[test]
fn data_of_the_wrong_length_is_refused() {
    let (key, public) = pair();
    let sha1 = public.encrypt(&mut rand::rng(), Oaep::<Sha1>::new(), b"brine").unwrap();
    assert_eq!(key.decrypt_oaep(&sha1, Hash::Sha224), None);
    for bad in [&[][..], &[0; 256], &[255; 256], &sha1[1..], &[1; 300]] {
        assert_eq!(key.decrypt_oaep(bad, Hash::Sha1), None, "{bad:?}");
    }
    assert_eq!(key.sign_pkcs1(&[0; 19], Hash::Sha1), None);
    assert_eq!(key.sign_pkcs1(&[0; 20], Hash::Sha224), None);
    for bad in [&[][..], &[0; 255], &[0; 257], &[255; 256]] {
        assert_eq!(key.sign_block(bad), None, "{bad:?}");
    }
    assert_eq!(key.sign_block(&[1; 256]).unwrap().len(), 256);
}

#[test]
fn inconsistent_numbers_are_refused() {
    let der = Key::generate(2048).unwrap().to_der().unwrap();
    assert!(Key::from_der(&der).is_some());
    assert!(Key::from_der(&[]).is_none());
    assert!(Key::from_der(&der[..der.len() - 1]).is_none());
    let mut damaged = der.clone();
    damaged[100] ^= 1;
    assert!(Key::from_der(&damaged).is_none());
}

#[test]
fn every_form_of_a_key_is_parsed_without_trailing_data() {
    let (key, public) = pair();
    let (pkcs1, numbers) = (key.to_der().unwrap(), RsaPrivateKey::from_pkcs1_der(&key.to_der().unwrap()).unwrap());
    for mut der in [pkcs1.clone(), numbers.to_pkcs8_der().unwrap().as_bytes().to_vec()] {
        assert_eq!(Key::from_der(&der).unwrap().to_der().unwrap(), pkcs1);
        der.push(0);
        assert!(Key::from_der(&der).is_none());
    }
    let spki = public.to_public_key_der().unwrap().into_vec();
    for mut der in [spki.clone(), public.to_pkcs1_der().unwrap().as_bytes().to_vec()] {
        let read = PublicKey::from_der(&der).unwrap();
        assert_eq!((read.to_der().unwrap(), read.modulus()), (spki.clone(), public.n_bytes().to_vec()));
        der.push(0);
        assert!(PublicKey::from_der(&der).is_none());
    }
    assert_eq!(key.public().unwrap().to_der().unwrap(), spki);
}

#[test]
fn keys_of_other_algorithms_and_sizes_are_refused() {
    for other in [PrivateKey::generate_ec(Curve::P256).unwrap(), PrivateKey::generate_ed25519().unwrap()] {
        assert!(Key::from_der(&other.to_der().unwrap()).is_none());
        assert!(PublicKey::from_der(&other.public_der().unwrap()).is_none());
    }
    let public = |bytes: usize, exponent: u64| {
        let (n, e) = (BoxedUint::from_be_slice_vartime(&vec![0xFF; bytes]), BoxedUint::from(exponent));
        RsaPublicKey::new_unchecked(n, e).to_pkcs1_der().unwrap().as_bytes().to_vec()
    };
    for (bytes, exponent, accepted) in [
        (64, 65537, false),
        (127, 65537, false),
        (128, 65537, true),
        (1024, 65537, true),
        (1025, 65537, false),
        (2048, 65537, false),
        (256, 3, true),
        (256, 0, false),
        (256, 1, false),
        (256, 2, false),
        (256, (1 << 34) + 1, false),
    ] {
        assert_eq!(PublicKey::from_der(&public(bytes, exponent)).is_some(), accepted, "{bytes} {exponent}");
    }
}

#[test]
fn generated_keys_have_the_requested_size_and_differ() {
    let key = Key::generate(2048).unwrap();
    assert_eq!(key.size(), 256);
    assert_eq!(Key::generate(3072).unwrap().size(), 384);
    assert_ne!(Key::generate(2048).unwrap().to_der(), key.to_der());
    for bits in [0, 1023, 8193, u16::MAX] {
        assert!(Key::generate(bits).is_none(), "{bits}");
    }
}

#[test]
fn many_threads_may_use_one_key() {
    let (key, public) = pair();
    let sealed = public.encrypt(&mut rand::rng(), Oaep::<Sha1>::new(), b"brine").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(key.decrypt_oaep(&sealed, Hash::Sha1).unwrap(), b"brine");
                }
            });
        }
    });
}
