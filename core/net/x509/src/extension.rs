//! Extensions of certificates, requests and revocation lists: their DER, and their differences.

use brine_value::{Map, Value, map};

use crate::der;
use crate::known::KNOWN;

/// An extension of a certificate, a signing request, a revocation list, or an entry of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The object identifier.
    pub oid: String,
    /// Whether a reader that does not know the extension must reject the structure.
    pub critical: bool,
    /// The value in DER.
    pub value: Vec<u8>,
}

/// Returns the name of an extension in reported changes.
fn reported(oid: &str) -> String {
    match KNOWN.iter().find(|entry| entry.oid == oid).map(|entry| entry.name) {
        Some("crlDistributionPoints") => "cRLDistributionPoints".to_owned(),
        Some("noCheck") => "OCSPNoCheck".to_owned(),
        Some("tlsfeature") => "TLSFeature".to_owned(),
        Some("CRLReason") => "cRLReason".to_owned(),
        Some(name) => name.to_owned(),
        None => oid.to_owned(),
    }
}

/// Returns the names of the extensions that are added, changed and removed, as Salt reports them; `None` if there is no
/// difference.
pub fn changes(current: &[Extension], desired: &[Extension]) -> Option<Map> {
    let find = |all: &[Extension], oid: &str| all.iter().find(|one| one.oid == oid).cloned();
    let (mut added, mut changed) = (Vec::<Value>::new(), Vec::<Value>::new());
    for one in desired {
        match find(current, &one.oid) {
            None => added.push(reported(&one.oid).into()),
            Some(previous) if previous != *one => changed.push(reported(&one.oid).into()),
            Some(_) => {}
        }
    }
    let removed = current.iter().filter(|one| find(desired, &one.oid).is_none());
    let removed = removed.map(|one| reported(&one.oid).into()).collect::<Vec<Value>>();
    let none = added.is_empty() && changed.is_empty() && removed.is_empty();
    (!none).then(|| map! {"added" => added, "changed" => changed, "removed" => removed})
}

impl Extension {
    /// Returns the extension in DER.
    pub(crate) fn to_der(&self) -> Vec<u8> {
        let oid = der::oid(&self.oid).unwrap_or_default();
        let critical = if self.critical { der::item(der::BOOLEAN, &[0xff]) } else { Vec::new() };
        der::sequence(&[&oid, &critical, &der::item(der::OCTET_STRING, &self.value)])
    }

    /// Parses the extensions in a sequence.
    pub(crate) fn read_all(sequence: &der::Item<'_>) -> Option<Vec<Extension>> {
        let read = |item: &der::Item<'_>| {
            let mut inside = item.inside();
            let oid = der::dotted(inside.expect(der::OID)?.content)?;
            let critical = inside.optional(der::BOOLEAN).is_some_and(|flag| flag.content != [0]);
            let value = inside.expect(der::OCTET_STRING)?.content.to_vec();
            Some(Extension { oid, critical, value })
        };
        sequence.inside().all()?.iter().map(read).collect()
    }
}
