//! Formats extensions in results as Salt does.

use brine_value::{Map, Value, map};

use crate::der::{self, Item};
use crate::extension::Extension;
use crate::general_name::{show, show_all};
use crate::known::{ACCESS, AllowedIn, KEY_USAGES, KNOWN, REASONS, USAGES};
use crate::name::{show_relative, text};
use crate::pretty_hex;

/// Returns the extensions that Salt knows, by Salt's names. `entry` selects the extensions of entries of revocation
/// lists.
pub(crate) fn extensions(all: &[Extension], entry: bool) -> Map {
    let mut map = Map::new();
    for definition in KNOWN.iter().filter(|definition| (definition.place == AllowedIn::Entry) == entry) {
        if let Some(one) = all.iter().find(|one| one.oid == definition.oid) {
            let mut fields = map! {"critical" => one.critical};
            let content = fields_of(definition.name, &one.value);
            fields.extend(content.unwrap_or_else(|| map! {"value" => pretty_hex(&one.value)}));
            map.insert(definition.name.into(), fields.into());
        }
    }
    map
}

fn fields_of(name: &str, value: &[u8]) -> Option<Map> {
    let sequence = || der::only(value, der::SEQUENCE);
    Some(match name {
        "basicConstraints" => {
            let mut inside = sequence()?.inside();
            let ca = inside.optional(der::BOOLEAN).is_some_and(|flag| flag.content != [0]);
            map! {"ca" => ca, "pathlen" => inside.optional(der::INTEGER).and_then(|item| item.small())}
        }
        "keyUsage" => {
            let bits = der::only(value, der::BIT_STRING)?.content;
            let mut names = KEY_USAGES;
            names.sort_by_key(|name| name.to_lowercase());
            let bit = |name: &str| KEY_USAGES.iter().position(|other| *other == name).unwrap_or(usize::MAX);
            names.iter().map(|name| (Value::from(*name), der::flag(bits, bit(name)).into())).collect()
        }
        "extendedKeyUsage" => {
            let name = |item: &Item<'_>| {
                let oid = der::dotted(item.content)?;
                // Salt shows only the names that its library knows.
                let usage = USAGES[..8].iter().find(|(_, other)| *other == oid).map(|(usage, _)| (*usage).to_owned());
                Some(Value::from(usage.unwrap_or(oid)))
            };
            map! {"value" => sequence()?.inside().all()?.iter().map(name).collect::<Option<Vec<_>>>()?}
        }
        "subjectKeyIdentifier" => map! {"value" => pretty_hex(der::only(value, der::OCTET_STRING)?.content)},
        "authorityKeyIdentifier" => {
            let mut inside = sequence()?.inside();
            let keyid = inside.optional(der::context(0)).map(|item| pretty_hex(item.content));
            let issuer = inside.optional(der::explicit(1)).and_then(|item| show_all(item.content));
            let serial = inside.optional(der::context(2));
            let serial = serial.and_then(|item| item.unsigned()).map(pretty_hex);
            map! {"keyid" => keyid, "issuer" => issuer, "issuer_sn" => serial}
        }
        "subjectAltName" | "issuerAltName" | "certificateIssuer" => map! {"value" => show_all(sequence()?.content)?},
        "authorityInfoAccess" => {
            let access = |item: &Item<'_>| {
                let mut inside = item.inside();
                let oid = der::dotted(inside.expect(der::OID)?.content)?;
                let name = ACCESS.iter().find(|(_, other)| *other == oid).map_or(&oid[..], |(name, _)| *name);
                // As in Salt, without the type of the general name.
                let text = show(&inside.next()?);
                let location = text.split_once(':').map_or(&text[..], |(_, location)| location);
                Some(Value::from(map! {name => location}))
            };
            map! {"value" => sequence()?.inside().all()?.iter().map(access).collect::<Option<Vec<_>>>()?}
        }
        "crlDistributionPoints" | "freshestCRL" => {
            let points = sequence()?.inside().all()?;
            map! {"value" => points.iter().map(point).collect::<Option<Vec<_>>>()?}
        }
        "issuingDistributionPoint" => issuing(&sequence()?)?,
        "certificatePolicies" => {
            map! {"value" => sequence()?.inside().all()?.iter().map(policy).collect::<Option<Vec<_>>>()?}
        }
        "policyConstraints" => {
            let items = sequence()?.inside().all()?;
            let number = |tag: u8| items.iter().find(|item| item.tag == der::context(tag)).and_then(Item::small);
            map! {"inhibitPolicyMapping" => number(1), "requireExplicitPolicy" => number(0)}
        }
        "inhibitAnyPolicy" | "cRLNumber" | "deltaCRLIndicator" => {
            map! {"value" => der::only(value, der::INTEGER)?.small()?}
        }
        "nameConstraints" => {
            let items = sequence()?.inside().all()?;
            let scope = |tag: u8| -> Option<Value> {
                let Some(item) = items.iter().find(|item| item.tag == der::explicit(tag)) else {
                    return Some(Value::List(Vec::new()));
                };
                let name = |item: &Item<'_>| item.inside().next().map(|name| Value::from(show(&name)));
                item.inside().all()?.iter().map(name).collect::<Option<Vec<_>>>().map(Value::List)
            };
            map! {"excluded" => scope(1)?, "permitted" => scope(0)?}
        }
        "noCheck" => map! {"value" => true},
        "tlsfeature" => {
            let name = |item: &Item<'_>| match item.small() {
                Some(5) => Some(Value::from("status_request")),
                Some(17) => Some("status_request_v2".into()),
                other => other.map(Value::from),
            };
            map! {"value" => sequence()?.inside().all()?.iter().map(name).collect::<Option<Vec<_>>>()?}
        }
        "CRLReason" => {
            let number = der::only(value, der::ENUMERATED)?.small()?;
            map! {"value" => REASONS.iter().find(|(_, other)| i64::try_from(*other) == Ok(number))?.0}
        }
        "invalidityDate" => {
            map! {"value" => der::show_time(der::only(value, der::GENERALIZED_TIME)?.time()?)}
        }
        _ => return None,
    })
}

