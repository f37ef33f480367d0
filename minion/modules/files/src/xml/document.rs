//! An XML document with the places of its elements: an edit replaces only a text or an attribute.

use std::collections::HashSet;
use std::ops::Range;

use quick_xml::escape::unescape;
use quick_xml::events::{BytesRef, Event};
use quick_xml::reader::Reader;

/// The errors of a document or an edit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum XmlError {
    /// The document is not well-formed.
    #[error("the document is not well-formed at byte {place}: {message}")]
    Syntax {
        /// Byte offset.
        place: u64,
        /// The error.
        message: String,
    },
    /// The encoding is not supported.
    #[error("the encoding {0} is not supported: convert the file to UTF-8")]
    Encoding(String),
    /// A character cannot occur in XML.
    #[error("the value cannot be stored: XML does not permit the character U+{0:04X}")]
    Character(u32),
    /// The name of an attribute is invalid.
    #[error("'{0}' is not the name of an attribute: expected a letter or '_', then letters, digits, '.', '-' and '_'")]
    Attribute(String),
    /// The namespace has no prefix.
    #[error("the namespace '{0}' has no prefix in this document: declare one with xmlns")]
    Namespace(String),
    /// A prefix is not declared.
    #[error("the prefix '{0}' is unknown in this document: declare it with xmlns")]
    Prefix(String),
}

/// An attribute. Names are in ElementTree's form: `{namespace}name`, or `name` without a namespace.
struct Attribute {
    name: String,
    value: String,
    /// The value between its quotes.
    place: Range<usize>,
}

/// An element; elements are named by their index.
pub struct Element {
    /// The name, as that of an attribute.
    pub name: String,
    /// The parent; `None` for the root.
    pub parent: Option<usize>,
    /// The child elements.
    pub children: Vec<usize>,
    attributes: Vec<Attribute>,
    /// Prefixes that it declares, and their namespaces; the prefix of the default namespace is empty.
    declares: Vec<(String, String)>,
    /// From `<` to after `>` of the start tag.
    tag: Range<usize>,
    /// Whether it is a single tag: `<a/>`.
    is_single: bool,
    /// Where the text before the first child ends.
    text_end: usize,
    /// The character data of the element and all below it, in the document's `text`.
    inner: Range<usize>,
    /// Where the character data before the first child ends.
    own_end: usize,
}

/// A document.
pub struct Document {
    source: String,
    /// All character data, in order.
    text: String,
    /// In the order of the document: the root is the first.
    elements: Vec<Element>,
    /// Whether the declared encoding permits only ASCII to be written.
    is_ascii: bool,
}

const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";

