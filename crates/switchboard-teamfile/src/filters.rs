//! Creates the filters that a file describes.

use switchboard_core::callback::BoxError;
use switchboard_core::filters::{self, Filter, IntoFilter as _, InvalidPattern, Redaction};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::model::ModelHandle;

use crate::context::Context;
use crate::types::{FilterSpec, RedactSpec};

/// Creates a filter that applies all of these in order; `None` if there are none. `model` returns the
/// model of a name.
pub(crate) fn chain<E>(
    specs: &[FilterSpec],
    model: &mut impl FnMut(&str) -> Result<ModelHandle, E>,
) -> Result<Option<Filter<Context>>, E> {
    let filters = specs.iter().map(|spec| filter(spec, model));
    let filters: Vec<Filter<Context>> = filters.collect::<Result<_, _>>()?;
    Ok(filters.into_iter().reduce(|chain, next| chain.then(next)))
}

fn filter<E>(
    spec: &FilterSpec,
    model: &mut impl FnMut(&str) -> Result<ModelHandle, E>,
) -> Result<Filter<Context>, E> {
    Ok(match spec {
        FilterSpec::RemoveAllTools => filters::remove_all_tools(),
        FilterSpec::DropReasoning => filters::drop_reasoning(),
        FilterSpec::Payload => filters::payload(),
        FilterSpec::NestHistory => filters::nest_history(),
        FilterSpec::RedactPii => filters::redact_pii(),
        FilterSpec::Redact(spec) => match redaction(spec) {
            Ok(redaction) => redaction.into_filter(),
            // Patterns are checked when the file is read; should one fail here, the handoff fails.
            Err(error) => Filter::new(move |_: HandoffInputData<Context>| {
                Err::<HandoffInputData<Context>, BoxError>(error.clone().into())
            }),
        },
        FilterSpec::KeepLast(count) => filters::keep_last(size(*count)),
        FilterSpec::KeepFirstAndLast(both) => {
            filters::keep_first_and_last(size(both.first), size(both.last))
        }
        FilterSpec::TokenBudget(tokens) => filters::token_budget(size(*tokens)),
        FilterSpec::Note(note) => {
            let note = note.clone();
            filters::note(move |_: &HandoffInputData<Context>| note.clone())
        }
        FilterSpec::Summarize(summary) => {
            filters::summarize(model(&summary.model)?, size(summary.keep_last))
        }
    })
}

pub(crate) fn redaction(spec: &RedactSpec) -> Result<Redaction, InvalidPattern> {
    let mut redaction = Redaction::new();
    if spec.card_numbers {
        redaction = redaction.card_numbers();
    }
    if spec.social_security_numbers {
        redaction = redaction.social_security_numbers();
    }
    if spec.emails {
        redaction = redaction.emails();
    }
    if spec.phone_numbers {
        redaction = redaction.phone_numbers();
    }
    for (pattern, placeholder) in &spec.patterns {
        redaction = redaction.pattern(pattern, placeholder.as_str())?;
    }
    Ok(redaction)
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
