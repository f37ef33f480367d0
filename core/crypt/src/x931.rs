//! ANSI X9.31 padding, with which Salt signs a minion's proof of its key (`tok`) and the digest of the master's AES
//! key. The signed data is recovered from the signature; it is not hashed.
//!
//! A block is as long as the modulus: `6B`, then `BB` repeated, then `BA`, the data, `CC`. The smaller of the signature
//! and its negative is sent: the reader recognises it by the last four bits, which are those of `CC` in only one of the
//! two.

use rsa::BoxedUint;
use rsa::traits::PublicKeyParts;

use super::rsa::FAILED;
use super::{CryptError, PrivateKey, PublicKey};

const HEADER: u8 = 0x6B;
const FILLER: u8 = 0xBB;
const END_OF_FILLER: u8 = 0xBA;
const TRAILER: u8 = 0xCC;
/// Header, at least one filler byte, its end, and the trailer.
const OVERHEAD: usize = 4;

impl PrivateKey {
    /// Signs data, recoverable by [`PublicKey::recover_x931`]. The length is from 1 byte to 4 less than the modulus.
    pub fn sign_x931(&self, data: &[u8]) -> Result<Vec<u8>, CryptError> {
        let size = self.native.size();
        let bad_length = CryptError::BadLength(data.len());
        if data.is_empty() || data.len() + OVERHEAD > size {
            return Err(bad_length);
        }
        let mut block = vec![HEADER];
        block.resize(size - data.len() - 2, FILLER);
        block.push(END_OF_FILLER);
        block.extend_from_slice(data);
        block.push(TRAILER);

        let signature = self.native.sign_block(&block).ok_or(FAILED)?;
        let number = number(&signature, &self.numbers).ok_or(FAILED)?;
        let negative = self.numbers.n().as_ref().wrapping_sub(&number);
        Ok(bytes(&number.min(negative), size))
    }
}

impl PublicKey {
    /// Recovers the data signed by [`PrivateKey::sign_x931`] or by Salt.
    pub fn recover_x931(&self, signature: &[u8]) -> Result<Vec<u8>, CryptError> {
        let mut block = self.native.recover_block(signature).ok_or(CryptError::BadSignature)?;
        if block.last().is_none_or(|last| last & 0x0F != TRAILER & 0x0F) {
            let recovered = number(&block, &self.numbers).ok_or(CryptError::BadSignature)?;
            block = bytes(&self.numbers.n().as_ref().wrapping_sub(&recovered), self.native.size());
        }
        match strip(&block) {
            Some(data) => Ok(data.to_vec()),
            None => Err(CryptError::BadSignature),
        }
    }
}

fn strip(block: &[u8]) -> Option<&[u8]> {
    let inner = block.strip_prefix(&[HEADER])?.strip_suffix(&[TRAILER])?;
    let fillers = inner.iter().take_while(|byte| **byte == FILLER).count();
    let data = inner[fillers..].strip_prefix(&[END_OF_FILLER])?;
    (fillers > 0 && !data.is_empty()).then_some(data)
}

/// Converts bytes to a number in the modulus' width; `None` if it is not below the modulus.
fn number(bytes: &[u8], key: &impl PublicKeyParts) -> Option<BoxedUint> {
    let number = BoxedUint::from_be_slice(bytes, key.n_bits_precision()).ok()?;
    (number < *key.n().as_ref()).then_some(number)
}

/// Converts a number to as many bytes as the modulus has; drops leading zeros of a wider number.
fn bytes(number: &BoxedUint, size: usize) -> Vec<u8> {
    let wide = number.to_be_bytes();
    wide[wide.len().saturating_sub(size)..].to_vec()
}

#[cfg(test)]
mod tests {
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
    fn data_of_every_length_that_fits_comes_back() {
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
    fn blocks_are_stripped_only_if_each_part_is_there() {
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
}
