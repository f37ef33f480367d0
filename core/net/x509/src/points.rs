//! Extensions with a complex structure: distribution points and policies.

use brine_value::Value;

use crate::arguments::{count, flag, notation, reason};
use crate::name::relative;
use crate::{Result, der, general_name, invalid};

/// Converts a string or a list of strings to a list.
fn listed(value: &Value) -> Vec<String> {
    match value {
        Value::Nil => Vec::new(),
        Value::List(list) => list.iter().map(ToString::to_string).collect(),
        one => vec![one.to_string()],
    }
}

fn names(value: &Value) -> Result<Vec<u8>> {
    let names = listed(value).iter().map(|text| general_name::build_text(text)).collect::<Result<Vec<_>>>()?;
    Ok(names.concat())
}

/// Encodes reasons as the bit string ReasonFlags (RFC 5280): the numbers 1 to 6 of CRLReason are the same bits, 9 and
/// 10 are bits 7 and 8.
fn reasons(tag: u8, value: &Value) -> Result<Vec<u8>> {
    let mut flags = [false; 9];
    for word in listed(value) {
        let bit = match reason(&word)? {
            number @ 1..=6 => number as usize,
            9 => 7,
            10 => 8,
            _ => return Err(invalid(format!("'{word}' is invalid: it is no reason of a distribution point"))),
        };
        flags[bit] = true;
    }
    Ok(der::flags(tag, &flags))
}

/// Encodes a distribution point name: full names, or a name relative to the issuer.
fn distribution_point_name(fullname: Option<&Value>, relativename: Option<&Value>) -> Result<Vec<u8>> {
    let fullname = fullname.filter(|value| value.is_truthy());
    let relativename = relativename.filter(|value| value.is_truthy());
    let inner = match (fullname, relativename) {
        (Some(_), Some(_)) => {
            return Err(invalid("You cannot provide both full_name and relative_name, at least one must be None."));
        }
        (Some(names_of), None) => der::item(der::explicit(0), &names(names_of)?),
        (None, Some(name)) => der::item(der::explicit(1), &relative(&name.to_string())?),
        (None, None) => return Ok(Vec::new()),
    };
    Ok(der::item(der::explicit(0), &inner))
}

/// Builds `crlDistributionPoints` and `freshestCRL`.
pub(crate) fn distribution_points(extension: &str, value: &Value) -> Result<Vec<u8>> {
    let points = match value {
        Value::Str(text) => {
            let items = notation(text).0.into_iter();
            items.map(|(kind, value)| Value::from(format!("{kind}:{}", value.unwrap_or_default()))).collect()
        }
        Value::List(list) => list.iter().filter(|item| item.as_str() != Some("critical")).cloned().collect::<Vec<_>>(),
        _ => return Err(invalid(format!("{extension} is invalid: expected a string or a list"))),
    };
    let mut out = Vec::new();
    for point in &points {
        let content = match point {
            Value::Map(map) => {
                let get = |key: &str| map.get(&Value::from(key)).filter(|value| value.is_truthy());
                let mut content = distribution_point_name(get("fullname"), get("relativename"))?;
                if let Some(list) = get("reasons") {
                    content.extend(reasons(der::context(1), list)?);
                }
                if let Some(issuer) = get("crlissuer") {
                    content.extend(der::item(der::explicit(2), &names(issuer)?));
                }
                content
            }
            name => distribution_point_name(Some(name), None)?,
        };
        if content.is_empty() {
            return Err(invalid("Either full_name, relative_name or crl_issuer must be provided."));
        }
        out.extend(der::item(der::SEQUENCE, &content));
    }
    Ok(der::item(der::SEQUENCE, &out))
}

