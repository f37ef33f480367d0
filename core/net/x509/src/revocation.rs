//! Certificate revocation lists.

use brine_rsa::Digest;
use brine_value::{Map, Value, map};

use crate::der;
use crate::extension::Extension;
use crate::keys::{PrivateKey, PublicKey};
use crate::name::Name;
use crate::signature::{self, Signed};
use crate::{Result, X509Error, invalid, pem, pretty_hex, show};

const LABEL: &str = "X509 CRL";

/// A revoked certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The serial number, without leading zeros.
    pub serial: Vec<u8>,
    /// The time of the revocation, in seconds since 1970.
    pub date: i64,
    /// The extensions of the entry.
    pub extensions: Vec<Extension>,
}

/// A revocation list.
#[derive(Clone, Debug)]
pub struct RevocationList {
    signed: Signed,
    /// The issuer.
    pub issuer: Name,
    /// The time at which the list was issued, in seconds since 1970.
    pub last_update: i64,
    /// The time at which the next list is due.
    pub next_update: Option<i64>,
    /// The revoked certificates.
    pub entries: Vec<Entry>,
    /// The extensions.
    pub extensions: Vec<Extension>,
}

impl RevocationList {
    /// Parses a list in DER.
    pub fn from_der(bytes: &[u8]) -> Option<RevocationList> {
        let signed = Signed::parse(bytes)?;
        let body = signed.body.clone();
        let mut inside = der::only(&body, der::SEQUENCE)?.inside();
        inside.optional(der::INTEGER);
        inside.expect(der::SEQUENCE)?;
        let issuer = Name::read(&inside.next()?)?;
        let last_update = inside.next()?.time()?;
        let next_update = inside.optional(der::UTC_TIME).or_else(|| inside.optional(der::GENERALIZED_TIME));
        let next_update = next_update.map_or(Some(None), |item| item.time().map(Some))?;
        let mut entries = Vec::new();
        if let Some(list) = inside.optional(der::SEQUENCE) {
            for one in list.inside().all()? {
                let mut inside = one.inside();
                let serial = inside.expect(der::INTEGER)?.unsigned()?.to_vec();
                let date = inside.next()?.time()?;
                let extensions =
                    inside.optional(der::SEQUENCE).map_or(Some(Vec::new()), |all| Extension::read_all(&all))?;
                entries.push(Entry { serial, date, extensions });
            }
        }
        let extensions = match inside.optional(der::explicit(0)) {
            Some(item) => Extension::read_all(&item.inside().expect(der::SEQUENCE)?)?,
            None => Vec::new(),
        };
        Some(RevocationList { signed, issuer, last_update, next_update, entries, extensions })
    }

    /// Parses a list in PEM or DER. Also returns whether it is PEM.
    pub fn load(bytes: &[u8]) -> Result<(RevocationList, bool)> {
        if pem::is_pem(bytes) {
            let list = pem::first(bytes, &[LABEL]).and_then(|der| Self::from_der(&der));
            let unreadable = X509Error::Unreadable("Could not load PEM-encoded certificate revocation list.");
            return list.map(|list| (list, true)).ok_or(unreadable);
        }
        let unreadable = X509Error::Unreadable("Could not load DER-encoded certificate revocation list.");
        Self::from_der(bytes).map(|list| (list, false)).ok_or(unreadable)
    }

    /// Returns the list in DER.
    pub fn der(&self) -> &[u8] {
        &self.signed.whole
    }

    /// Returns the list in PEM.
    pub fn to_pem(&self) -> String {
        pem::encode(LABEL, self.der())
    }

