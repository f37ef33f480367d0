//! Global functions of templates.

use minijinja::value::{Rest, Value as JinjaValue, ValueOrKwargs};
use minijinja::{Environment, Error, State};
use rand::seq::IndexedRandom;

use super::super::behaviour::Role;
use super::super::data::{Dict, raise, text};
use super::super::messages::missing_function;
use super::super::salt::Salt;
use super::{Args, Options, is_data};

/// The words of `lipsum`.
const WORDS: &str = "alba amica aqua arbor bonus caelum campus canis carmen casa cena clarus cor corpus dies domus \
                     donum equus ferrum filia flumen frater gaudium herba hora hortus ignis insula iter lacus laetus liber \
                     littera locus longus luna lux magnus manus mare mensa mons mundus navis nomen novus nox oculus opus \
                     panis parvus pax pons porta puer rosa sal semper silva sol stella tempus terra unda urbs ventus verbum \
                     via vinum vita vox";

/// The maximum number of words of `lipsum`.
const MAX_WORDS: i64 = 1 << 20;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("cycler", |items: Rest<JinjaValue>| minijinja_contrib::globals::cycler(items.to_vec()));
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    environment.add_function("raise", |message: Option<JinjaValue>| -> Result<JinjaValue, Error> {
        Err(raise(message.map_or_else(String::new, |message| text(&message))))
    });
    environment.add_function("show_full_context", show_full_context);
    environment.add_function("lipsum", lipsum);
    environment
        .add_function("ifelse", |state: &mut State<'_, '_>, args: Args| call(state, Role::IfElse, "ifelse", args));
}

/// Calls the host function that implements a filter or a global.
pub(super) fn call(state: &mut State<'_, '_>, role: Role, name: &str, args: Args) -> Result<JinjaValue, Error> {
    let args: Vec<_> = args.iter().cloned().map(ValueOrKwargs::into_value).collect();
    let salt = state.lookup("salt").unwrap_or_default();
    let function = salt.downcast_object_ref::<Salt>().and_then(|Salt(host)| host.name_of(role));
    let missing = || missing_function(function.unwrap_or(name));
    let callable = salt.get_item(&JinjaValue::from(function.ok_or_else(missing)?))?;
    if callable.is_undefined() {
        return Err(missing());
    }
    callable.call(state, &args)
}

/// Returns the values in scope that are data.
fn show_full_context(state: &State<'_, '_>) -> JinjaValue {
    let names = state.known_variables();
    let variables = names.iter().filter(|name| !name.starts_with("__")).filter_map(|name| {
        let value = state.lookup(name)?;
        (!value.is_undefined() && is_data(&value)).then(|| (JinjaValue::from(name.as_ref()), value))
    });
    JinjaValue::from_object(variables.collect::<Dict>())
}

/// `lipsum(n=5, html=True, min=20, max=100)`: paragraphs of random words.
fn lipsum(args: Args) -> Result<JinjaValue, Error> {
    let options = Options::new(&args)?;
    let number = |index, name, default| options.get(index, name).and_then(|value| value.as_i64()).unwrap_or(default);
    let (count, least, most) = (number(0, "n", 5).max(0), number(2, "min", 20), number(3, "max", 100));
    if least >= most {
        return Err(raise(format_args!(
            "empty range for randrange() ({least}, {most}, {})",
            most.saturating_sub(least)
        )));
    }
    if count.saturating_mul(most.max(1)) > MAX_WORDS {
        return Err(raise(format_args!("lipsum returns at most {MAX_WORDS} words")));
    }
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let paragraphs = (0..count).map(|_| paragraph(&words, rand::random_range(least..most)));
    if options.flag(1, "html", true) {
        let paragraphs: Vec<String> = paragraphs.map(|words| format!("<p>{words}</p>")).collect();
        return Ok(JinjaValue::from_safe_string(paragraphs.join("\n")));
    }
    Ok(JinjaValue::from(paragraphs.collect::<Vec<_>>().join("\n\n")))
}

/// Returns a paragraph of sentences with this number of words.
fn paragraph(words: &[&str], count: i64) -> String {
    let mut rng = rand::rng();
    let (mut out, mut left, mut comma) = (String::new(), 0, 0);
    for _ in 0..count {
        let word = words.choose(&mut rng).copied().unwrap_or_default();
        if left == 0 {
            (left, comma) = (rand::random_range(8..16), rand::random_range(3..12));
            out += if out.is_empty() { "" } else { ". " };
            let (first, rest) = word.split_at(word.len().min(1));
            out += &first.to_uppercase();
            out += rest;
        } else {
            out += if left == comma { ", " } else { " " };
            out += word;
        }
        left -= 1;
    }
    out + "."
}
