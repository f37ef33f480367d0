//! The names of algorithms on the wire and in configuration files.

use std::fmt;
use std::str::FromStr;

use super::CryptError;

macro_rules! names {
    ($type:ident { $($variant:ident = $name:literal),* $(,)? }) => {
        impl $type {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name on the wire and in configuration files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),*
                }
            }
        }

        impl FromStr for $type {
            type Err = CryptError;

            fn from_str(name: &str) -> Result<Self, CryptError> {
                match name {
                    $($name => Ok(Self::$variant),)*
                    // The name may come from the network: its length in errors is bounded.
                    _ => Err(CryptError::UnknownAlgorithm(name.chars().take(64).collect())),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// The encryption of session keys with an RSA key (`enc_algo`, `encryption_algorithm`). OAEP and its mask generation
/// use the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EncryptionAlgorithm {
    /// OAEP with SHA-1, Salt's default.
    #[default]
    OaepSha1,
    /// OAEP with SHA-224.
    OaepSha224,
}

names!(EncryptionAlgorithm { OaepSha1 = "OAEP-SHA1", OaepSha224 = "OAEP-SHA224" });

/// The algorithm of message signatures (`sig_algo`, `signing_algorithm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SignatureAlgorithm {
    /// PKCS#1 v1.5 with SHA-1, Salt's default.
    #[default]
    Pkcs1v15Sha1,
    /// PKCS#1 v1.5 with SHA-224.
    Pkcs1v15Sha224,
}

names!(SignatureAlgorithm { Pkcs1v15Sha1 = "PKCS1v15-SHA1", Pkcs1v15Sha224 = "PKCS1v15-SHA224" });

/// The cipher of a [`Session`](super::Session).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Cipher {
    /// Salt's cipher: AES-192-CBC with HMAC-SHA256. The default for peers that name no cipher.
    #[default]
    AesCbcHmac,
    /// AES-256-GCM, between Brine's daemons.
    Aes256Gcm,
}

names!(Cipher { AesCbcHmac = "aes-192-cbc-hmac", Aes256Gcm = "aes-256-gcm" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        assert!(EncryptionAlgorithm::ALL.iter().all(|a| a.to_string().parse::<EncryptionAlgorithm>().unwrap() == *a));
        assert!(SignatureAlgorithm::ALL.iter().all(|a| a.to_string().parse::<SignatureAlgorithm>().unwrap() == *a));
        assert!(Cipher::ALL.iter().all(|a| a.to_string().parse::<Cipher>().unwrap() == *a));
    }

    #[test]
    fn unknown_names_are_refused_and_truncated_in_the_error() {
        for name in ["", "oaep-sha1", "OAEP-SHA256", "PKCS1v15-SHA1"] {
            assert!(name.parse::<EncryptionAlgorithm>().is_err(), "{name}");
        }
        let message = "x".repeat(10_000).parse::<Cipher>().unwrap_err().to_string();
        assert!(message.len() < 200, "{message}");
    }
}