    /// Whether the list was signed with this key.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        self.signed.is_signed_by(key)
    }

    /// Returns the hash function of the signature; `None` for Ed25519.
    pub fn digest(&self) -> Option<Digest> {
        self.signed.digest()
    }

    /// Returns the number of the list from its extension `cRLNumber`.
    pub fn number(&self) -> Option<i64> {
        let extension = self.extensions.iter().find(|one| one.oid == "2.5.29.20")?;
        der::only(&extension.value, der::INTEGER)?.small()
    }

    /// Returns all details, as `x509.read_crl` returns them.
    pub fn details(&self) -> Map {
        let mut entries = Map::new();
        for entry in &self.entries {
            let fields = map! {
                "revocation_date" => der::show_time(entry.date),
                "extensions" => show::extensions(&entry.extensions, true),
            };
            entries.insert(pretty_hex(&entry.serial).replace(':', "").into(), fields.into());
        }
        map! {
            "issuer" => self.issuer.attributes(),
            "last_update" => der::show_time(self.last_update),
            "next_update" => self.next_update.map(der::show_time),
            "revoked_certificates" => entries,
            "extensions" => show::extensions(&self.extensions, false),
            "signature_algorithm" => self.signed.algorithm(),
        }
    }
}

/// The content of a list that is to be signed.
pub struct RevocationPlan {
    /// The issuer.
    pub issuer: Name,
    /// The time at which the list is issued, in seconds since 1970.
    pub last_update: i64,
    /// The time at which the next list is due.
    pub next_update: i64,
    /// The revoked certificates.
    pub entries: Vec<Entry>,
    /// The extensions.
    pub extensions: Vec<Extension>,
}

impl RevocationPlan {
    /// Signs the list.
    pub fn sign(&self, key: &PrivateKey, digest: Digest) -> Result<RevocationList> {
        let (algorithm, digest) = signature::algorithm(key, digest)?;
        let time = |seconds: i64| der::time(seconds).ok_or_else(|| invalid("a time is invalid: it is after 9999"));
        let extensions = |all: &[Extension]| match all {
            [] => Vec::new(),
            all => der::item(der::SEQUENCE, &all.iter().flat_map(Extension::to_der).collect::<Vec<_>>()),
        };
        let entry = |entry: &Entry| {
            let (serial, date) = (der::unsigned(&entry.serial), time(entry.date)?);
            Ok(der::sequence(&[&serial, &date, &extensions(&entry.extensions)]))
        };
        let entries = self.entries.iter().map(entry).collect::<Result<Vec<_>>>()?.concat();
        let entries = if entries.is_empty() { entries } else { der::item(der::SEQUENCE, &entries) };
        let own = extensions(&self.extensions);
        let own = if own.is_empty() { own } else { der::item(der::explicit(0), &own) };
        let body = der::sequence(&[
            &der::number(der::INTEGER, 1),
            &algorithm,
            self.issuer.der(),
            &time(self.last_update)?,
            &time(self.next_update)?,
            &entries,
            &own,
        ]);
        let whole = Signed::create(&body, &algorithm, key, digest)?;
        RevocationList::from_der(&whole).ok_or_else(|| invalid("building the certificate revocation list failed"))
    }
}

/// Returns the entries that are added, changed and removed, as Salt reports them; `None` if there is no difference.
pub fn entry_changes(current: &[Entry], desired: &[Entry]) -> Option<Map> {
    let find = |all: &[Entry], serial: &[u8]| all.iter().find(|one| one.serial == serial).cloned();
    let name = |entry: &Entry| Value::from(pretty_hex(&entry.serial));
    let added = desired.iter().filter(|one| find(current, &one.serial).is_none()).map(name).collect::<Vec<_>>();
    let is_changed =
        |one: &&Entry| find(current, &one.serial).is_some_and(|previous| previous.extensions != one.extensions);
    let changed = desired.iter().filter(is_changed).map(name).collect::<Vec<_>>();
    let removed = current.iter().filter(|one| find(desired, &one.serial).is_none()).map(name).collect::<Vec<_>>();
    let none = added.is_empty() && changed.is_empty() && removed.is_empty();
    (!none).then(|| map! {"added" => added, "changed" => changed, "removed" => removed})
}
