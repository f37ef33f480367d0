//! `out`: values as text, as the outputters of the command line tools format them.

use brine_context::{Context, Module};
use brine_function::{Args, CallResult, Functions, function, registry};
use brine_output::{Colours, OutputOptions, Outputter, display};
use brine_value::{Map, Value};

pub(super) static MODULE: Module = Module { functions: &[&FUNCTIONS], ..Module::EMPTY };

/// Execution functions of `out`.
pub static FUNCTIONS: Functions<Context> = registry!("out", [out_format, string_format, html_format]);

/// The arguments of the functions.
#[derive(Args)]
pub struct FormatArgs {
    /// Value.
    data: Value,
    /// Outputter, such as `nested`, `highstate`, `json` or `table`.
    #[default("nested".into())]
    out: String,
    /// Options such as `state_output`, by default those of the minion.
    opts: Option<Map>,
    /// Further arguments, ignored.
    #[keywords]
    _kwargs: Map,
}

/// Format a value by an outputter. Text is coloured unless the option `color` is False.
///
/// CLI Example:
///
///     salt '*' out.out_format "{'key': 'value'}"
#[function]
pub fn out_format(context: &Context, #[args] args: FormatArgs) -> CallResult {
    let args = FormatArgs { opts: args.opts.filter(|opts| !opts.is_empty()), ..args };
    let has_colour = args.opts.as_ref().and_then(|format| format.get("color")).is_none_or(Value::is_truthy);
    let colours = if has_colour { Colours::ON } else { Colours::OFF };
    Ok(formatted(context, &args, colours).into())
}

/// Format a value by an outputter without colours.
///
/// CLI Example:
///
///     salt '*' out.string_format "{'key': 'value'}" out=table
#[function]
pub fn string_format(context: &Context, #[args] args: FormatArgs) -> CallResult {
    Ok(formatted(context, &args, Colours::OFF).into())
}

/// Format a value by an outputter as HTML: with fixed spaces and line breaks, and markup in the value escaped.
///
/// CLI Example:
///
///     salt '*' out.html_format "{'key': 'value'}" out=yaml
#[function]
pub fn html_format(context: &Context, #[args] args: FormatArgs) -> CallResult {
    let text = formatted(context, &args, Colours::OFF);
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    Ok(text.replace(' ', "&nbsp;").replace('\n', "<br />").into())
}

fn formatted(context: &Context, args: &FormatArgs, colours: Colours) -> String {
    let outputter = args.out.parse::<Outputter>().unwrap_or_else(|error| {
        tracing::error!(jid = context.job.jid, "{error}");
        Outputter::Nested
    });
    let mut options = OutputOptions { colours, ..OutputOptions::default() };
    match &args.opts {
        Some(opts) => options.set_all(opts),
        None => options.set_all(&context.opts()),
    }
    display(&args.data, outputter, &options)
}

#[cfg(test)]
mod tests {
    use brine_function::Args;
    use brine_value::map;

    use crate::testing::context;

    #[test]
    fn values_are_formatted_by_outputters() {
        for (function, keyword, expected) in [
            ("string_format", map! {"data" => map! {"a" => "b c"}}, "a:\n    b c"),
            ("string_format", map! {"data" => map! {"a" => 1}, "out" => "yaml"}, "a: 1"),
            ("string_format", map! {"data" => map! {"a" => 1}, "out" => "nonsense"}, "a:\n    1"),
            ("html_format", map! {"data" => map! {"a" => "<b> c"}, "out" => "yaml"}, "a:&nbsp;&lt;b&gt;&nbsp;c"),
            ("html_format", map! {"data" => "x\ny"}, "x<br />y"),
            ("out_format", map! {"data" => "x", "opts" => map! {"color" => false}}, "x"),
            ("out_format", map! {"data" => "x"}, "\x1b[0;32mx\x1b[0;0m"),
        ] {
            let text = context(&[]).call(&format!("out.{function}"), Args::keyword(keyword)).unwrap().to_string();
            assert_eq!(text, expected, "{function}");
        }
    }
}
