//! Parses the annotated function.

use proc_macro2::{Delimiter, Group};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Signature, Token, Visibility};

/// A function whose body is not parsed: the compiler reports errors in it better.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    pub(crate) body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let is_function = input.peek(Token![fn])
            || input.peek(Token![async])
            || input.peek(Token![unsafe])
            || input.peek(Token![extern])
            || (input.peek(Token![const]) && !input.peek3(Token![:]));
        if !is_function {
            return Err(input.error("`#[tool]` goes on a function"));
        }
        let signature = input.parse()?;
        if input.peek(Token![;]) {
            return Err(input.error("a tool needs a body: `#[tool]` goes on a function with one"));
        }
        let body: Group = input.parse()?;
        if body.delimiter() != Delimiter::Brace {
            return Err(syn::Error::new(body.span(), "expected the function's body"));
        }
        Ok(Self {
            attributes,
            visibility,
            signature,
            body,
        })
    }
}

/// Returns `true` if an attribute belongs on the function that returns the tool, not on the user's code.
pub(crate) fn is_for_callers(attribute: &Attribute) -> bool {
    const FOR_CALLERS: [&str; 11] = [
        "doc",
        "cfg",
        "cfg_attr",
        "allow",
        "expect",
        "warn",
        "deny",
        "forbid",
        "must_use",
        "deprecated",
        "rustfmt",
    ];
    let first = attribute.path().segments.first();
    first.is_some_and(|first| FOR_CALLERS.iter().any(|name| first.ident == name))
}

/// The text of the doc comment, without the leading space of each line and without surrounding blank
/// lines.
pub(crate) fn doc_text(attributes: &[Attribute]) -> syn::Result<String> {
    let mut lines = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(meta) = &attribute.meta else {
            continue;
        };
        if !meta.path.is_ident("doc") {
            continue;
        }
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &meta.value
        else {
            return Err(syn::Error::new_spanned(
                &meta.value,
                "the description must be a doc comment or a string literal; set it with \
                 `#[tool(description = \"...\")]`",
            ));
        };
        let text = text.value();
        lines.extend(text.split('\n').map(|line| {
            let line = line.strip_prefix(' ').unwrap_or(line);
            line.trim_end().to_owned()
        }));
    }
    Ok(lines.join("\n").trim_matches('\n').to_owned())
}
