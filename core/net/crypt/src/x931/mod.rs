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
mod tests;
