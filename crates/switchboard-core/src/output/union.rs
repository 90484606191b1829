//! The outputs that a team can end with, as one enum.

use std::any::TypeId;

use super::FinalOutput;

/// An enum with a variant for each output type of a team; made by
/// [`output_union!`](crate::output_union).
pub trait OutputUnion: Sized {
    /// The types of the variants, with their names.
    fn types() -> Vec<(TypeId, &'static str)>;

    /// Reads an output of a type; `None` if no variant has that type.
    fn read(of: TypeId, output: &FinalOutput) -> Option<Result<Self, ReadError>>;
}

/// Declares an enum over the output types of a team, so that the final output of a run is matched
/// instead of guessed. Each variant holds one type; `String` stands for agents that answer with text.
///
/// [`Team::check_output`](crate::Team::check_output) checks when the team is built that every agent
/// has a variant, and [`RunResult::output_of`](crate::RunResult::output_of) reads the output of a run
/// by the agent that gave it.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, Runner, Team, output_union};
///
/// #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
/// struct Bill { total: u32 }
///
/// output_union! {
///     /// The outputs of the team.
///     #[derive(Debug, PartialEq)]
///     enum Answer {
///         Text(String),
///         Bill(Bill),
///     }
/// }
///
/// # futures_util::FutureExt::now_or_never(async {
/// let team = Team::new()
///     .agent(Agent::new("Triage").handoff("Billing"))
///     .agent(Agent::<()>::new("Billing").output::<Bill>())
///     .build()?;
/// team.check_output::<Answer>()?;
///
/// let model = ScriptedModel::new().call("transfer_to_billing", "{}").say(r#"{"total": 12}"#);
/// let result = Runner::new(&team["Triage"]).model(model).run("My bill?").await?;
/// match result.output_of::<Answer>()? {
///     Answer::Bill(bill) => assert_eq!(bill.total, 12),
///     Answer::Text(text) => println!("{text}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap().unwrap();
/// ```
#[macro_export]
macro_rules! output_union {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$variant_attribute:meta])* $variant:ident($type:ty)),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$variant_attribute])* $variant($type)),+
        }

        impl $crate::output::OutputUnion for $name {
            fn types() -> ::std::vec::Vec<(::std::any::TypeId, &'static str)> {
                ::std::vec![$((::std::any::TypeId::of::<$type>(), ::std::stringify!($type))),+]
            }

            fn read(
                of: ::std::any::TypeId,
                output: &$crate::FinalOutput,
            ) -> ::std::option::Option<
                ::std::result::Result<Self, $crate::output::ReadError>,
            > {
                $(if of == ::std::any::TypeId::of::<$type>() {
                    let read = $crate::output::read_as::<$type>(output);
                    return ::std::option::Option::Some(read.map(Self::$variant));
                })+
                ::std::option::Option::None
            }
        }
    };
}

/// The error of an output that does not match its type.
pub type ReadError = serde_json::Error;

/// Reads an output as a `T`; text as a `String`.
#[doc(hidden)]
pub fn read_as<T: serde::de::DeserializeOwned>(output: &FinalOutput) -> Result<T, ReadError> {
    T::deserialize(output.to_value())
}

/// The reason why a final output is none of a union's types.
#[derive(Debug)]
pub struct NotInUnion(pub(crate) String);

impl_error!(NotInUnion, |error| "{}", error.0);
