//! `B318`, `B319`: reactor entries and waits for events that nothing matches, and fields that events do not have.

use brine_authoring_model::{File, FileKind};
use brine_jinja::view::{Kind, is_dynamic};
use brine_text::nearest::{nearest, nearest_within};
use brine_yaml::SourceNode;

use crate::events::{self, documented, is_possible, may_match};
use crate::{Check, Finding};

/// Parts of tags below which Salt alone publishes.
const NAMESPACES: [&str; 9] = ["job", "auth", "key", "presence", "run", "wheel", "batch", "minion", "beacon"];

/// Methods of a mapping.
const METHODS: [&str; 8] = ["get", "items", "keys", "values", "pop", "update", "copy", "setdefault"];

/// Returns the finding about a pattern that no event matches, if it looks like a mistake of a known one.
pub(crate) fn pattern(file: &File, node: &SourceNode) -> Option<Finding> {
    let glob = node.text().filter(|glob| !is_dynamic(glob) && !glob.is_empty())?;
    let (message, near) = mistake(glob)?;
    let mut finding = Finding::new("B318", &file.path, node.span.clone(), message);
    if let Some(at) = file.text.get(node.span.clone()).and_then(|text| text.find(glob)) {
        let start = node.span.start + at;
        finding = finding.fix(format!("write '{near}'"), start..start + glob.len(), near, false);
    }
    Some(finding)
}

/// Returns the mistake in a pattern, and the intended pattern.
fn mistake(glob: &str) -> Option<(String, String)> {
    let is_known = |glob: &str| {
        let is_plain = || documented().iter().any(|kind| kind.tag == glob);
        (glob.starts_with("salt/") || is_plain()) && is_possible(glob)
    };
    if let Some(meant) = of_regex(glob).filter(|meant| is_known(meant)) {
        let message =
            format!("'{glob}' is a regular expression, and no event has such a tag: write the glob '{meant}'");
        return Some((message, meant));
    }
    let bare = glob.trim_matches('/');
    if bare != glob && !is_possible(glob) && is_known(bare) {
        let message = format!("no tag begins or ends with a slash, so that no event matches '{glob}': write '{bare}'");
        return Some((message, bare.to_owned()));
    }
    let near = near(glob)?;
    Some((format!("no event has a tag that '{glob}' matches: did you mean '{near}'?"), near.to_owned()))
}

/// Returns the glob of a regular expression.
fn of_regex(pattern: &str) -> Option<String> {
    let has = |part: &str| pattern.split('/').any(|segment| segment == part);
    let is_regex = pattern.starts_with('^')
        || pattern.ends_with('$')
        || pattern.contains('\\')
        || pattern.contains("]+")
        || pattern.contains("[^/]*")
        || has(".*")
        || has(".+");
    is_regex.then(|| {
        let mut glob = pattern.trim_start_matches('^').trim_end_matches('$').to_owned();
        for (part, instead) in [
            ("[^/]+", "*"),
            ("[^/]*", "*"),
            ("[0-9]+", "*"),
            ("\\d+", "*"),
            ("\\d*", "*"),
            ("\\w+", "*"),
            ("\\w*", "*"),
            ("\\S+", "*"),
            (".*", "*"),
            (".+", "*"),
            ("\\", ""),
        ] {
            glob = glob.replace(part, instead);
        }
        glob.replace("(*)", "*")
    })
}

