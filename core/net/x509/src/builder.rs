//! Builds extensions from arguments in OpenSSL's notation, or from lists and mappings.

use brine_value::Value;

use crate::arguments::{count, expected, flag, has, names, notation, reason};
use crate::certificate::Certificate;
use crate::extension::Extension;
use crate::keys::PublicKey;
use crate::known::{ACCESS, KEY_USAGES, USAGES, named};
use crate::pkcs8::hex;
use crate::{Result, der, general_name, invalid, points};

/// The keys and certificates that extensions refer to.
#[derive(Default)]
pub struct Issuer<'a> {
    /// The public key of the subject.
    pub subject: Option<&'a PublicKey>,
    /// The certificate of the authority.
    pub certificate: Option<&'a Certificate>,
    /// The public key of the authority, if it has no certificate yet.
    pub key: Option<&'a PublicKey>,
}

impl Extension {
    /// Builds an extension from its argument.
    pub fn build(name: &str, value: &Value, issuer: &Issuer<'_>) -> Result<Extension> {
        let entry = named(name).ok_or_else(|| invalid(format!("Unknown extension {name}")))?;
        let mut critical = match value {
            Value::Map(map) if map.contains_key(&Value::from("critical")) => flag(value, "critical"),
            Value::Str(text) => text.starts_with("critical"),
            other => has(other, "critical"),
        };
        let value = match name {
            "basicConstraints" => basic_constraints(value)?,
            "keyUsage" => {
                critical = critical || has(value, "critical");
                key_usage(value)?
            }
            "extendedKeyUsage" => extended_key_usage(value)?,
            "subjectKeyIdentifier" => {
                not_critical(name, value)?;
                subject_key_identifier(value, issuer)?
            }
            "authorityKeyIdentifier" => {
                not_critical(name, value)?;
                authority_key_identifier(value, issuer)?
            }
            "subjectAltName" => der::item(der::SEQUENCE, &general_name::build_all(&names(name, value)?)?),
            "issuerAltName" | "certificateIssuer" => issuer_names(name, value, issuer)?,
            "authorityInfoAccess" => {
                critical = false;
                authority_info_access(value)?
            }
            "crlDistributionPoints" => points::distribution_points(name, value)?,
            "freshestCRL" => {
                critical = false;
                points::distribution_points(name, value)?
            }
            "issuingDistributionPoint" => points::issuing(value)?,
            "certificatePolicies" => points::policies(value)?,
            "policyConstraints" => policy_constraints(value)?,
            "inhibitAnyPolicy" => match value {
                Value::Str(text) => {
                    let (items, _) = notation(text);
                    let number = items.first().map(|(number, _)| number.as_str()).unwrap_or_default();
                    der::number(der::INTEGER, count(name, &number.into())?)
                }
                Value::Map(_) => {
                    let missing = || invalid("Undefined required key for inhibitAnyPolicy: 'value'");
                    der::number(der::INTEGER, count(name, value.get("value").ok_or_else(missing)?)?)
                }
                number => der::number(der::INTEGER, count(name, number)?),
            },
            "nameConstraints" => name_constraints(value)?,
            "noCheck" => {
                critical = value.to_string().contains("critical");
                der::item(der::NULL, &[])
            }
            "tlsfeature" => tls_feature(value)?,
            "cRLNumber" => {
                critical = false;
                let wrong = |_| invalid("cRLNumber must be an integer and must be marked as non-critical");
                der::number(der::INTEGER, count(name, value).map_err(wrong)?)
            }
            "deltaCRLIndicator" => {
                let text = value.to_string();
                critical = text.contains("critical");
                let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
                let numbers = numbers.collect::<Vec<_>>();
                let [number] = numbers[..] else {
                    return Err(invalid("deltaCRLIndicator must contain a single integer pointing to a cRLNumber"));
                };
                der::number(der::INTEGER, count(name, &number.into())?)
            }
            "CRLReason" => {
                let word = match value {
                    Value::Str(text) => notation(text).0.into_iter().next().map(|(word, _)| word),
                    Value::List(list) => list.iter().map(ToString::to_string).find(|word| word != "critical"),
                    _ => None,
                };
                der::number(der::ENUMERATED, reason(&word.unwrap_or_default())?)
            }
            "invalidityDate" => {
                let text = value.as_str().ok_or_else(|| invalid("invalidityDate must be a string"))?;
                let text = if critical { text.split_once(' ').map_or("", |(_, date)| date) } else { text };
                let date = der::parse_time(text).and_then(der::long_time);
                date.ok_or_else(|| expected(name, "a time such as '2026-11-25 08:00:00'"))?
            }
            _ => return Err(invalid(format!("{name} is currently not implemented."))),
        };
        Ok(Extension { oid: entry.oid.to_owned(), critical, value })
    }
}

fn not_critical(name: &str, value: &Value) -> Result<()> {
    if has(value, "critical") { Err(invalid(format!("{name} must be marked as non-critical"))) } else { Ok(()) }
}

