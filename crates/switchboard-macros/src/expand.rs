//! Expands `#[tool]` to a function that returns the tool, with the user's function inside it.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Attribute, Ident, LitBool, LitStr, ReturnType, Signature};

use crate::function::{Function, doc_text, is_for_callers};
use crate::options::Options;
use crate::parameters::{Argument, Parameters, ok_unless};

pub(crate) fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    let function: Function = match syn::parse2(function) {
        Ok(function) => function,
        Err(problem) => return problem.into_compile_error(),
    };
    let placeholder = placeholder(&function);
    match syn::parse2(options).and_then(|options| expand(&options, function)) {
        Ok(expanded) => expanded,
        Err(problem) => {
            let problem = problem.into_compile_error();
            quote!(#problem #placeholder)
        }
    }
}

/// A function of the same name, so that a mistake in a tool is not also reported at each use of it.
fn placeholder(function: &Function) -> TokenStream {
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
    let parameters = Parameters::take(&mut signature.inputs).unwrap_or_else(|problem| {
        problems.push(problem);
        Parameters::default()
    });
    let name = tool_name(options, &signature.ident).unwrap_or_else(|problem| {
        problems.push(problem);
        String::new()
    });
    let description = options
        .description
        .as_ref()
        .map_or_else(|| doc_text(&for_callers), |text| Ok(text.value()));
    let description = description.unwrap_or_else(|problem| {
        problems.push(problem);
        String::new()
    });
    ok_unless((), problems)?;

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
    let run = run(options, &signature, &parameters);

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

/// Checks for parts of a signature that a tool cannot have.
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
            "a tool cannot be generic: remove the `where` clause",
        ));
    }
    let keywords = [
        signature.constness.map(|word| (word.span(), "const")),
        signature.unsafety.map(|word| (word.span(), "unsafe")),
        signature.abi.as_ref().map(|abi| (abi.span(), "extern")),
    ];
    problems.extend(keywords.into_iter().flatten().map(|(span, word)| {
        let message =
            format!("a tool cannot be `{word}`: remove the keyword, or call such a function");
        syn::Error::new(span, message)
    }));
    ok_unless((), problems)
}

/// The name of the tool. Providers accept only names of this form.
fn tool_name(options: &Options, function: &Ident) -> syn::Result<String> {
    let (name, span) = match &options.name {
        Some(name) => (name.value(), name.span()),
        None => (function.unraw().to_string(), function.span()),
    };
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=64).contains(&name.len()) && name.chars().all(is_valid) {
        return Ok(name);
    }
    let message = format!(
        "`{name}` cannot be a tool's name: providers take 1 to 64 of the letters a to z and A to Z, \
         digits, _ and -; give it another with `#[tool(name = \"...\")]`"
    );
    Err(syn::Error::new(span, message))
}

/// The type that the arguments are parsed into, or `None` if the tool takes none.
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
    let title = options.title.iter();
    let strict = options.strict.iter();
    let timeout = options.timeout_ms.iter();
    let failure_text = options.failure_text.iter();
    quote! {
        ::switchboard::tool::<#context>(#name)
            .description(#description)
            #(.title(#title))*
            #(.strict(#strict))*
            #(.timeout(::core::time::Duration::from_millis(#timeout)))*
            #(.failure_text(#failure_text))*
    }
}

/// Calls `run` on the builder with a closure that calls the function. The compiler reports errors
/// about the function's future at its name, and errors about its value at its return type.
fn run(options: &Options, signature: &Signature, parameters: &Parameters) -> TokenStream {
    let ident = &signature.ident;
    let at_name = ident.span().resolved_at(Span::call_site());
    let at_value = match &signature.output {
        ReturnType::Default => at_name,
        ReturnType::Type(_, of) => of.span().resolved_at(Span::call_site()),
    };
    let arguments = if parameters.arguments.is_empty() {
        quote!(())
    } else {
        quote!(__Arguments)
    };
    let context = parameters.context.iter().map(|_| quote!(__context));
    let names = parameters.arguments.iter().map(|argument| &argument.name);
    let call = quote_spanned!(at_name=> #ident(#(#context,)* #(__arguments.#names,)*));
    if options.blocking.as_ref().is_some_and(LitBool::value) {
        return quote_spanned! {at_value=>
            .run_blocking(|__context, __arguments: #arguments| #call)
        };
    }
    if signature.asyncness.is_none() {
        return quote_spanned!(at_value=> .run(|__context, __arguments: #arguments| #call));
    }
    // For a future that fails a bound, `run` cannot report which. An async block whose value is
    // already converted leaves it only `Send` to check.
    let convert = quote_spanned! {at_value=>
        let __value = #call.await;
        ::switchboard::__private::tool_output(__value)
    };
    quote_spanned! {at_name=>
        .run(|__context, __arguments: #arguments| async move { { #convert }.await })
    }
}