/// Returns the pattern of documented events that one means which they do not match.
fn near(glob: &str) -> Option<&'static str> {
    let globs = || documented().iter().map(|kind| kind.glob.as_str());
    if is_possible(glob) {
        // Minions may publish other events beside their own.
        let is_own = glob.starts_with("salt/") && !glob.contains(['?', '[']);
        let is_documented = documented().iter().any(|kind| may_match(glob, &kind.tag));
        return nearest_within(glob, globs(), 1).filter(|_| is_own && !is_documented);
    }
    let mut parts = glob.split('/');
    if let (Some("salt"), Some(second)) = (parts.next(), parts.next()) {
        let is_near = |name: &&&str| match name.len() {
            ..4 => second == **name || second.strip_suffix('s') == Some(**name),
            _ => second == **name || nearest_within(second, [**name], 1).is_some(),
        };
        if let Some(namespace) = NAMESPACES.iter().find(is_near) {
            let start = format!("salt/{namespace}");
            let shared =
                |candidate: &str| candidate.split('/').zip(glob.split('/')).filter(|(one, other)| one == other).count();
            let of_it = || globs().filter(|glob| glob.starts_with(&start));
            let most = of_it().map(shared).max();
            // The nearest, however far it is.
            return nearest_within(glob, of_it().filter(|candidate| Some(shared(candidate)) == most), glob.len());
        }
    }
    nearest_within(glob, globs().filter(|candidate| candidate.len() > 8), (glob.len() / 8).clamp(1, 2))
}

impl Check<'_> {
    /// Reports waits of an orchestration for events that do not occur.
    pub(crate) fn waits(&mut self) {
        let is_wait = |module: &str, function: &str| module == "salt" && function == "wait_for_event";
        for state in self.file.states.iter().filter(|state| is_wait(&state.module, &state.function)) {
            for name in state.arguments.iter().filter(|argument| argument.name == "name") {
                if let Some(finding) = pattern(self.file, &name.value) {
                    self.add(finding);
                }
            }
        }
    }

    /// Reports fields in a reactor file that the events of its entries do not have.
    pub(crate) fn fields(&mut self) {
        let Some(view) = self.file.view.as_ref().filter(|_| self.file.kind == FileKind::Reactor) else { return };
        let sets_data = view.facts.iter().any(|fact| matches!(&fact.kind, Kind::Assign { name } if name == "data"));
        let master = self.index.master(self.tree);
        let globs = if sets_data { Vec::new() } else { master.patterns_of(&self.file.path) };
        let kinds: Vec<Vec<&events::Kind>> = globs.iter().map(|glob| events::meant(glob)).collect();
        if kinds.is_empty() || kinds.iter().any(Vec::is_empty) {
            return;
        }
        let kinds: Vec<&events::Kind> = kinds.into_iter().flatten().collect();
        for fact in &view.facts {
            let is_data = matches!(&fact.kind, Kind::Use { name, is_guarded: false } if name == "data");
            let Some((field, end)) =
                Some(fact.span.end).filter(|_| is_data).and_then(|end| field_after(&self.file.text, end))
            else {
                continue;
            };
            if kinds.iter().any(|kind| kind.may_have(field)) || self.asks_for(field) {
                continue;
            }
            let near = nearest(field, kinds.iter().flat_map(|kind| kind.words())).map(str::to_owned);
            let message = format!("events of '{}' have no field '{field}'", globs.join("', '"));
            self.unknown("B319", fact.span.start..end, message, near, field);
        }
    }

    /// Whether the file asks if events have a field.
    fn asks_for(&self, field: &str) -> bool {
        let asks = |quote: char| self.file.text.contains(&format!("{quote}{field}{quote} in data"));
        asks('\'') || asks('"')
    }
}

/// Returns the field that is read from a mapping that ends at a position, and the end of the expression.
fn field_after(text: &str, end: usize) -> Option<(&str, usize)> {
    let rest = text.get(end..)?;
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
    let (field, length) = if let Some(name) = rest.strip_prefix('.') {
        let length = name.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        (&name[..length], 1 + length)
    } else {
        let inner = rest.strip_prefix('[')?;
        let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let (field, _) = inner[1..].split_once(quote)?;
        let length = 1 + 1 + field.len() + 1;
        (field, length + usize::from(rest[length..].starts_with(']')))
    };
    (is_word(field) && !METHODS.contains(&field)).then_some((field, end + length))
}