fn basic_constraints(value: &Value) -> Result<Vec<u8>> {
    let missing = "Undefined required key for basicConstraints: 'ca'";
    let (ca, length) = match value {
        Value::Str(text) => {
            let (items, _) = notation(&text.to_lowercase());
            let get = |key: &str| items.iter().rev().find(|(name, _)| name == key).and_then(|(_, value)| value.clone());
            let ca = get("ca").ok_or_else(|| invalid("Invalid configuration for basicContraints: 'ca'"))?;
            (ca == "true", get("pathlen").map(Value::from))
        }
        Value::Map(_) => {
            let ca = value.get("ca").ok_or_else(|| invalid(missing))?;
            let ca = ca.as_bool().ok_or_else(|| invalid("ca must be a boolean value"))?;
            (ca, value.get("pathlen").filter(|length| !length.is_nil()).cloned())
        }
        _ => return Err(expected("basicConstraints", "a string or a mapping")),
    };
    if !ca && length.is_some() {
        return Err(invalid("path_length must be None when ca is False"));
    }
    let length = length.map(|length| count("pathlen", &length)).transpose()?;
    let ca = if ca { der::item(der::BOOLEAN, &[0xff]) } else { Vec::new() };
    let length = length.map(|length| der::number(der::INTEGER, length)).unwrap_or_default();
    Ok(der::sequence(&[&ca, &length]))
}

fn key_usage(value: &Value) -> Result<Vec<u8>> {
    let usages = KEY_USAGES.map(|usage| has(value, usage));
    if !usages[4] && (usages[7] || usages[8]) {
        return Err(invalid("encipher_only and decipher_only can only be true when key_agreement is true"));
    }
    Ok(der::flags(der::BIT_STRING, &usages))
}

