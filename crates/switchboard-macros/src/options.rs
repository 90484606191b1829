//! Parses the options in `#[tool(..)]`.

use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprLit, Ident, Lit, LitBool, LitStr, Token};

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) strict: Option<LitBool>,
    pub(crate) timeout_ms: Option<u64>,
    /// The function or closure that makes the failure text.
    pub(crate) failure_text: Option<Expr>,
    /// Set if the function blocks its thread.
    pub(crate) blocking: Option<LitBool>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let option = input.call(Ident::parse_any)?;
            options.set(&option, input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    fn set(&mut self, option: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match option.to_string().as_str() {
            "name" => set_once(&mut self.name, option, text(option, input)?),
            "title" => set_once(&mut self.title, option, text(option, input)?),
            "description" => set_once(&mut self.description, option, text(option, input)?),
            "strict" => set_once(&mut self.strict, option, flag(option, input)?),
            "blocking" => set_once(&mut self.blocking, option, flag(option, input)?),
            "failure_text" => {
                let (text, _) = value(option, input, "a function")?;
                set_once(&mut self.failure_text, option, text)
            }
            "timeout_ms" => match value(option, input, MILLISECONDS)? {
                (value, Some(Lit::Int(timeout))) => match timeout.base10_parse::<u64>() {
                    Ok(timeout @ 1..) => set_once(&mut self.timeout_ms, option, timeout),
                    Ok(0) | Err(_) => Err(wrong_value(&value, option, MILLISECONDS)),
                },
                (value, _) => Err(wrong_value(&value, option, MILLISECONDS)),
            },
            unknown => Err(syn::Error::new(
                option.span(),
                format!(
                    "there is no option `{unknown}`; there are `name`, `title`, `description`, \
                     `strict`, `timeout_ms`, `failure_text` and `blocking`"
                ),
            )),
        }
    }
}

const MILLISECONDS: &str = "a whole number of milliseconds, at least 1";
const TEXT: &str = "a string literal";

fn text(option: &Ident, input: ParseStream<'_>) -> syn::Result<LitStr> {
    match value(option, input, TEXT)? {
        (_, Some(Lit::Str(text))) => Ok(text),
        (value, _) => Err(wrong_value(&value, option, TEXT)),
    }
}

fn flag(option: &Ident, input: ParseStream<'_>) -> syn::Result<LitBool> {
    match value(option, input, "`true` or `false`")? {
        (_, Some(Lit::Bool(flag))) => Ok(flag),
        (value, _) => Err(wrong_value(&value, option, "`true` or `false`")),
    }
}

/// Parses the value of an option. Also returns the literal, if it is one.
fn value(
    option: &Ident,
    input: ParseStream<'_>,
    expected: &str,
) -> syn::Result<(Expr, Option<Lit>)> {
    if !input.peek(Token![=]) {
        return Err(syn::Error::new(
            option.span(),
            expected_message(option, expected),
        ));
    }
    input.parse::<Token![=]>()?;
    let value: Expr = input.parse()?;
    let literal = match &value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit.clone()),
        _ => None,
    };
    Ok((value, literal))
}

fn set_once<T>(slot: &mut Option<T>, option: &Ident, value: T) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(syn::Error::new(
            option.span(),
            format!("the option `{option}` is given twice"),
        )),
    }
}

fn wrong_value(value: &Expr, option: &Ident, expected: &str) -> syn::Error {
    syn::Error::new_spanned(value, expected_message(option, expected))
}

fn expected_message(option: &Ident, expected: &str) -> String {
    format!("`{option}` takes {expected}: `{option} = ..`")
}
