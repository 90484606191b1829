//! Parses the parameters of the function: the context and the arguments of the call.

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

/// A parameter that is an argument of the call.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) of: Type,
    /// The attributes of the field: doc comments, `#[serde(..)]`, `#[schemars(..)]`.
    pub(crate) attributes: Vec<Attribute>,
}

impl Parameters {
    /// Parses the parameters, and removes the attributes that belong on the fields of the arguments.
    pub(crate) fn take(inputs: &mut Punctuated<FnArg, Token![,]>) -> syn::Result<Self> {
        let mut parameters = Self::default();
        let mut problems = Vec::new();
        for (position, input) in inputs.iter_mut().enumerate() {
            problems.extend(parameters.add(position, input).err());
        }
        ok_unless(parameters, problems)
    }

    fn add(&mut self, position: usize, input: &mut FnArg) -> syn::Result<()> {
        let input = match input {
            FnArg::Typed(input) => input,
            FnArg::Receiver(receiver) => {
                return Err(syn::Error::new_spanned(
                    receiver,
                    "a tool cannot take `self`: make it a free function, and keep its state in the \
                     run's context, available through a first parameter `ctx: ToolContext<..>`",
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
                "the `ToolContext` must be the first parameter",
            )),
            Kind::Argument => {
                self.arguments.push(Argument::take(input)?);
                Ok(())
            }
            Kind::Invalid(advice) => Err(syn::Error::new_spanned(&input.ty, advice)),
        }
    }
}

enum Kind {
    Context(Box<Type>),
    Argument,
    Invalid(&'static str),
}

impl Kind {
    fn of(of: &Type) -> Self {
        match of {
            Type::Reference(of) => match Self::of(&of.elem) {
                Self::Context(_) => {
                    Self::Invalid("take the context by value: `ToolContext<..>`, without `&`")
                }
                _ => Self::Invalid(
                    "arguments are parsed from JSON and must be owned: take `String` for `&str`, \
                     `Vec<T>` for `&[T]`, `T` for `&T`",
                ),
            },
            Type::ImplTrait(_) => Self::Invalid(
                "a tool cannot take `impl Trait`: name the type, which defines the schema of the \
                 argument",
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
                    "a tool's parameter needs a plain name, which is the name of the argument: name \
                     it here, and destructure it in the body",
                ));
            }
        };
        let is_conditional = |attribute: &&Attribute| {
            attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
        };
        if let Some(conditional) = input.attrs.iter().find(is_conditional) {
            return Err(syn::Error::new_spanned(
                conditional,
                "a tool's parameter cannot have a `#[cfg(..)]`: write one function for each \
                 configuration, with the `#[cfg(..)]` on it",
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

/// Returns the value, or all problems combined if there are any.
pub(crate) fn ok_unless<T>(value: T, problems: Vec<syn::Error>) -> syn::Result<T> {
    let combined = problems.into_iter().reduce(|mut all, problem| {
        all.combine(problem);
        all
    });
    combined.map_or(Ok(value), Err)
}
