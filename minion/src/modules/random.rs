//! `random`: numbers and texts by chance. Those from a seed are the ones that Salt has from it.

use brine_core::function::CallError;
use brine_core::{Value, functions};
use rand::seq::IndexedRandom;

use crate::context::Context;

mod twister;

use twister::Twister;

/// How long a text may be.
const MAX_LENGTH: usize = 1 << 20;

functions! {
    module "random", context Context;

    /// A text of so many characters: of `chars`, or of the kinds that are not switched off.
    ///
    /// CLI Example:
    ///
    ///     salt '*' random.get_str 128
    ///     salt '*' random.get_str 16 punctuation=False
    fn get_str(_context, length: usize = 20, chars: Option<String> = None, lowercase: bool = true, uppercase: bool = true, digits: bool = true, punctuation: bool = true, whitespace: bool = false) {
        let kinds = [
            (lowercase, "abcdefghijklmnopqrstuvwxyz"),
            (uppercase, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
            (digits, "0123456789"),
            (punctuation, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
            (whitespace, " \t\n\r\x0b\x0c"),
        ];
        let wanted = kinds.iter().filter(|(wanted, _)| *wanted).map(|(_, kind)| *kind);
        let from: Vec<char> = chars.unwrap_or_else(|| wanted.collect()).chars().collect();
        if from.is_empty() || length > MAX_LENGTH {
            return Err(CallError::Execution(format!("{length} characters of {} cannot be made", from.len())));
        }
        let mut random = rand::rng();
        Ok((0..length).filter_map(|_| from.choose(&mut random)).collect::<String>().into())
    }

    /// A number from `start` to `end`; with `seed` always the same one.
    ///
    /// CLI Example:
    ///
    ///     salt '*' random.rand_int 1 10
    fn rand_int(_context, start: i64 = 1, end: i64 = 10, seed: Value = Value::Nil) {
        let span = end.checked_sub(start).and_then(|span| u32::try_from(span).ok()).and_then(|span| span.checked_add(1));
        let span = span.ok_or_else(|| CallError::Execution(format!("there is no number from {start} to {end}")))?;
        let below = if seed.is_nil() { rand::random_range(0..span) } else { Twister::seeded(&seed).below(span) };
        Ok((start + i64::from(below)).into())
    }

    /// A number below `range` that is always the same: by default of this minion, else of what `hash` is.
    ///
    /// CLI Example:
    ///
    ///     salt '*' random.seed 60
    fn seed(context, range: u32 = 10, hash: Value = Value::Nil) {
        if range == 0 {
            return Err(CallError::Execution("empty range for randrange()".into()));
        }
        let id = || context.grains().get("id").cloned().unwrap_or_else(|| context.minion.id.as_str().into());
        let from = if hash.is_nil() { id() } else { hash };
        Ok(Twister::seeded(&from).below(range).into())
    }
}

#[cfg(test)]
mod tests {
    use brine_core::function::Args;
    use brine_core::{Map, map};

    use crate::testing;

    #[test]
    fn numbers_from_a_seed_are_those_of_salt() {
        let context = testing::context(&[]);
        for (fun, keyword, expected) in [
            ("random.seed", map! {"range" => 60, "hash" => "web1"}, 52),
            ("random.seed", map! {"range" => 1000, "hash" => "web1.example.org"}, 301),
            ("random.seed", map! {"range" => 100, "hash" => 12345}, 53),
            ("random.rand_int", map! {"start" => 5, "end" => 500, "seed" => "x"}, 327),
            ("random.rand_int", map! {"start" => 3, "end" => 3}, 3),
        ] {
            let found = context.call(fun, Args { positional: Vec::new(), keyword: keyword.clone() });
            assert_eq!(found.map_err(|error| error.to_string()), Ok(expected.into()), "{fun} {keyword:?}");
        }
    }

    #[test]
    fn texts_are_of_what_is_wanted() {
        let context = testing::context(&[]);
        let call = |keyword: Map| context.call("random.get_str", Args { positional: Vec::new(), keyword });
        assert_eq!(call(map! {"length" => 4, "chars" => "a"}).unwrap(), "aaaa".into());
        let kinds = map! {"length" => 64, "punctuation" => false, "uppercase" => false, "digits" => false};
        let text = call(kinds).unwrap().to_string();
        assert!(text.len() == 64 && text.chars().all(|c| c.is_ascii_lowercase()), "{text}");
        assert!(call(map! {"chars" => ""}).is_err());
    }
}