/// Returns the reasons in the bit string ReasonFlags, sorted by name.
fn reasons(content: &[u8]) -> Vec<Value> {
    let number = |bit: usize| match bit {
        1..=6 => Some(bit as u64),
        7 => Some(9),
        8 => Some(10),
        _ => None,
    };
    let bits = (0..9).filter(|bit| der::flag(content, *bit)).filter_map(number);
    let mut names = bits
        .filter_map(|number| REASONS.iter().find(|(_, other)| *other == number))
        .map(|(name, _)| *name)
        .collect::<Vec<_>>();
    names.sort_unstable();
    names.into_iter().map(Value::from).collect()
}

/// Returns the full names, and the relative name, of a distribution point name.
fn distribution_point_name(item: Option<Item<'_>>) -> Option<(Value, Option<String>)> {
    let Some(inner) = item else { return Some((Value::List(Vec::new()), None)) };
    let inner = inner.inside().next()?;
    if inner.tag == der::explicit(0) {
        return Some((show_all(inner.content)?, None));
    }
    Some((Value::List(Vec::new()), Some(show_relative(inner.content)?)))
}

fn point(item: &Item<'_>) -> Option<Value> {
    let mut inside = item.inside();
    let (full, relative) = distribution_point_name(inside.optional(der::explicit(0)))?;
    let why = inside.optional(der::context(1)).map(|item| reasons(item.content)).unwrap_or_default();
    let issuer =
        inside.optional(der::explicit(2)).map_or(Some(Value::List(Vec::new())), |item| show_all(item.content))?;
    Some(map! {"crlissuer" => issuer, "fullname" => full, "reasons" => why, "relativename" => relative}.into())
}

fn issuing(sequence: &Item<'_>) -> Option<Map> {
    let items = sequence.inside().all()?;
    let get = |tag: u8| items.iter().find(|item| item.tag == tag);
    let flag = |tag: u8| get(der::context(tag)).is_some_and(|item| item.content != [0]);
    let (full, relative) = distribution_point_name(get(der::explicit(0)).copied())?;
    Some(map! {
        "fullname" => full,
        "onysomereasons" => get(der::context(3)).map(|item| reasons(item.content)).unwrap_or_default(),
        "relativename" => relative,
        "onlyuser" => flag(1),
        "onlyCA" => flag(2),
        "onlyAA" => flag(5),
        "indirectCRL" => flag(4),
    })
}

fn policy(item: &Item<'_>) -> Option<Value> {
    let mut inside = item.inside();
    let oid = der::dotted(inside.expect(der::OID)?.content)?;
    let mut qualifiers = Vec::new();
    for one in inside.optional(der::SEQUENCE).map_or(Some(Vec::new()), |item| item.inside().all())? {
        let mut inside = one.inside();
        inside.expect(der::OID)?;
        let value = inside.next()?;
        if value.tag != der::SEQUENCE {
            qualifiers.push(Value::from(map! {"practice_statement" => text(&value)}));
            continue;
        }
        let mut notice = value.inside();
        let (mut organization, mut numbers) = (None, None);
        if let Some(reference) = notice.optional(der::SEQUENCE) {
            let mut inside = reference.inside();
            organization = inside.next().map(|name| text(&name));
            let all = inside.expect(der::SEQUENCE)?.inside().all()?;
            numbers = Some(all.iter().filter_map(Item::small).map(Value::from).collect::<Vec<_>>());
        }
        let explicit = notice.next().map(|item| text(&item));
        // The misspelt key is Salt's.
        let user_notice =
            map! {"organizataion" => organization, "notice_numbers" => numbers, "explicit_text" => explicit};
        qualifiers.push(user_notice.into());
    }
    Some(map! {oid => qualifiers}.into())
}