fn extended_key_usage(value: &Value) -> Result<Vec<u8>> {
    let words = match value {
        Value::Str(text) => notation(text).0.into_iter().map(|(word, _)| word).collect(),
        Value::List(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>(),
        other => vec![other.to_string()],
    };
    let usages = words.iter().filter(|word| *word != "critical").map(|word| {
        let oid = USAGES.iter().find(|(name, _)| name == word).map(|(_, oid)| *oid);
        general_name::oid(oid.unwrap_or(word))
    });
    Ok(der::item(der::SEQUENCE, &usages.collect::<Result<Vec<_>>>()?.concat()))
}

fn subject_key_identifier(value: &Value, issuer: &Issuer<'_>) -> Result<Vec<u8>> {
    let bytes = match value {
        Value::Str(text) if text == "hash" => {
            let missing = || invalid("Cannot calculate digest for subjectKeyIdentifier: missing pubkey");
            issuer.subject.ok_or_else(missing)?.identifier()
        }
        Value::Str(text) => hex(&text.replace(':', "")).ok_or_else(|| invalid("Value must be precomputed hash"))?,
        Value::Bytes(bytes) => bytes.clone(),
        _ => return Err(invalid("Value must be a (hex-)digest or pubkey")),
    };
    Ok(der::item(der::OCTET_STRING, &bytes))
}

fn authority_key_identifier(value: &Value, issuer: &Issuer<'_>) -> Result<Vec<u8>> {
    if issuer.certificate.is_none() && issuer.key.is_none() {
        return Err(invalid("Need CA certificate or CA pubkey to calculate authorityKeyIdentifier"));
    }
    // Each of the parts `keyid` and `issuer` is absent, present, or has a value.
    let part = |name: &str| match value {
        Value::Str(text) => {
            let (items, _) = notation(text);
            items.into_iter().find(|(item, _)| item == name).map(|(_, value)| value.unwrap_or_default())
        }
        Value::Map(map) => map.get(&Value::from(name)).map(ToString::to_string),
        other => has(other, name).then(String::new),
    };
    let mut out = Vec::new();
    let keyid = part("keyid").and_then(|_| match (issuer.certificate, issuer.key) {
        (Some(certificate), _) => certificate.key_identifier(),
        (None, key) => key.map(PublicKey::identifier),
    });
    match (&keyid, part("keyid")) {
        (Some(keyid), _) => out.extend(der::item(der::context(0), keyid)),
        (None, Some(how)) if how == "always" => {
            return Err(invalid("Could not retrieve authorityKeyIdentifier keyid, but it was set to always"));
        }
        (None, _) => {}
    }
    if let Some(how) = part("issuer").filter(|how| how == "always" || keyid.is_none()) {
        match issuer.certificate {
            Some(certificate) => {
                let name = der::item(der::explicit(4), certificate.issuer.der());
                out.extend(der::item(der::explicit(1), &name));
                let serial = der::unsigned(&certificate.serial);
                let serial = der::only(&serial, der::INTEGER).map(|item| item.content).unwrap_or_default();
                out.extend(der::item(der::context(2), serial));
            }
            None if how == "always" => {
                return Err(invalid(
                    "Could not add authority_cert_issuer and authority_cert_serial_number, but was set to always.",
                ));
            }
            None => {}
        }
    }
    Ok(der::item(der::SEQUENCE, &out))
}

fn issuer_names(name: &str, value: &Value, issuer: &Issuer<'_>) -> Result<Vec<u8>> {
    let (copies, pairs): (Vec<_>, Vec<_>) =
        names(name, value)?.into_iter().partition(|(kind, value)| kind == "issuer" && value.as_str() == Some("copy"));
    let mut out = Vec::new();
    if !copies.is_empty() {
        let certificate = issuer.certificate.ok_or_else(|| invalid("Need CA certificate to copy to issuerAltName"))?;
        let names =
            certificate.extensions.iter().find(|one| Some(&one.oid[..]) == named("subjectAltName").map(|n| n.oid));
        let names = names.and_then(|one| der::only(&one.value, der::SEQUENCE));
        let missing = || invalid("No <ObjectIdentifier(oid=2.5.29.17, name=subjectAltName)> extension was found");
        out.extend(names.ok_or_else(missing)?.content);
    }
    out.extend(general_name::build_all(&pairs)?);
    Ok(der::item(der::SEQUENCE, &out))
}

fn authority_info_access(value: &Value) -> Result<Vec<u8>> {
    let pairs = match value {
        Value::Str(text) => {
            let split = |item: &str| {
                let (access, name) =
                    item.split_once(';').ok_or_else(|| expected("authorityInfoAccess", "access;name"))?;
                Ok((access.to_owned(), name.to_owned()))
            };
            let items = text.split(',').map(str::trim).filter(|item| *item != "critical");
            items.map(split).collect::<Result<Vec<_>>>()?
        }
        Value::Map(map) => map.iter().map(|(access, name)| (access.to_string(), name.to_string())).collect(),
        Value::List(list) => {
            let maps = list.iter().filter_map(Value::as_map).flatten();
            maps.map(|(access, name)| (access.to_string(), name.to_string())).collect()
        }
        _ => return Err(expected("authorityInfoAccess", "a string, list or mapping")),
    };
    let mut out = Vec::new();
    for (access, name) in pairs.iter().filter(|(access, _)| access != "critical") {
        let oid = ACCESS.iter().find(|(other, _)| other == access).map_or(&access[..], |(_, oid)| *oid);
        let oid = der::oid(oid).ok_or_else(|| invalid(format!("Unknown access OID: {access}")))?;
        out.extend(der::sequence(&[&oid, &general_name::build_text(name)?]));
    }
    Ok(der::item(der::SEQUENCE, &out))
}

fn policy_constraints(value: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (tag, name) in [(0, "requireExplicitPolicy"), (1, "inhibitPolicyMapping")] {
        let number = match value {
            Value::Str(text) => notation(text)
                .0
                .into_iter()
                .find(|(item, _)| item == name)
                .and_then(|(_, value)| value)
                .map(Value::from),
            other => other.get(name).cloned(),
        };
        if let Some(number) = number {
            out.extend(der::number(der::context(tag), count(name, &number)?));
        }
    }
    if out.is_empty() {
        return Err(invalid("At least one of require_explicit_policy and inhibit_policy_mapping must not be None"));
    }
    Ok(der::item(der::SEQUENCE, &out))
}

fn name_constraints(value: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for (tag, scope) in [(0, "permitted"), (1, "excluded")] {
        let pairs = match value {
            Value::Str(text) => {
                let items = text.split(',').filter_map(|item| item.trim().split_once(';'));
                let items = items.filter(|(kind, _)| kind.trim() == scope);
                items.map(|(_, name)| general_name::pair(name)).collect::<Result<Vec<_>>>()?
            }
            Value::Map(map) => match map.get(&Value::from(scope)) {
                Some(value) => names("nameConstraints", value)?,
                None => Vec::new(),
            },
            _ => return Err(expected("nameConstraints", "a string or a mapping")),
        };
        let subtrees =
            pairs.iter().map(|(kind, value)| Ok(der::item(der::SEQUENCE, &general_name::build(kind, value)?)));
        let subtrees = subtrees.collect::<Result<Vec<_>>>()?.concat();
        if !subtrees.is_empty() {
            out.extend(der::item(der::explicit(tag), &subtrees));
        }
    }
    if out.is_empty() {
        return Err(invalid("nameConstraints needs at least one definition"));
    }
    Ok(der::item(der::SEQUENCE, &out))
}

fn tls_feature(value: &Value) -> Result<Vec<u8>> {
    let words = match value {
        Value::Str(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
        Value::List(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>(),
        _ => return Err(expected("tlsfeature", "a string or a list")),
    };
    let mut out = Vec::new();
    for word in words.iter().filter(|word| *word != "critical") {
        out.extend(match &word[..] {
            "status_request" => der::number(der::INTEGER, 5),
            "status_request_v2" => der::number(der::INTEGER, 17),
            _ => return Err(expected("tlsfeature", "status_request or status_request_v2")),
        });
    }
    Ok(der::item(der::SEQUENCE, &out))
}