impl Document {
    /// Parses a file.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, XmlError> {
        let source = String::from_utf8(bytes).map_err(|_| XmlError::Encoding("other than UTF-8".into()))?;
        let start = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut parser = Parser::new(&source, start);
        while parser.step()? {}
        let Parser { text, elements, is_ascii, .. } = parser;
        Ok(Document { source, text, elements, is_ascii })
    }

    /// Returns the whole file.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns an element.
    pub fn element(&self, index: usize) -> &Element {
        &self.elements[index]
    }

    /// Returns the descendants of an element in the order of the document.
    pub fn descendants(&self, index: usize) -> Range<usize> {
        let mut last = index;
        while let Some(child) = self.elements[last].children.last() {
            last = *child;
        }
        index + 1..last + 1
    }

    /// Returns the text before the first child; `None` if there is none.
    pub fn text(&self, index: usize) -> Option<&str> {
        let element = &self.elements[index];
        Some(&self.text[element.inner.start..element.own_end]).filter(|text| !text.is_empty())
    }

    /// Returns the text of an element and all below it.
    pub fn inner_text(&self, index: usize) -> &str {
        &self.text[self.elements[index].inner.clone()]
    }

    /// Returns the attributes with their values.
    pub fn attributes(&self, index: usize) -> impl Iterator<Item = (&str, &str)> {
        self.elements[index].attributes.iter().map(|attribute| (&*attribute.name, &*attribute.value))
    }

    /// Returns the document with another text before the first child of an element.
    pub fn with_text(&self, index: usize, text: &str) -> Result<String, XmlError> {
        let element = &self.elements[index];
        let text = self.escaped(text, false)?;
        if !element.is_single {
            return Ok(self.replaced(element.tag.end..element.text_end, &text));
        }
        if text.is_empty() {
            return Ok(self.source.clone());
        }
        let tag = self.source[element.tag.clone()].trim_end_matches("/>").trim_end();
        let name = tag[1..].split(is_space).next().unwrap_or_default();
        Ok(self.replaced(element.tag.clone(), &format!("{tag}>{text}</{name}>")))
    }

    /// Returns the document with another value of an attribute: `name`, `prefix:name` or `{namespace}name`.
    pub fn with_attribute(&self, index: usize, name: &str, value: &str) -> Result<String, XmlError> {
        let element = &self.elements[index];
        let value = self.escaped(value, true)?;
        let (full, written) = self.attribute_name(index, name)?;
        if let Some(attribute) = element.attributes.iter().find(|attribute| attribute.name == full) {
            return Ok(self.replaced(attribute.place.clone(), &value));
        }
        let tag = self.source[element.tag.clone()].trim_end_matches(['/', '>']).trim_end();
        let end = element.tag.start + tag.len();
        Ok(self.replaced(end..end, &format!(" {written}=\"{value}\"")))
    }

    /// Returns the name of an attribute in ElementTree's form, and as it is written at an element.
    fn attribute_name(&self, index: usize, name: &str) -> Result<(String, String), XmlError> {
        let by_namespace = name.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        if let Some((namespace, local)) = by_namespace {
            // Attributes are never in the default namespace.
            let binding = self.namespaces(index).find(|(prefix, uri)| !prefix.is_empty() && *uri == namespace);
            let (prefix, _) = binding.ok_or_else(|| XmlError::Namespace(namespace.to_owned()))?;
            return Ok((name.to_owned(), format!("{prefix}:{}", checked(local)?)));
        }
        let Some((prefix, local)) = name.split_once(':') else { return Ok((checked(name)?.into(), name.into())) };
        let binding = self.namespaces(index).find(|(candidate, _)| *candidate == checked(prefix).unwrap_or_default());
        let (_, namespace) =
            binding.filter(|_| !prefix.is_empty()).ok_or_else(|| XmlError::Prefix(prefix.to_owned()))?;
        Ok((format!("{{{namespace}}}{}", checked(local)?), name.to_owned()))
    }

    /// Returns the prefixes that apply at an element, with their namespaces.
    fn namespaces(&self, index: usize) -> impl Iterator<Item = (&str, &str)> {
        let outward = std::iter::successors(Some(&self.elements[index]), |element| {
            element.parent.map(|parent| &self.elements[parent])
        });
        let all = outward.flat_map(|element| &element.declares).map(|(prefix, uri)| (prefix.as_str(), uri.as_str()));
        let mut seen = HashSet::new();
        all.chain([("xml", XML_NAMESPACE)]).filter(move |(prefix, _)| seen.insert(*prefix))
    }

    fn replaced(&self, place: Range<usize>, text: &str) -> String {
        [&self.source[..place.start], text, &self.source[place.end..]].concat()
    }

    fn escaped(&self, text: &str, is_attribute: bool) -> Result<String, XmlError> {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '&' => out += "&amp;",
                '<' => out += "&lt;",
                '>' => out += "&gt;",
                '"' if is_attribute => out += "&quot;",
                '\'' if is_attribute => out += "&apos;",
                '\n' | '\t' if is_attribute => out += &format!("&#{};", u32::from(c)),
                // Parsers convert it to a newline.
                '\r' => out += "&#13;",
                c if (c < ' ' && !"\n\t".contains(c)) || "\u{fffe}\u{ffff}".contains(c) => {
                    return Err(XmlError::Character(c.into()));
                }
                c if self.is_ascii && !c.is_ascii() => out += &format!("&#{};", u32::from(c)),
                c => out.push(c),
            }
        }
        Ok(out)
    }
}

