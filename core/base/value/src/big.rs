//! Integers beyond 64 bits. They are parsed, formatted and passed on, without arithmetic.

use std::fmt;

use super::Value;

/// Python's limit on the number of digits of an integer.
const MAX_DIGITS: usize = 4300;

/// An integer below [`i64::MIN`] or above [`u64::MAX`], as its decimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BigInt(Box<str>);

impl BigInt {
    /// Returns the number as 128 bits, if it fits.
    pub fn as_i128(&self) -> Option<i128> {
        self.0.parse().ok()
    }

    /// Returns the nearest floating point number.
    pub fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::INFINITY)
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<i128> for Value {
    fn from(number: i128) -> Self {
        let small = i64::try_from(number).map(Value::Int).or_else(|_| u64::try_from(number).map(Value::UInt));
        small.unwrap_or_else(|_| Value::Big(BigInt(number.to_string().into())))
    }
}

impl Value {
    /// Parses an integer in a radix up to 16; `None` if the digits are invalid or too many. A colon separates base-60
    /// digits, as in YAML's `1:30`.
    pub fn whole_number(negative: bool, digits: &str, radix: u32) -> Option<Value> {
        let mut number = Magnitude(vec![0]);
        for (index, sixtieth) in digits.split(':').enumerate() {
            if sixtieth.is_empty() {
                return None;
            }
            if index > 0 {
                number.grow(60, u64::from_str_radix(sixtieth, radix).ok()?)?;
                continue;
            }
            for digit in sixtieth.chars() {
                number.grow(radix.into(), digit.to_digit(radix)?.into())?;
            }
        }
        let text = format!("{}{number}", if negative { "-" } else { "" });
        Some(text.parse::<i128>().map_or_else(|_| Value::Big(BigInt(text.into())), Value::from))
    }
}

/// A number in limbs of eighteen decimal digits, least significant first.
struct Magnitude(Vec<u64>);

impl Magnitude {
    const LIMB: u64 = 1_000_000_000_000_000_000;

    /// Multiplies by `times` and adds `plus`; `None` if the limit is exceeded.
    fn grow(&mut self, times: u64, plus: u64) -> Option<()> {
        let mut carry = u128::from(plus);
        for limb in &mut self.0 {
            carry += u128::from(*limb) * u128::from(times);
            *limb = u64::try_from(carry % u128::from(Self::LIMB)).unwrap_or_default();
            carry /= u128::from(Self::LIMB);
        }
        if carry > 0 {
            // Less than `times`: each limb is below the base.
            self.0.push(u64::try_from(carry).ok()?);
        }
        (self.0.len() <= MAX_DIGITS / 18 + 1).then_some(())
    }
}

impl fmt::Display for Magnitude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limbs = self.0.iter().rev();
        write!(f, "{}", limbs.next().unwrap_or(&0))?;
        limbs.try_for_each(|limb| write!(f, "{limb:018}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json, msgpack};

    #[test]
    fn digits_of_any_length_are_an_integer() {
        let large = format!("1{}", "0".repeat(300));
        for (negative, digits, radix, text) in [
            (false, "0", 10, Some("0")),
            (true, "9223372036854775808", 10, Some("-9223372036854775808")),
            (true, "9223372036854775809", 10, Some("-9223372036854775809")),
            (false, "18446744073709551616", 10, Some("18446744073709551616")),
            (false, "1ffffffffffffffff", 16, Some("36893488147419103231")),
            (false, &large, 10, Some(&*large)),
            (true, "7777777777777777777777777", 8, Some("-37778931862957161709567")),
            (false, "1:30:15", 10, Some("5415")),
            (false, "18446744073709551615:0", 10, Some("1106804644422573096900")),
            (false, "", 10, None),
            (false, "1a", 10, None),
            (false, "1::2", 10, None),
            (false, &"9".repeat(5000), 10, None),
        ] {
            let number = Value::whole_number(negative, digits, radix);
            assert_eq!(number.map(|number| number.to_string()).as_deref(), text, "{digits}");
        }
        assert_eq!(Value::whole_number(true, "9223372036854775808", 10), Some(Value::Int(i64::MIN)));
        assert_eq!(Value::whole_number(false, "18446744073709551615", 10), Some(Value::UInt(u64::MAX)));
    }

    #[test]
    fn big_integers_display_as_numbers_and_are_packed_as_strings() {
        let digits = "123456789012345678901234567890123456789012345678901234567890";
        let number = Value::whole_number(false, digits, 10).unwrap();
        assert_eq!((json::to_json(&number), number.type_name(), number.is_truthy()), (digits.to_owned(), "int", true));
        assert_eq!(msgpack::unpack(&msgpack::pack(&number)), Ok(digits.into()));
    }
}
