//! `urlize`: converts addresses in text to HTML links.

use std::sync::LazyLock;

use brine_value::{Value, python};
use minijinja::value::Value as JinjaValue;
use minijinja::{Environment, Error};
use regex::Regex;

use super::super::data::{escape, raise, refuse_undefined, text};
use super::{Args, Options};

/// Matches a web address, with or without a scheme.
static WEB: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = r"(?:https?://|www\.)(?:(?:[\w%-]+\.)+)?(?:[a-z]{2,63}|xn--[\w%]{2,59})";
    let bare_domain = r"(?:[\w%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)";
    let address = r"https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[(?:[\da-f]{0,4}:){2}(?:[\da-f]{0,4}:?){1,6}\])";
    Regex::new(&format!(r"(?i)^(?:{name}|{bare_domain}|{address})(?::\d{{1,5}})?(?:[/?#]\S*)?$")).ok()
});

/// Matches a mail address.
static MAIL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\S+@\w[\w.-]*\.\w+$").ok());

fn is(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Brackets, plain and escaped for HTML.
const PAIRS: [(&str, &str); 3] = [("(", ")"), ("<", ">"), ("&lt;", "&gt;")];

/// The settings of links.
#[derive(Debug, Default)]
struct Links {
    /// The maximum length of the displayed address.
    limit: Option<usize>,
    /// The attributes `rel` and `target`.
    attributes: String,
    /// Further schemes of addresses.
    schemes: Vec<String>,
}

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_filter("urlize", |value: JinjaValue, args: Args| -> Result<String, Error> {
        refuse_undefined(&value)?;
        let links = Links::from_options(&Options::new(&args)?)?;
        let text = if value.is_safe() { text(&value) } else { escape(&text(&value)) };
        Ok(links.linkify(&text))
    });
}

impl Links {
    /// `urlize(trim_url_limit=None, nofollow=False, target=None, rel=None, extra_schemes=None)`.
    fn from_options(options: &Options) -> Result<Self, Error> {
        let text = |index, name| options.get(index, name).filter(Value::is_truthy).map(|value| value.to_string());
        let mut kinds: Vec<String> = text(3, "rel").unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        kinds.push("noopener".to_owned());
        kinds.extend(options.flag(1, "nofollow", false).then(|| "nofollow".to_owned()));
        kinds.sort();
        kinds.dedup();
        let mut attributes = format!(" rel=\"{}\"", escape(&kinds.join(" ")));
        if let Some(target) = text(2, "target") {
            attributes += &format!(" target=\"{}\"", escape(&target));
        }
        let schemes = options.get(4, "extra_schemes").unwrap_or_default();
        let schemes: Vec<String> = schemes.as_list().unwrap_or_default().iter().map(ToString::to_string).collect();
        if let Some(invalid) = schemes.iter().find(|scheme| !is_scheme(scheme)) {
            let quoted = python::repr(&invalid.as_str().into());
            return Err(raise(format_args!("{quoted} is not a valid URI scheme prefix.")));
        }
        let limit = options.get(0, "trim_url_limit").and_then(|limit| limit.as_i64());
        Ok(Links { limit: limit.map(|limit| usize::try_from(limit).unwrap_or(0)), attributes, schemes })
    }

    /// Converts addresses in HTML text to links.
    fn linkify(&self, text: &str) -> String {
        let mut out = String::new();
        for part in text.split_inclusive(char::is_whitespace) {
            let word = part.trim_end();
            let (before, address, behind) = bare(word);
            out += before;
            out += &self.link(address).unwrap_or_else(|| address.to_owned());
            out += behind;
            out += &part[word.len()..];
        }
        out
    }

    fn link(&self, address: &str) -> Option<String> {
        let attributes = &self.attributes;
        if is(&WEB, address) {
            let has_scheme = address.starts_with("https://") || address.starts_with("http://");
            let scheme = if has_scheme { "" } else { "https://" };
            return Some(format!("<a href=\"{scheme}{address}\"{attributes}>{}</a>", self.label(address)));
        }
        if let Some(mail) = address.strip_prefix("mailto:").filter(|mail| is(&MAIL, mail)) {
            return Some(format!("<a href=\"{address}\">{mail}</a>"));
        }
        let may_be_mail = !address.starts_with("www.") && !address.starts_with('@') && !address.contains(':');
        if may_be_mail && is(&MAIL, address) {
            return Some(format!("<a href=\"mailto:{address}\">{address}</a>"));
        }
        let begins = |scheme: &&String| address.starts_with(*scheme) && address != *scheme;
        self.schemes.iter().find(begins).map(|_| format!("<a href=\"{address}\"{attributes}>{address}</a>"))
    }

    /// Returns the displayed part of an address.
    fn label(&self, address: &str) -> String {
        match self.limit.and_then(|limit| address.char_indices().nth(limit)) {
            Some((end, _)) => format!("{}...", &address[..end]),
            None => address.to_owned(),
        }
    }
}

/// Whether this is a scheme such as `tel:` or `irc://`.
fn is_scheme(text: &str) -> bool {
    let name = text.strip_suffix("//").or(text.strip_suffix('/')).unwrap_or(text).strip_suffix(':');
    let fits = |c: char| c == '_' || c.is_alphanumeric() || ".+-".contains(c);
    name.is_some_and(|name| name.chars().count() >= 2 && name.chars().all(fits))
}

/// Splits a word into leading punctuation, core, and trailing punctuation.
fn bare(word: &str) -> (&str, &str, &str) {
    let opens = ["(", "<", "&lt;"];
    let mut rest = word;
    while let Some(inner) = opens.iter().find_map(|sign| rest.strip_prefix(sign)) {
        rest = inner;
    }
    let start = word.len() - rest.len();
    let mut inner = rest;
    while let Some(shorter) = [")", ">", ".", ",", "&gt;"].iter().find_map(|sign| inner.strip_suffix(sign)) {
        inner = shorter;
    }
    let mut end = start + inner.len();
    // Brackets that are opened in the address are closed in it.
    for (opening, closing) in PAIRS {
        let count = |sign: &str| word[start..end].matches(sign).count();
        let opened = count(opening);
        if opened <= count(closing) {
            continue;
        }
        for _ in 0..opened {
            let Some(at) = word[end..].find(closing) else { break };
            end += at + closing.len();
        }
    }
    (&word[..start], &word[start..end], &word[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_links() {
        let links = Links { schemes: vec!["tel:".to_owned()], limit: Some(12), ..Links::default() };
        for (text, expected) in [
            ("a (http://x.com), b", "a (<a href=\"http://x.com\">http://x.com</a>), b"),
            ("www.foo.org.", "<a href=\"https://www.foo.org\">www.foo.org</a>."),
            ("foo.com\tfoo.bar x.com", "<a href=\"https://foo.com\">foo.com</a>\tfoo.bar x.com"),
            ("http://x.com/a_(b)", "<a href=\"http://x.com/a_(b)\">http://x.com...</a>"),
            (
                "a@b.de  @a.b.de mailto:c@d.org",
                "<a href=\"mailto:a@b.de\">a@b.de</a>  @a.b.de <a href=\"mailto:c@d.org\">c@d.org</a>",
            ),
            (
                "https://[::1]/ tel:5 tel:",
                "<a href=\"https://[::1]/\">https://[::1...</a> <a href=\"tel:5\">tel:5</a> tel:",
            ),
        ] {
            assert_eq!(links.linkify(text), expected, "{text}");
        }
    }
}
