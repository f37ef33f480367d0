//! PKCS#12: containers of a private key and certificates.

use brine_rsa::{Digest, hmac};

use crate::der::{self, Item, Reader};
use crate::keys::PrivateKey;
use crate::name::text;
use crate::pkcs8::{derive, open, random, rounds, seal, seal_compatible, wide};
use crate::{Result, X509Error, invalid};

const DATA: &str = "1.2.840.113549.1.7.1";
const ENCRYPTED: &str = "1.2.840.113549.1.7.6";
const KEY: &str = "1.2.840.113549.1.12.10.1.1";
const ENCRYPTED_KEY: &str = "1.2.840.113549.1.12.10.1.2";
const CERTIFICATE: &str = "1.2.840.113549.1.12.10.1.3";
const X509: &str = "1.2.840.113549.1.9.22.1";
const FRIENDLY_NAME: &str = "1.2.840.113549.1.9.20";
const KEY_ID: &str = "1.2.840.113549.1.9.21";
const HASHES: [(&str, Digest); 4] = [
    ("2.16.840.1.101.3.4.2.1", Digest::Sha256),
    ("1.3.14.3.2.26", Digest::Sha1),
    ("2.16.840.1.101.3.4.2.2", Digest::Sha384),
    ("2.16.840.1.101.3.4.2.3", Digest::Sha512),
];
const ROUNDS: u32 = 20_000;

/// The content of a container.
#[derive(Default)]
pub struct Container {
    /// The private key.
    pub key: Option<PrivateKey>,
    /// The certificate of the key, in DER.
    pub certificate: Option<Vec<u8>>,
    /// Other certificates, in DER.
    pub others: Vec<Vec<u8>>,
    /// The friendly name of the certificate.
    pub name: Option<String>,
}

impl Container {
    /// Encodes a container. With a password, it is encrypted; with `compatible`, using Triple DES for old readers.
    pub fn to_der(&self, password: Option<&str>, compatible: bool) -> Result<Vec<u8>> {
        self.encode(password, compatible).ok_or_else(|| invalid("encoding as pkcs12 failed"))
    }

    fn encode(&self, password: Option<&str>, compatible: bool) -> Option<Vec<u8>> {
        let protect = |data: &[u8], password: &str| {
            if compatible { seal_compatible(data, &wide(password)) } else { seal(data, password.as_bytes()) }
        };
        let id = self.certificate.as_ref().map(|certificate| Digest::Sha1.of(certificate));
        let mut attributes = Vec::new();
        if let Some(id) = &id {
            attributes.extend(attribute(KEY_ID, &der::item(der::OCTET_STRING, id))?);
        }
        if let Some(name) = &self.name {
            let wide = name.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
            attributes.extend(attribute(FRIENDLY_NAME, &der::item(der::BMP_STRING, &wide))?);
        }
        let mut bags = Vec::new();
        let own = self.certificate.iter().map(|certificate| (certificate, &attributes[..]));
        for (certificate, attributes) in own.chain(self.others.iter().map(|other| (other, &[][..]))) {
            let octets = der::item(der::OCTET_STRING, certificate);
            let value = der::sequence(&[&der::oid(X509)?, &der::item(der::explicit(0), &octets)]);
            bags.extend(bag(CERTIFICATE, &value, attributes)?);
        }
        let mut contents = Vec::new();
        if !bags.is_empty() {
            let bags = der::item(der::SEQUENCE, &bags);
            contents.extend(match password {
                Some(password) => {
                    let (algorithm, data) = protect(&bags, password)?;
                    let data = der::item(der::context(0), &data);
                    let data = der::sequence(&[&der::oid(DATA)?, &algorithm, &data]);
                    content(ENCRYPTED, &der::sequence(&[&der::number(der::INTEGER, 0), &data]))?
                }
                None => content(DATA, &der::item(der::OCTET_STRING, &bags))?,
            });
        }
        if let Some(key) = &self.key {
            let key = key.0.to_der()?;
            let bag = match password {
                Some(password) => {
                    let (algorithm, data) = protect(&key, password)?;
                    let data = der::item(der::OCTET_STRING, &data);
                    bag(ENCRYPTED_KEY, &der::sequence(&[&algorithm, &data]), &attributes)?
                }
                None => bag(KEY, &key, &attributes)?,
            };
            contents.extend(content(DATA, &der::item(der::OCTET_STRING, &der::item(der::SEQUENCE, &bag)))?);
        }
        let safe = der::item(der::SEQUENCE, &contents);
        let (oid, digest) = HASHES[usize::from(compatible)];
        let salt = random::<16>();
        let mac = mac(digest, &password.map(wide).unwrap_or_default(), &salt, ROUNDS, &safe)?;
        let algorithm = der::sequence(&[&der::oid(oid)?, &der::item(der::NULL, &[])]);
        let mac = der::sequence(&[
            &der::sequence(&[&algorithm, &der::item(der::OCTET_STRING, &mac)]),
            &der::item(der::OCTET_STRING, &salt),
            &der::number(der::INTEGER, ROUNDS.into()),
        ]);
        let safe = content(DATA, &der::item(der::OCTET_STRING, &safe))?;
        Some(der::sequence(&[&der::number(der::INTEGER, 3), &safe, &mac]))
    }

    /// Parses a container, and decrypts it with the password. `Ok(None)` if the bytes are not a container.
    pub fn open(bytes: &[u8], password: Option<&str>) -> Result<Option<Container>> {
        let Some(safe) = Safe::parse(bytes) else { return Ok(None) };
        let passwords = match password {
            Some(password) => vec![wide(password)],
            None => vec![Vec::new(), wide("")],
        };
        if !passwords.iter().any(|password| safe.is_authentic(password)) {
            return Err(X509Error::WrongPassword);
        }
        Ok(safe.read(password.unwrap_or_default()))
    }
}

