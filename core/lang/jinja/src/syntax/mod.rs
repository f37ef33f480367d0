//! The syntax of templates: converts Salt's Jinja to the language of the engine, minijinja, in one pass.
//!
//! A source is split into tags, each tag into tokens (`tokens`), and these are parsed by Jinja's grammar (`parser`) to
//! nodes with positions (`nodes`, `document`). The other modules work on the nodes: `emit` writes them in the engine's
//! language with a [`SourceMap`] back to the source, and errors take their lines and messages from the [`Document`].
//!
//! | written | becomes |
//! |---|---|
//! | `[1]`, `{'a': 1}` | `__list__([1])`, `__dict__({'a': 1})`: mutable, as in Python |
//! | `set x = y + [1]` | `set x = __own__(y + [1])`: results of operators are mutable, too |
//! | `do x` | `set __do__ = x`: minijinja's `do` takes calls only |
//! | `a + b`, `x % y` | `__add__(a, b)`, `__mod__(x, y)`: Python's operators |
//! | `a in b`, `a not in b` | `__in__(a, b)`, `(not __in__(a, b))` |
//! | `a ~ b ~ c` | `__concat__(a, b, c)`: within the memory limit |
//! | `'a' 'b'` | `('a' ~ 'b')` |
//! | `load_yaml as x` ... `endload` | `set x \| __load_yaml__` ... `endset` |
//! | `import_yaml 'f' as x` | the same around an `include` |
//! | `import 'f' as x`, `from`, `include` | the name as `__template__('f', with_context)` |
//! | `profile as x` ... `endprofile` | `with` ... `endwith` |
//! | `a < b` | `__lt__(a, b)`: a string and a number have no order |
//! | `a[1:]` | `__slice__(a, 1, none)`: steps may be negative, as in Python |
//! | `for x in y`, `for a, b in y` | `__each__(y)`, `__each_of__(2, y)`: `None` is not an empty list |
//! | `loop(x)` | `loop(__each__(x))`, as in the loop itself |
//! | `set a, b = y` | `__unpack__(2, y)` |
//! | `x['get'](y)` | `x.get(y)`: the item may be a method |
//! | `x \| attr('get')(y)` | `(x \| attr('get'))(y)`: the engine takes no call after a filter |
//! | `x.get is defined` | `__tested__(x, 'get') is defined`: the attribute may be a method |
//! | `a < b <= c` | `__chain__(a, '<', b, '<=', c)` |
//! | `macro m(a, b=a)` | `macro m(a, b)`, and `if b is undefined`, `set b = a` in the body |
//! | `macro m(a)` | `varargs` and `kwargs` that its body names are parameters; `set m = __macro__(m, true)` follows it |
//!
//!
//! A tag that cannot be parsed is not changed: the engine refuses it, and the error is that of the grammar. Guarded
//! templates (`crate::guard`) are written a second time, once it is known which of their tags may print untrusted text:
//!
//! | written | becomes |
//! |---|---|
//! | `{{ x }}` | `{{ __guard__((x), id, n) }}`, if `x` may be untrusted |
//! | `endmacro` | `endmacro`, `set m = __guard__.macro(__macro__(m, true))` |
//! | `call m(x)` | `call __guard__.block(m)(x)` |
//! | `set x` | `set x \| __captured__(__guard__)` |
//! | `load_yaml as x` | `set x \| __load_yaml__(__guard__)` |
//! | `set x \| f` | `set x \| __uncover__(__guard__) \| f` |
//! | `filter f` | `filter __uncover__(__guard__) \| f \| __cover__(__guard__, id, n)` |

mod document;
mod emit;
pub(crate) mod nodes;
pub(crate) mod parser;
mod source_map;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;

pub(crate) use document::Document;
pub(crate) use emit::{Emitted, Purpose, emit};
pub(crate) use parser::Called;
pub(crate) use source_map::SourceMap;