fn checked(name: &str) -> Result<&str, XmlError> {
    let starts = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_valid = starts && name.chars().all(|c| c.is_alphanumeric() || "._-".contains(c)) && name != "xmlns";
    if is_valid { Ok(name) } else { Err(XmlError::Attribute(name.to_owned())) }
}

/// Whether a character separates attributes.
fn is_space(c: char) -> bool {
    " \t\r\n".contains(c)
}

struct Parser<'s> {
    source: &'s str,
    start: usize,
    reader: Reader<&'s [u8]>,
    text: String,
    elements: Vec<Element>,
    /// The open elements.
    open: Vec<usize>,
    /// The declared prefixes of the open elements.
    scope: Vec<(String, String)>,
    is_ascii: bool,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, start: usize) -> Self {
        let mut reader = Reader::from_str(&source[start..]);
        reader.config_mut().check_comments = true;
        let (text, elements, open, scope) = (String::new(), Vec::new(), Vec::new(), Vec::new());
        Parser { source, start, reader, text, elements, open, scope, is_ascii: false }
    }

    fn place(&self) -> usize {
        self.start + usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    fn wrong<T>(&self, message: impl ToString) -> Result<T, XmlError> {
        Err(XmlError::Syntax { place: self.place() as u64, message: message.to_string() })
    }

    /// Parses the next part; returns whether there was one.
    fn step(&mut self) -> Result<bool, XmlError> {
        let begin = self.place();
        let event = match self.reader.read_event() {
            Ok(event) => event,
            Err(error) => return self.wrong(error),
        };
        let place = begin..self.place();
        match event {
            Event::Decl(declaration) => {
                let encoding = declaration.encoding().and_then(Result::ok).unwrap_or_default().to_ascii_lowercase();
                self.is_ascii = !matches!(&*encoding, "" | "utf-8" | "utf8");
                if self.is_ascii && !self.source.is_ascii() {
                    return Err(XmlError::Encoding(encoding));
                }
            }
            Event::Start(_) => self.start_tag(place, false)?,
            Event::Empty(_) => {
                self.start_tag(place.clone(), true)?;
                self.end_tag(place.end);
            }
            Event::End(_) => self.end_tag(place.start),
            Event::Text(text) => self.add_text(&text.xml10_content())?,
            Event::CData(text) => self.add_text(&text.xml10_content())?,
            Event::GeneralRef(reference) => match resolved(&reference) {
                Some(text) => self.add_text(&text)?,
                None => return self.wrong(format!("the entity '&{};' is not supported", &*reference)),
            },
            Event::Eof if !self.open.is_empty() => return self.wrong("an element is not closed"),
            Event::Eof if self.elements.is_empty() => return self.wrong("no element found"),
            Event::Eof => return Ok(false),
            Event::Comment(_) | Event::PI(_) | Event::DocType(_) => {}
        }
        Ok(true)
    }

    fn add_text(&mut self, text: &str) -> Result<(), XmlError> {
        if self.open.is_empty() && !text.chars().all(is_space) {
            return self.wrong("text outside of the root element");
        }
        if !self.open.is_empty() {
            self.text += text;
        }
        Ok(())
    }

    fn start_tag(&mut self, place: Range<usize>, is_single: bool) -> Result<(), XmlError> {
        let parent = self.open.last().copied();
        if parent.is_none() && !self.elements.is_empty() {
            return self.wrong("a second root element");
        }
        let (name, raw) = self.tag(place.clone())?;
        let declares: Vec<(String, String)> = raw.iter().filter_map(declared).collect();
        self.scope.extend(declares.iter().cloned());
        let mut attributes = Vec::with_capacity(raw.len() - declares.len());
        let mut names = HashSet::new();
        for (name, value, place) in raw.into_iter().filter(|attribute| declared(attribute).is_none()) {
            let name = self.expanded(name, false)?;
            if !names.insert(name.clone()) {
                return self.wrong(format!("duplicate attribute '{name}'"));
            }
            attributes.push(Attribute { name, value, place });
        }
        let index = self.elements.len();
        let (name, at) = (self.expanded(name, true)?, self.text.len());
        if let Some(parent) = parent.map(|parent| &mut self.elements[parent]) {
            if parent.children.is_empty() {
                (parent.text_end, parent.own_end) = (place.start, at);
            }
            parent.children.push(index);
        }
        self.elements.push(Element {
            name,
            parent,
            children: Vec::new(),
            attributes,
            declares,
            text_end: place.end,
            tag: place,
            is_single,
            inner: at..at,
            own_end: at,
        });
        self.open.push(index);
        Ok(())
    }

    /// Closes the innermost element, whose content ends here.
    fn end_tag(&mut self, place: usize) {
        // The reader rejects end tags without a start.
        let Some(element) = self.open.pop().map(|index| &mut self.elements[index]) else { return };
        element.inner.end = self.text.len();
        if element.children.is_empty() {
            (element.text_end, element.own_end) = (place, self.text.len());
        }
        self.scope.truncate(self.scope.len() - element.declares.len());
    }

    /// Splits a start tag into its name and its attributes: name, value, and place of the value.
    fn tag(&self, place: Range<usize>) -> Result<(&'s str, Vec<RawAttribute<'s>>), XmlError> {
        let inner = self.source[place.clone()].trim_start_matches('<').trim_end_matches('>');
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let end = inner.find(is_space).unwrap_or(inner.len());
        let (name, mut rest) = inner.split_at(end);
        if name.is_empty() {
            return self.wrong("a tag without a name");
        }
        let mut attributes = Vec::new();
        loop {
            let trimmed = rest.trim_start_matches(is_space);
            if trimmed.is_empty() {
                return Ok((name, attributes));
            }
            let parts = trimmed.split_once('=').filter(|_| trimmed.len() < rest.len());
            let Some((key, after)) = parts.map(|(key, after)| (key.trim_end(), after.trim_start_matches(is_space)))
            else {
                return self.wrong("an attribute without a value");
            };
            let quote = after.chars().next().filter(|quote| "'\"".contains(*quote));
            let value = quote.and_then(|quote| after[1..].split_once(quote));
            let (Some((value, next)), false) = (value, key.is_empty() || key.contains(is_space)) else {
                return self.wrong("an attribute whose value is not in quotes");
            };
            let begin = value.as_ptr() as usize - self.source.as_ptr() as usize;
            let normal = value.replace("\r\n", " ").replace(['\n', '\r', '\t'], " ");
            let text = match unescape(&normal) {
                Ok(_) if value.contains('<') => return self.wrong("'<' in an attribute"),
                Ok(text) => text.into_owned(),
                Err(error) => return self.wrong(error),
            };
            attributes.push((key, text, begin..begin + value.len()));
            rest = next;
        }
    }

    /// Returns a name with its namespace instead of its prefix.
    fn expanded(&self, name: &str, is_element: bool) -> Result<String, XmlError> {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        if prefix.is_empty() && !is_element {
            return Ok(name.to_owned());
        }
        let namespace = match self.scope.iter().rev().find(|(candidate, _)| candidate == prefix) {
            Some((_, namespace)) => namespace,
            None if prefix == "xml" => XML_NAMESPACE,
            None if prefix.is_empty() => "",
            None => return self.wrong(format!("unbound prefix '{prefix}'")),
        };
        Ok(if namespace.is_empty() { local.to_owned() } else { format!("{{{namespace}}}{local}") })
    }
}

type RawAttribute<'s> = (&'s str, String, Range<usize>);

/// Returns the prefix and the namespace that an attribute declares.
fn declared((name, value, _): &RawAttribute<'_>) -> Option<(String, String)> {
    let rest = name.strip_prefix("xmlns")?;
    let prefix = if rest.is_empty() { rest } else { rest.strip_prefix(':')? };
    Some((prefix.to_owned(), value.clone()))
}

/// Returns the text of a predefined entity or of a character reference.
fn resolved(reference: &BytesRef<'_>) -> Option<String> {
    unescape(&format!("&{};", &**reference)).ok().map(std::borrow::Cow::into_owned)
}