fn content(oid: &str, value: &[u8]) -> Option<Vec<u8>> {
    Some(der::sequence(&[&der::oid(oid)?, &der::item(der::explicit(0), value)]))
}

fn bag(oid: &str, value: &[u8], attributes: &[u8]) -> Option<Vec<u8>> {
    let attributes = if attributes.is_empty() { Vec::new() } else { der::item(der::SET, attributes) };
    Some(der::sequence(&[&der::oid(oid)?, &der::item(der::explicit(0), value), &attributes]))
}

fn attribute(oid: &str, value: &[u8]) -> Option<Vec<u8>> {
    Some(der::sequence(&[&der::oid(oid)?, &der::item(der::SET, value)]))
}

fn mac(digest: Digest, password: &[u8], salt: &[u8], rounds: u32, data: &[u8]) -> Option<Vec<u8>> {
    let length = digest.of(b"").len();
    hmac(digest, &derive(digest, 3, password, salt, rounds, length), data)
}

/// Returns the type and the value of a ContentInfo.
fn read_content<'a>(item: &Item<'a>) -> Option<(String, Item<'a>)> {
    let mut inside = item.inside();
    let oid = der::dotted(inside.expect(der::OID)?.content)?;
    Some((oid, inside.expect(der::explicit(0))?.inside().next()?))
}

/// A parsed container, which may still be encrypted.
struct Safe<'a> {
    data: &'a [u8],
    digest: Digest,
    mac: &'a [u8],
    salt: &'a [u8],
    rounds: u32,
}

impl<'a> Safe<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut inside = der::only(bytes, der::SEQUENCE)?.inside();
        (inside.expect(der::INTEGER)?.small() == Some(3)).then_some(())?;
        let (oid, data) = read_content(&inside.expect(der::SEQUENCE)?)?;
        (oid == DATA && data.tag == der::OCTET_STRING).then_some(())?;
        let mut mac = inside.expect(der::SEQUENCE)?.inside();
        let mut info = mac.expect(der::SEQUENCE)?.inside();
        let hash = der::dotted(info.expect(der::SEQUENCE)?.inside().expect(der::OID)?.content)?;
        let digest = HASHES.iter().find(|(other, _)| *other == hash)?.1;
        let code = info.expect(der::OCTET_STRING)?.content;
        let salt = mac.expect(der::OCTET_STRING)?.content;
        let rounds = mac.optional(der::INTEGER).map_or(Some(1), |item| rounds(&item))?;
        Some(Safe { data: data.content, digest, mac: code, salt, rounds })
    }

    fn is_authentic(&self, password: &[u8]) -> bool {
        mac(self.digest, password, self.salt, self.rounds, self.data).is_some_and(|mac| mac == self.mac)
    }

    fn read(&self, password: &str) -> Option<Container> {
        let mut container = Container::default();
        let mut certificates = Vec::new();
        for one in der::only(self.data, der::SEQUENCE)?.inside().all()? {
            let (oid, value) = read_content(&one)?;
            let bags = match &oid[..] {
                DATA => value.content.to_vec(),
                ENCRYPTED => {
                    let mut inside = value.inside();
                    inside.expect(der::INTEGER)?;
                    let mut data = inside.expect(der::SEQUENCE)?.inside();
                    data.expect(der::OID)?;
                    let algorithm = data.expect(der::SEQUENCE)?;
                    open(&algorithm, data.expect(der::context(0))?.content, password)?
                }
                _ => continue,
            };
            for one in der::only(&bags, der::SEQUENCE)?.inside().all()? {
                let mut inside = one.inside();
                let oid = der::dotted(inside.expect(der::OID)?.content)?;
                let value = inside.expect(der::explicit(0))?.inside().next()?;
                let (id, name) = inside.optional(der::SET).map(|set| attributes(&set)).unwrap_or_default();
                match &oid[..] {
                    KEY => container.key = PrivateKey::from_der(value.whole),
                    ENCRYPTED_KEY => {
                        let key = crate::pkcs8::decrypt(value.whole, password)?;
                        container.key = PrivateKey::from_der(&key);
                    }
                    CERTIFICATE => {
                        let mut inside = value.inside();
                        inside.expect(der::OID)?;
                        let der = inside.expect(der::explicit(0))?.inside().expect(der::OCTET_STRING)?.content;
                        certificates.push((der.to_vec(), id, name));
                    }
                    _ => {}
                }
            }
        }
        let own = certificates.iter().position(|(_, id, _)| id.is_some() && container.key.is_some());
        if let Some(own) = own {
            let (der, _, name) = certificates.remove(own);
            (container.certificate, container.name) = (Some(der), name);
        }
        container.others = certificates.into_iter().map(|(der, ..)| der).collect();
        Some(container)
    }
}

/// Returns the key id and the friendly name.
fn attributes(set: &Item<'_>) -> (Option<Vec<u8>>, Option<String>) {
    let (mut id, mut name) = (None, None);
    for one in set.inside().all().unwrap_or_default() {
        let mut inside = one.inside();
        let oid = inside.expect(der::OID).and_then(|oid| der::dotted(oid.content));
        let value = inside.expect(der::SET).and_then(|set| Reader(set.content).next());
        match (oid.as_deref(), value) {
            (Some(KEY_ID), Some(value)) => id = Some(value.content.to_vec()),
            (Some(FRIENDLY_NAME), Some(value)) => name = Some(text(&value)),
            _ => {}
        }
    }
    (id, name)
}
