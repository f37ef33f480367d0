//! Macros that take more arguments than they name.

use std::sync::Arc;

use minijinja::value::{Enumerator, Kwargs, Object, Tuple, Value as JinjaValue};
use minijinja::{Environment, Error, State};

use super::containers::Dict;
use super::value::split_kwargs;

pub(super) fn add_to(environment: &mut Environment<'static>) {
    environment.add_function("__varargs__", |inner: JinjaValue| JinjaValue::from_object(Wrapped { inner }));
}

/// A macro whose last two parameters are what else it was given.
#[derive(Debug)]
struct Wrapped {
    inner: JinjaValue,
}

impl Wrapped {
    fn parameters(&self) -> Vec<JinjaValue> {
        let all = self.inner.get_attr("arguments").and_then(|names| names.try_iter().map(Iterator::collect));
        let mut all: Vec<JinjaValue> = all.unwrap_or_default();
        all.truncate(all.len().saturating_sub(2));
        all
    }
}

impl Object for Wrapped {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["name", "arguments", "caller"])
    }

    fn get_value(self: &Arc<Self>, key: &JinjaValue) -> Option<JinjaValue> {
        match key.as_str()? {
            "arguments" => Some(JinjaValue::from(Tuple::from(self.parameters()))),
            name => self.inner.get_attr(name).ok().filter(|value| !value.is_undefined()),
        }
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[JinjaValue]) -> Result<JinjaValue, Error> {
        let parameters = self.parameters();
        let (mut positional, keywords) = split_kwargs(args)?;
        let more = positional.split_off(positional.len().min(parameters.len()));
        let is_own = |name: &str| name == "caller" || parameters.iter().any(|known| known.as_str() == Some(name));
        let (own, others): (Vec<_>, Vec<_>) = keywords.into_iter().partition(|(name, _)| is_own(name));
        let others: Dict = others.into_iter().map(|(name, value)| (JinjaValue::from(name), value)).collect();
        let extra = [
            ("varargs".to_owned(), JinjaValue::from(Tuple::from(more))),
            ("kwargs".to_owned(), JinjaValue::from_object(others)),
        ];
        positional.push(own.into_iter().chain(extra).collect::<Kwargs>().into());
        self.inner.call(state, &positional)
    }
}
