//! Formats of `strftime`, with the meaning that they have in Python on Linux in the C locale. jiff's own differ for `%c`,
//! `%x`, `%r` and `%f`, and fail for unknown directives.

use jiff::Zoned;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};

/// Formats a time as the method `strftime` of a `datetime` without a zone: `%f` are the microseconds, `%z` and `%Z` are
/// empty, and unknown directives stay as they are.
///
/// # Errors
/// The time cannot be formatted.
///
/// # Examples
/// ```
/// use jiff::civil::date;
///
/// let time = date(2002, 12, 25).at(1, 2, 3, 4_000).in_tz("UTC").unwrap();
/// assert_eq!(brine_clock::strftime("%x %f%z", &time).unwrap(), "12/25/02 000004");
/// ```
pub fn strftime(format: &str, time: &Zoned) -> Result<String, jiff::Error> {
    let (mut written, mut rest) = (String::with_capacity(format.len()), format);
    while let Some((before, directive)) = rest.split_once('%') {
        written.push_str(before);
        rest = match directive.as_bytes().first() {
            Some(b'f') => {
                written.push_str(&format!("{:06}", time.subsec_nanosecond() / 1000));
                &directive[1..]
            }
            Some(b'z' | b'Z') => &directive[1..],
            Some(b'%') => {
                written.push_str("%%");
                &directive[1..]
            }
            // Directives of jiff alone.
            Some(b'Q' | b'q' | b'N' | b'.' | b':') => {
                written.push_str("%%");
                directive
            }
            _ => {
                written.push('%');
                directive
            }
        };
    }
    written.push_str(rest);
    BrokenDownTime::from(time).to_string_with_config(&posix().lenient(true), written)
}

/// Formats a local time as `time.strftime`: `%z` and `%Z` are its zone.
///
/// # Errors
/// A directive is unknown.
pub fn strftime_in_zone(format: &str, time: &Zoned) -> Result<String, jiff::Error> {
    BrokenDownTime::from(time).to_string_with_config(&posix(), format)
}

fn posix() -> Config<PosixCustom> {
    Config::new().custom(PosixCustom::new())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn formats_are_those_of_python() {
        let time = date(2002, 12, 5).at(7, 8, 9, 12_345_678).in_tz("Europe/Berlin").unwrap();
        // Results of Python.
        for (format, expected) in [
            ("%Y-%m-%d %H:%M:%S.%f", "2002-12-05 07:08:09.012345"),
            ("%c|%x|%X|%r", "Thu Dec  5 07:08:09 2002|12/05/02|07:08:09|07:08:09 AM"),
            ("%D %F %T %R", "12/05/02 2002-12-05 07:08:09 07:08"),
            ("[%z%Z]", "[]"),
            ("%%z %%f %z%%", "%z %f %"),
            ("%a %A %b %B %h %p %P", "Thu Thursday Dec December Dec AM am"),
            ("%d %e %-d %_d %j %U %W %V %G %u %w %y %C", "05  5 5  5 339 48 48 49 2002 4 4 02 20"),
            ("%I %l %k %-H", "07  7  7 7"),
            ("%s", "1039068489"),
            ("%Q %! 100%", "%Q %! 100%"),
            ("", ""),
        ] {
            assert_eq!(strftime(format, &time).unwrap(), expected, "{format}");
        }
        assert_eq!(strftime_in_zone("%z %Z %x", &time).unwrap(), "+0100 CET 12/05/02");
        assert!(strftime_in_zone("%!", &time).is_err());
    }
}
