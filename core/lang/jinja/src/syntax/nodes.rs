//! The syntax tree of a template: its tags, statements and expressions, by their positions in the source.

use super::tokens::{Span, Token};

/// A tag or a raw block.
#[derive(Debug)]
pub(crate) struct Tag {
    pub span: Span,
    pub tokens: Vec<Token>,
    pub body: Body,
}

/// The content of a tag.
#[derive(Debug)]
pub(crate) enum Body {
    /// `{{ }}`; `None` if it cannot be parsed.
    Print(Option<Expr>),
    /// `{% %}`; `None` if it cannot be parsed.
    Block(Option<Statement>),
    /// A raw block with its end.
    Raw,
    /// A tag, comment or raw block without an end: the rest of the source.
    Unfinished,
}

/// An expression.
#[derive(Debug)]
pub(crate) struct Expr {
    pub span: Span,
    /// The position whose line Jinja reports when the expression fails.
    pub at: usize,
    pub form: Form,
    /// The expressions in it, in the order of the source.
    pub parts: Vec<Expr>,
}

/// The form of an expression: the meaning of its parts, and the tokens between them that are rewritten.
#[derive(Debug)]
pub(crate) enum Form {
    Name,
    Number,
    Constant,
    /// String literals side by side: the first, and the positions of the others.
    String(Vec<usize>),
    /// Several expressions without brackets.
    Tuple,
    List,
    Dict,
    /// An operator that is a function of two operands.
    Binary {
        function: &'static str,
        sign: Span,
    },
    /// `a ~ b ~ c`, with its signs.
    Concat(Vec<Span>),
    /// `a < b <= c`.
    Compare(Vec<Comparison>),
    /// `-a`, `+a`.
    Sign {
        function: &'static str,
        sign: Span,
    },
    /// `a.b`.
    Attribute {
        dot: Span,
        name: Span,
        /// Whether a test such as `is defined` examines it, also if it is a method.
        is_tested: bool,
    },
    /// `a['b'](`: the item of a call, which may be a method.
    Method {
        open: Span,
        name: Span,
        close: Span,
    },
    /// `a[b]`.
    Item {
        open: Span,
        close: Span,
        /// Whether a test examines it, as for attributes.
        is_tested: bool,
    },
    /// `a[b:c:d]`.
    Slice(Box<Slice>),
    /// A call of its first part; `arguments` is the range between the brackets.
    Call {
        arguments: Option<Span>,
    },
    /// Other expressions: the engine evaluates them as Python does.
    Plain,
}

/// A comparison in a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison {
    pub sign: Span,
    /// The second word of `not in`.
    pub word: Option<Span>,
    /// The function; `None` for equality, which the engine compares as Python does.
    pub function: Option<&'static str>,
}

/// The bounds of a slice.
#[derive(Debug)]
pub(crate) struct Slice {
    pub open: Span,
    pub close: Span,
    /// Whether there is a start.
    pub has_start: bool,
    /// Each colon, and whether an expression follows it.
    pub bounds: Vec<(Span, bool)>,
}

/// A statement.
#[derive(Debug)]
pub(crate) enum Statement {
    /// `set a, b = value`.
    Set {
        /// The number of names if they are a tuple.
        targets: Option<usize>,
        value: Expr,
    },
    /// `set a | filter(x)`, up to `endset`: the first filter's position, and the expressions in the arguments.
    Capture {
        filter: Option<usize>,
        parts: Vec<Expr>,
    },
    For {
        targets: Option<usize>,
        items: Expr,
        condition: Option<Expr>,
    },
    Do(Expr),
    /// `load_yaml as name`.
    Load {
        word: Span,
        name: Span,
    },
    /// `profile as name`.
    Profile {
        word: Span,
        name: Expr,
    },
    /// `import_yaml 'file' as name`.
    ImportData {
        file: Expr,
        name: Span,
        context: bool,
    },
    /// `import`, `from`, `include` and `extends`.
    Import {
        file: Expr,
        /// The names that `from` assigns.
        names: Vec<Span>,
        context: bool,
    },
    Macro(Macro),
    /// `call(a) b(c)`.
    Call {
        parameters: Vec<Parameter>,
        called: Expr,
    },
    /// `filter f(x) | g`: the first filter's position, and the expressions in the arguments.
    Filter {
        first: usize,
        parts: Vec<Expr>,
    },
    /// Other statements: their expressions.
    Other(Vec<Expr>),
}

/// `macro name(parameters)`.
#[derive(Debug)]
pub(crate) struct Macro {
    pub name: Span,
    pub open: Span,
    pub parameters: Vec<Parameter>,
    pub close: Span,
}

/// A parameter of a macro or call block.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub name: Span,
    pub default: Option<Expr>,
    pub comma: Option<Span>,
}

impl Expr {
    /// Returns whether the expression is a single string literal.
    pub(crate) fn is_string_literal(&self) -> bool {
        matches!(&self.form, Form::String(others) if others.is_empty())
    }

    /// Calls `visit` with each variable in the expression.
    pub(crate) fn each_name(&self, visit: &mut dyn FnMut(Span)) {
        if matches!(self.form, Form::Name) {
            visit(self.span);
        }
        self.parts.iter().for_each(|part| part.each_name(visit));
    }
}