/// Builds `issuingDistributionPoint`.
pub(crate) fn issuing(value: &Value) -> Result<Vec<u8>> {
    if value.as_map().is_none() {
        return Err(invalid("issuingDistributionPoint must be a dictionary"));
    }
    let mut out = distribution_point_name(value.get("fullname"), value.get("relativename"))?;
    let boolean = |tag, key| if flag(value, key) { der::item(der::context(tag), &[0xff]) } else { Vec::new() };
    let only = ["onlyuser", "onlyCA", "onlyAA"].iter().filter(|key| flag(value, key)).count();
    if only > 1 {
        return Err(invalid("issuingDistributionPoint is invalid: expected one of onlyuser, onlyCA, onlyAA"));
    }
    out.extend(boolean(1, "onlyuser"));
    out.extend(boolean(2, "onlyCA"));
    if let Some(list) = value.get("onlysomereasons").filter(|list| list.is_truthy()) {
        out.extend(reasons(der::context(3), list)?);
    }
    out.extend(boolean(4, "indirectCRL"));
    out.extend(boolean(5, "onlyAA"));
    if out.is_empty() {
        return Err(invalid(
            "Cannot create empty extension: if only_contains_user_certs, only_contains_ca_certs, indirect_crl, and only_contains_attribute_certs are all False, then either full_name, relative_name, or only_some_reasons must have a value.",
        ));
    }
    Ok(der::item(der::SEQUENCE, &out))
}

const STATEMENT: &str = "1.3.6.1.5.5.7.2.1";
const NOTICE: &str = "1.3.6.1.5.5.7.2.2";

/// Builds `certificatePolicies`.
pub(crate) fn policies(value: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match value {
        Value::Str(text) => {
            for policy in text.split(',').map(str::trim).filter(|policy| *policy != "critical") {
                let wrong = |_| invalid("certificatePolicies defined as string must be a comma-separated list of OID.");
                out.extend(der::item(der::SEQUENCE, &general_name::oid(policy).map_err(wrong)?));
            }
        }
        Value::Map(map) => {
            for (policy, qualifiers) in map.iter().filter(|(policy, _)| policy.as_str() != Some("critical")) {
                let list = match qualifiers {
                    Value::List(list) => list.clone(),
                    Value::Nil => Vec::new(),
                    one => vec![one.clone()],
                };
                let qualifiers = list.iter().map(qualifier).collect::<Result<Vec<_>>>()?.concat();
                let qualifiers = if qualifiers.is_empty() { Vec::new() } else { der::item(der::SEQUENCE, &qualifiers) };
                out.extend(der::sequence(&[&general_name::oid(&policy.to_string())?, &qualifiers]));
            }
        }
        _ => return Err(invalid("certificatePolicies is invalid: expected a string or a mapping")),
    }
    Ok(der::item(der::SEQUENCE, &out))
}

fn qualifier(value: &Value) -> Result<Vec<u8>> {
    if let Value::Str(statement) = value {
        let statement = der::item(der::IA5_STRING, statement.as_bytes());
        return Ok(der::sequence(&[&general_name::oid(STATEMENT)?, &statement]));
    }
    let utf8 = |value: &Value| der::item(der::UTF8_STRING, value.to_string().as_bytes());
    let mut notice = Vec::new();
    let numbers = value.get("noticeNumbers").filter(|numbers| numbers.is_truthy());
    if let Some(numbers) = numbers {
        let encoded = numbers
            .as_list()
            .unwrap_or_default()
            .iter()
            .map(|number| Ok(der::number(der::INTEGER, count("noticeNumbers", number)?)));
        let encoded = der::item(der::SEQUENCE, &encoded.collect::<Result<Vec<_>>>()?.concat());
        let organization = value.get("organization").map_or_else(|| utf8(&"".into()), utf8);
        notice.extend(der::sequence(&[&organization, &encoded]));
    }
    if let Some(text) = value.get("text").filter(|text| text.is_truthy()) {
        notice.extend(utf8(text));
    }
    Ok(der::sequence(&[&general_name::oid(NOTICE)?, &der::item(der::SEQUENCE, &notice)]))
}
