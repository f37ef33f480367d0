//! What `zypper --xmlout` writes, as far as it is looked at: the elements in their order, with their attributes and the
//! text behind them. Not a reader of any XML.

/// An element.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: String,
    attributes: Vec<(String, String)>,
    /// The text up to the next element.
    pub text: String,
}

impl Element {
    /// An attribute; an empty text if it is not there.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// The elements of a text.
pub fn elements(text: &str) -> Vec<Element> {
    let mut pieces = text.split('<');
    // What stands before the first element is no element.
    pieces.next();
    pieces.filter(|piece| !piece.starts_with(['/', '?', '!'])).filter_map(element).collect()
}

/// The elements of a name.
pub fn named<'e>(elements: &'e [Element], name: &'e str) -> impl Iterator<Item = &'e Element> {
    elements.iter().filter(move |element| element.name == name)
}

fn element(piece: &str) -> Option<Element> {
    let (tag, text) = piece.split_once('>')?;
    let tag = tag.trim_end_matches('/').trim();
    let (name, mut rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
    let mut attributes = Vec::new();
    while let Some((key, after)) = rest.split_once('=') {
        let Some(quote) = after.chars().next().filter(|letter| ['"', '\''].contains(letter)) else { break };
        let Some((value, after)) = after.get(1..).and_then(|after| after.split_once(quote)) else { break };
        attributes.push((key.trim().to_owned(), plain(value)));
        rest = after;
    }
    Some(Element { name: name.to_owned(), attributes, text: plain(text) })
}

/// A text with its entities replaced.
fn plain(text: &str) -> String {
    let replaced = [("&lt;", "<"), ("&gt;", ">"), ("&apos;", "'"), ("&quot;", "\"")];
    let text = replaced.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter));
    // Last, so that nothing is replaced twice.
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_are_read() {
        let text = "<?xml version='1.0'?>\n<stream>\n<message type=\"info\">Name of &apos;case&apos; &amp;lt; set</message>\n\
                    <solvable status='installed' name=\"brine-one\" edition=\"2:1.0-1\"/>\n</stream>";
        let found = elements(text);
        let names: Vec<&str> = found.iter().map(|element| element.name.as_str()).collect();
        assert_eq!(names, ["stream", "message", "solvable"]);
        assert_eq!(found[1].text, "Name of 'case' &lt; set");
        assert_eq!((found[1].attribute("type"), found[1].attribute("none")), ("info", ""));
        assert_eq!((found[2].attribute("name"), found[2].attribute("edition")), ("brine-one", "2:1.0-1"));
        assert_eq!(named(&found, "solvable").count(), 1);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[<>/='\"a&; é]{0,40}") {
            elements(&text);
        }
    }
}
