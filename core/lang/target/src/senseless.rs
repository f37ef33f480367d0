//! Terms that select no minion whatever its facts are: mistakes.

use super::compound::{Expression, Term, split_term};
use super::{Matcher, TargetError};

impl Expression {
    /// Returns the error of the first term that selects no minion whatever its facts are.
    pub fn senseless(&self, delimiter: &str) -> Option<TargetError> {
        match self {
            Expression::Term(term) => term.senseless(delimiter),
            Expression::Not(inner) => inner.senseless(delimiter),
            Expression::All(parts) | Expression::Any(parts) => parts.iter().find_map(|part| part.senseless(delimiter)),
        }
    }
}

impl Term {
    fn senseless(&self, delimiter: &str) -> Option<TargetError> {
        let delimiter = self.word.as_ref().map_or(delimiter, |word| &word.delimiter);
        match (&self.matcher, &self.word) {
            (Matcher::Grain(lookup) | Matcher::Pillar(lookup), _) if !delimiter.is_empty() => {
                let text = lookup.without_value()?.to_owned();
                Some(TargetError::NoValue { text, delimiter: delimiter.to_owned() })
            }
            (Matcher::Glob(_), Some(word)) => {
                let text = word.text.as_str()?;
                let letter = text.split_once('@')?.0;
                let is_letter = letter.len() == 1 && letter.starts_with(|c: char| c.is_ascii_alphabetic());
                let upper = letter.to_ascii_uppercase();
                let near = if letter != upper && split_term(&format!("{upper}@x")).0.is_some() {
                    format!(": did you mean '{upper}@'?")
                } else {
                    String::new()
                };
                is_letter.then(|| TargetError::UnknownTerm(text.to_owned(), near))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::Map;

    use super::super::{Target, TargetKind};

    #[test]
    fn terms_that_select_nobody_are_no_sensible_targets() {
        let sensible = |kind, text: &str, delimiter: &str| {
            let target =
                Target::parse(kind, text, delimiter, &Map::new()).and_then(|target| target.sensible(delimiter));
            target.map(|_| ()).map_err(|error| error.to_string())
        };
        let value = |text: &str, delimiter: &str| {
            Err(format!(
                "the target '{text}' is invalid: expected a key and a value with '{delimiter}' between them, as in \
                 'os{delimiter}Debian'"
            ))
        };
        let letter = |text: &str, near: &str| {
            Err(format!("the term '{text}' is invalid: expected G, P, I, J, E, S, L or N before '@'{near}"))
        };
        for (kind, text, delimiter, expected) in [
            (TargetKind::Grain, "osDebian", ":", value("osDebian", ":")),
            (TargetKind::GrainPcre, "os", ":", value("os", ":")),
            (TargetKind::Pillar, "role=web", ":", value("role=web", ":")),
            (TargetKind::Grain, "os:Debian", "|", value("os:Debian", "|")),
            (TargetKind::Compound, "m1 and G@os", ":", value("os", ":")),
            (TargetKind::Compound, "G|@os:x or m1", ":", value("os:x", "|")),
            (TargetKind::Compound, "Q@os:x", ":", letter("Q@os:x", "")),
            (TargetKind::Compound, "m1 and not g@os:x", ":", letter("g@os:x", ": did you mean 'G@'?")),
            (TargetKind::Grain, "os:Debian", ":", Ok(())),
            (TargetKind::Grain, "os:", ":", Ok(())),
            (TargetKind::Pillar, "a:b:c", "", Ok(())),
            (TargetKind::Glob, "Q@x", ":", Ok(())),
            (TargetKind::Compound, "m1@example or G@os:(x) or E@(a|b) or P@os:(Deb|x)", ":", Ok(())),
        ] {
            assert_eq!(sensible(kind, text, delimiter), expected, "{kind} {text}");
        }
    }
}
