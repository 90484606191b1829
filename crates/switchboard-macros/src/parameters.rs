//! What the function takes: the context, if it does, and the arguments of the call.

use syn::punctuated::Punctuated;
use syn::{
    Attribute, FnArg, GenericArgument, Ident, Pat, PatType, PathArguments, Token, Type, TypePath,
    parse_quote,
};

#[derive(Default)]
pub(crate) struct Parameters {
    /// The `C` of the `ToolContext<C>` that comes first.
    pub(crate) context: Option<Type>,
    pub(crate) arguments: Vec<Argument>,
}

/// A parameter that the model gives.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) of: Type,
    /// What goes to the field: doc comments, `#[serde(..)]`, `#[schemars(..)]`.
    pub(crate) attributes: Vec<Attribute>,
}

impl Parameters {
    /// Reads the parameters, and takes from them the attributes that belong to the arguments.
    pub(crate) fn take(inputs: &mut Punctuated<FnArg, Token![,]>) -> syn::Result<Self> {
        let mut parameters = Self::default();
        let mut problems = Vec::new();
        for (position, input) in inputs.iter_mut().enumerate() {
            match parameters.add(position, input) {
                Ok(()) => {}
                Err(problem) => problems.push(problem),
            }
        }
        all_or(parameters, problems)
    }

    fn add(&mut self, position: usize, input: &mut FnArg) -> syn::Result<()> {
        let input = match input {
            FnArg::Typed(input) => input,
            FnArg::Receiver(receiver) => {
                return Err(syn::Error::new_spanned(
                    receiver,
                    "a tool has no `self`: make it a free function, and keep what it needs in the \
                     run's context, which a first parameter `ctx: ToolContext<..>` gives",
                ));
            }
        };
        match Kind::of(&input.ty) {
            Kind::Context(context) if position == 0 => {
                self.context = Some(*context);
                Ok(())
            }
            Kind::Context(_) => Err(syn::Error::new_spanned(
                &input.ty,
                "the `ToolContext` comes first: make it the first parameter",
            )),
            Kind::Argument => {
                self.arguments.push(Argument::take(input)?);
                Ok(())
            }
            Kind::Wrong(advice) => Err(syn::Error::new_spanned(&input.ty, advice)),
        }
    }
}

enum Kind {
    Context(Box<Type>),
    Argument,
    Wrong(&'static str),
}

impl Kind {
    fn of(of: &Type) -> Self {
        match of {
            Type::Reference(of) => match Self::of(&of.elem) {
                Self::Context(_) => {
                    Self::Wrong("take the context by value: `ToolContext<..>`, without `&`")
                }
                _ => Self::Wrong(
                    "arguments are parsed from what the model sends and must be owned: take \
                     `String` for `&str`, `Vec<T>` for `&[T]`, `T` for `&T`",
                ),
            },
            Type::ImplTrait(_) => Self::Wrong(
                "a tool cannot take `impl Trait`: name the type, from which the model's schema is \
                 made",
            ),
            Type::Paren(of) => Self::of(&of.elem),
            Type::Group(of) => Self::of(&of.elem),
            Type::Path(of) => match context(of) {
                Some(context) => Self::Context(Box::new(context)),
                None => Self::Argument,
            },
            _ => Self::Argument,
        }
    }
}

/// The `C` of a `ToolContext<C>`.
fn context(of: &TypePath) -> Option<Type> {
    let last = of.path.segments.last()?;
    if last.ident != "ToolContext" {
        return None;
    }
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return Some(parse_quote!(()));
    };
    let mut types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(of) => Some(of.clone()),
        _ => None,
    });
    types.next().or_else(|| Some(parse_quote!(())))
}

impl Argument {
    fn take(input: &mut PatType) -> syn::Result<Self> {
        let name = match &*input.pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => &name.ident,
            pattern => {
                return Err(syn::Error::new_spanned(
                    pattern,
                    "a tool's parameter needs a plain name, by which the model gives it: name it \
                     here, and take it apart in the body",
                ));
            }
        };
        let is_conditional = |attribute: &&Attribute| {
            attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
        };
        if let Some(conditional) = input.attrs.iter().find(is_conditional) {
            return Err(syn::Error::new_spanned(
                conditional,
                "a tool's parameter cannot depend on a configuration: write the function once for \
                 each, with the `#[cfg(..)]` on it",
            ));
        }
        let (attributes, rest) = std::mem::take(&mut input.attrs)
            .into_iter()
            .partition(is_for_field);
        input.attrs = rest;
        Ok(Self {
            name: name.clone(),
            of: (*input.ty).clone(),
            attributes,
        })
    }
}

fn is_for_field(attribute: &Attribute) -> bool {
    let path = attribute.path();
    ["doc", "serde", "schemars"]
        .iter()
        .any(|name| path.is_ident(name))
}

/// The value, or all that is wrong with it.
pub(crate) fn all_or<T>(value: T, problems: Vec<syn::Error>) -> syn::Result<T> {
    let all = problems.into_iter().reduce(|mut all, problem| {
        all.combine(problem);
        all
    });
    match all {
        None => Ok(value),
        Some(problems) => Err(problems),
    }
}
