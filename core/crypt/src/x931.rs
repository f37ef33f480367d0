//! ANSI X9.31 padding, with which Salt signs a minion's proof of its key (`tok`) and the digest of the master's AES
//! key. The signed data is recovered from the signature; it is not hashed.
//!
//! A block is as long as the modulus: `6B`, then `BB` repeated, then `BA`, the data, `CC`. The smaller of the signature
//! and its negative is sent: the reader recognises it by the last four bits, which are those of `CC` in only one of the
//! two.

use super::rsa::FAILED;
use super::{CryptError, PrivateKey, PublicKey};

const HEADER: u8 = 0x6B;
const FILLER: u8 = 0xBB;
const END_OF_FILLER: u8 = 0xBA;
const TRAILER: u8 = 0xCC;
/// The bytes of a block that are not data: the header, at least one filler byte, the end of the filler, and the
/// trailer.
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
        let negative = negative(&signature, &self.public().native.modulus()).ok_or(FAILED)?;
        Ok(signature.min(negative))
    }
}

impl PublicKey {
    /// Recovers the data signed by [`PrivateKey::sign_x931`] or by Salt.
    pub fn recover_x931(&self, signature: &[u8]) -> Result<Vec<u8>, CryptError> {
        let mut block = self.native.recover_block(signature).ok_or(CryptError::BadSignature)?;
        if block.last().is_none_or(|last| last & 0x0F != TRAILER & 0x0F) {
            block = negative(&block, &self.native.modulus()).ok_or(CryptError::BadSignature)?;
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

/// Returns the modulus minus a number, both big-endian and of the same length; `None` if the number is not below the
/// modulus.
fn negative(number: &[u8], modulus: &[u8]) -> Option<Vec<u8>> {
    if number.len() != modulus.len() || number >= modulus {
        return None;
    }
    let mut borrow = false;
    let digits = modulus.iter().zip(number).rev().map(|(from, digit)| {
        let (difference, first) = from.overflowing_sub(*digit);
        let (difference, second) = difference.overflowing_sub(borrow.into());
        borrow = first || second;
        difference
    });
    let mut difference: Vec<u8> = digits.collect();
    difference.reverse();
    Some(difference)
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
}
