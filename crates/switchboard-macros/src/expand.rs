//! The function that gives the tool, with the written one inside it.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Attribute, Ident, LitStr, ReturnType, Signature};

use crate::function::{Function, doc_text, is_for_callers};
use crate::options::Options;
use crate::parameters::{Argument, Parameters, all_or};

pub(crate) fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    let function: Function = match syn::parse2(function) {
        Ok(function) => function,
        Err(problem) => return problem.into_compile_error(),
    };
    let stand_in = stand_in(&function);
    match syn::parse2(options).and_then(|options| expand(&options, function)) {
        Ok(expanded) => expanded,
        Err(problem) => {
            let problem = problem.into_compile_error();
            quote!(#problem #stand_in)
        }
    }
}

/// A function of the same name, so that a mistake in one tool is not also told at its every use.
fn stand_in(function: &Function) -> TokenStream {
    let Function {
        attributes,
        visibility,
        signature,
        ..
    } = function;
    let attributes = attributes.iter().filter(|it| is_for_callers(it));
    let name = &signature.ident;
    quote! {
        #(#attributes)*
        #visibility fn #name<__Context>() -> ::switchboard::Tool<__Context> {
            ::core::unreachable!("this tool did not compile")
        }
    }
}

fn expand(options: &Options, function: Function) -> syn::Result<TokenStream> {
    let Function {
        attributes,
        visibility,
        mut signature,
        body,
    } = function;
    let (for_callers, for_code): (Vec<Attribute>, Vec<Attribute>) =
        attributes.into_iter().partition(is_for_callers);

    let mut problems = Vec::new();
    problems.extend(check_signature(&signature).err());
    let parameters = Parameters::take(&mut signature.inputs);
    let parameters = parameters.unwrap_or_else(|problem| {
        problems.push(problem);
        Parameters::default()
    });
    let name = tool_name(options, &signature.ident).unwrap_or_else(|problem| {
        problems.push(problem);
        String::new()
    });
    let description = match &options.description {
        Some(description) => Ok(description.value()),
        None => doc_text(&for_callers),
    };
    let description = description.unwrap_or_else(|problem| {
        problems.push(problem);
        String::new()
    });
    all_or((), problems)?;

    let ident = &signature.ident;
    let (generics, context) = match &parameters.context {
        Some(context) => (TokenStream::new(), context.to_token_stream()),
        None => (
            quote!(<__Context: ::core::marker::Send + ::core::marker::Sync + 'static>),
            quote!(__Context),
        ),
    };
    let arguments = arguments_type(&name, &parameters.arguments);
    let builder = builder(options, &name, &description, &context);
    let run = run(&signature, &parameters);

    Ok(quote! {
        #(#for_callers)*
        #visibility fn #ident #generics() -> ::switchboard::Tool<#context> {
            #arguments

            #(#for_code)*
            #signature #body

            #builder #run
        }
    })
}

/// What the signature of a function may have and that of a tool may not.
fn check_signature(signature: &Signature) -> syn::Result<()> {
    let mut problems = Vec::new();
    let generics = &signature.generics;
    if !generics.params.is_empty() {
        problems.push(syn::Error::new_spanned(
            generics,
            "a tool cannot be generic: the model calls one function, so name the types",
        ));
    }
    if let Some(clause) = &generics.where_clause {
        problems.push(syn::Error::new_spanned(
            clause,
            "a tool cannot be generic, so it has no use for a `where`: remove it",
        ));
    }
    let keywords = [
        signature.constness.map(|word| (word.span(), "const")),
        signature.unsafety.map(|word| (word.span(), "unsafe")),
        signature.abi.as_ref().map(|abi| (abi.span(), "extern")),
    ];
    problems.extend(keywords.into_iter().flatten().map(|(span, word)| {
        let message =
            format!("a tool cannot be `{word}`: remove the word, or call such a function");
        syn::Error::new(span, message)
    }));
    all_or((), problems)
}

/// The name the model calls. Providers refuse other names than these.
fn tool_name(options: &Options, function: &Ident) -> syn::Result<String> {
    let (name, span) = match &options.name {
        Some(name) => (name.value(), name.span()),
        None => (function.unraw().to_string(), function.span()),
    };
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=64).contains(&name.len()) && name.chars().all(is_fine) {
        return Ok(name);
    }
    let message = format!(
        "`{name}` cannot be a tool's name: providers take 1 to 64 of the letters a to z and A to Z, \
         digits, _ and -; give it another with `#[tool(name = \"...\")]`"
    );
    Err(syn::Error::new(span, message))
}

/// The type that the model's arguments are parsed into; none where the tool takes none.
fn arguments_type(tool: &str, arguments: &[Argument]) -> Option<TokenStream> {
    if arguments.is_empty() {
        return None;
    }
    let title = format!("{tool}_args");
    let fields = arguments.iter().map(|argument| {
        let Argument {
            name,
            of,
            attributes,
        } = argument;
        quote!(#(#attributes)* #name: #of)
    });
    Some(quote! {
        #[derive(
            ::switchboard::__private::serde::Deserialize,
            ::switchboard::__private::schemars::JsonSchema,
        )]
        #[serde(crate = "::switchboard::__private::serde", rename = #title)]
        #[schemars(crate = "::switchboard::__private::schemars")]
        #[allow(clippy::struct_excessive_bools)]
        struct __Arguments {
            #(#fields,)*
        }
    })
}

fn builder(options: &Options, name: &str, description: &str, context: &TokenStream) -> TokenStream {
    let name = LitStr::new(name, Span::call_site());
    let strict = options.strict.iter();
    let timeout = options.timeout_ms.iter();
    quote! {
        ::switchboard::tool::<#context>(#name)
            .description(#description)
            #(.strict(#strict))*
            #(.timeout(::core::time::Duration::from_millis(#timeout)))*
    }
}

/// The last call of the builder. What the compiler says about the function's value, it says at its
/// type.
fn run(signature: &Signature, parameters: &Parameters) -> TokenStream {
    let ident = &signature.ident;
    let of = if parameters.arguments.is_empty() {
        quote!(())
    } else {
        quote!(__Arguments)
    };
    let context = parameters.context.iter().map(|_| quote!(__context));
    let names = parameters.arguments.iter().map(|argument| &argument.name);
    let code = quote! {
        |__context, __arguments: #of| #ident(#(#context,)* #(__arguments.#names,)*)
    };
    let span = match &signature.output {
        ReturnType::Default => ident.span(),
        ReturnType::Type(_, of) => of.span(),
    };
    quote_spanned!(span=> .run(#code))
}
