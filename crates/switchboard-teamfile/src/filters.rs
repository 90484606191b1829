//! Filters of a file.

use switchboard_core::filters::{self, Filter, IntoFilter as _, InvalidPattern, Redaction};
use switchboard_core::{BoxError, HandoffInputData, ModelHandle};

use crate::context::Context;
use crate::types::{FilterShape, RedactShape};

/// Filters one after the other; none where there are none. `model` gives the model of a name.
pub(crate) fn chain<E>(
    shapes: &[FilterShape],
    model: &mut impl FnMut(&str) -> Result<ModelHandle, E>,
) -> Result<Option<Filter<Context>>, E> {
    let mut chain: Option<Filter<Context>> = None;
    for shape in shapes {
        let filter = one(shape, model)?;
        chain = Some(match chain {
            Some(before) => before.then(filter),
            None => filter,
        });
    }
    Ok(chain)
}

fn one<E>(
    shape: &FilterShape,
    model: &mut impl FnMut(&str) -> Result<ModelHandle, E>,
) -> Result<Filter<Context>, E> {
    Ok(match shape {
        FilterShape::RemoveAllTools => filters::remove_all_tools(),
        FilterShape::DropReasoning => filters::drop_reasoning(),
        FilterShape::NestHistory => filters::nest_history(),
        FilterShape::RedactPii => filters::redact_pii(),
        FilterShape::Redact(shape) => match redaction(shape) {
            Ok(redaction) => redaction.into_filter(),
            // Its patterns were tried when the file was read; should one fail now, nothing is carried.
            Err(error) => Filter::new(move |_: HandoffInputData<Context>| {
                Err::<HandoffInputData<Context>, BoxError>(error.clone().into())
            }),
        },
        FilterShape::KeepLast(count) => filters::keep_last(size(*count)),
        FilterShape::KeepFirstAndLast(both) => {
            filters::keep_first_and_last(size(both.first), size(both.last))
        }
        FilterShape::TokenBudget(tokens) => filters::token_budget(size(*tokens)),
        FilterShape::Note(note) => {
            let note = note.clone();
            filters::note(move |_: &HandoffInputData<Context>| note.clone())
        }
        FilterShape::Summarize(summary) => {
            filters::summarize(model(&summary.model)?, size(summary.keep_last))
        }
    })
}

/// What a redaction takes out.
pub(crate) fn redaction(shape: &RedactShape) -> Result<Redaction, InvalidPattern> {
    let mut redaction = Redaction::new();
    if shape.card_numbers {
        redaction = redaction.card_numbers();
    }
    if shape.social_security_numbers {
        redaction = redaction.social_security_numbers();
    }
    if shape.emails {
        redaction = redaction.emails();
    }
    if shape.phone_numbers {
        redaction = redaction.phone_numbers();
    }
    for (pattern, placeholder) in &shape.patterns {
        redaction = redaction.pattern(pattern, placeholder.as_str())?;
    }
    Ok(redaction)
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
