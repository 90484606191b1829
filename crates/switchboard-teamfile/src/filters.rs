//! Creates the filters that a file describes.

use switchboard_core::callback::BoxError;
use switchboard_core::filters::{self, Filter, IntoFilter as _, InvalidPattern, Pii, Redaction};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::model::ModelHandle;

use crate::context::Context;
use crate::types::{FilterSpec, PiiSpec, PlaceholdersSpec, RedactPiiSpec, RedactSpec};

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
        FilterSpec::RedactPiiWith(spec) => redaction(spec).into_filter(),
        FilterSpec::Redact(spec) => match pattern_redaction(spec) {
            Ok(redaction) => redaction.into_filter().named("redact"),
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

fn redaction(spec: &RedactPiiSpec) -> Redaction {
    let classes = |specs: &[PiiSpec]| specs.iter().copied().map(class).collect::<Vec<_>>();
    let mut redaction = Redaction::new();
    if let Some(only) = &spec.only {
        redaction = redaction.only(classes(only));
    }
    redaction = redaction.without(classes(&spec.without));
    for (class, placeholder) in placeholders(&spec.placeholders) {
        if let Some(placeholder) = placeholder {
            redaction = redaction.placeholder(class, placeholder.as_str());
        }
    }
    redaction
}

/// The names of the classes that a redaction hides, and of those that it has placeholders for.
pub(crate) fn hidden_classes(spec: &RedactPiiSpec) -> (Vec<&'static str>, Vec<&'static str>) {
    let all = Pii::ALL.into_iter();
    let names = |classes: &[PiiSpec]| {
        let names = classes.iter().map(|spec| class(*spec).name());
        names.collect::<Vec<_>>()
    };
    let only = spec.only.as_deref().map(names);
    let without = names(&spec.without);
    let hidden = all.map(Pii::name).filter(|name| {
        only.as_ref().is_none_or(|only| only.contains(name)) && !without.contains(name)
    });
    let placeholders = placeholders(&spec.placeholders).into_iter();
    let given = placeholders.filter(|(_, placeholder)| placeholder.is_some());
    (
        hidden.collect(),
        given.map(|(class, _)| class.name()).collect(),
    )
}

fn class(spec: PiiSpec) -> Pii {
    match spec {
        PiiSpec::Card => Pii::Card,
        PiiSpec::Iban => Pii::Iban,
        PiiSpec::Ssn => Pii::Ssn,
        PiiSpec::ResidentId => Pii::ResidentId,
        PiiSpec::Passport => Pii::Passport,
        PiiSpec::Email => Pii::Email,
        PiiSpec::Phone => Pii::Phone,
    }
}

fn placeholders(spec: &PlaceholdersSpec) -> [(Pii, Option<&String>); 7] {
    [
        (Pii::Card, spec.card.as_ref()),
        (Pii::Iban, spec.iban.as_ref()),
        (Pii::Ssn, spec.ssn.as_ref()),
        (Pii::ResidentId, spec.resident_id.as_ref()),
        (Pii::Passport, spec.passport.as_ref()),
        (Pii::Email, spec.email.as_ref()),
        (Pii::Phone, spec.phone.as_ref()),
    ]
}

pub(crate) fn pattern_redaction(spec: &RedactSpec) -> Result<Redaction, InvalidPattern> {
    let none = Redaction::new().only([]);
    let mut patterns = spec.patterns.iter();
    patterns.try_fold(none, |redaction, (pattern, placeholder)| {
        redaction.pattern(pattern, placeholder.as_str())
    })
}

fn size(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
