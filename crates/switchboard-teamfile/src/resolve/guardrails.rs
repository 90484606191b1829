//! Resolves guardrails.

use indexmap::IndexMap;

use super::Resolver;
use crate::document::{Step, steps};
use crate::guardrails::{Guardrail, compile_pattern, word_patterns};
use crate::types::{DenyListSpec, GuardrailAction, GuardrailSpec};

impl Resolver<'_> {
    pub(super) fn guardrails(&mut self) -> IndexMap<String, Guardrail> {
        let mut guardrails = IndexMap::new();
        for (name, spec) in &self.spec.guardrails {
            if let Some(guardrail) = self.guardrail(name, spec) {
                guardrails.insert(name.clone(), guardrail);
            }
        }
        let run = &self.spec.run;
        self.check_guardrail_names(steps!["run", "input_guardrails"], &run.input_guardrails);
        self.check_guardrail_names(steps!["run", "output_guardrails"], &run.output_guardrails);
        self.validate_handoff_guardrails(
            steps!["run", "handoff_guardrails"],
            &run.handoff_guardrails,
        );
        guardrails
    }

    fn guardrail(&mut self, name: &str, spec: &GuardrailSpec) -> Option<Guardrail> {
        let mut patterns = Vec::new();
        for (index, pattern) in spec.patterns.iter().enumerate() {
            match compile_pattern(pattern) {
                Ok(_) => patterns.push(pattern.clone()),
                Err(error) => {
                    let path = steps!["guardrails", name, "patterns", index];
                    let message = format!("this pattern cannot be used: {}", reason(&error));
                    let help =
                        "patterns are regular expressions; in TOML write them in 'single quotes'";
                    self.report("bad-pattern", path, message, help);
                }
            }
        }
        let words = match &spec.deny {
            Some(DenyListSpec::Words(words)) => words.clone(),
            Some(DenyListSpec::File(file)) => {
                let content = self.files.read_text(file.reference());
                let text =
                    self.file_content(steps!["guardrails", name, "deny", "file"], content)?;
                text.lines().map(str::to_owned).collect()
            }
            None => Vec::new(),
        };
        let words: Vec<&str> = words
            .iter()
            .map(|word| word.trim())
            .filter(|word| !word.is_empty())
            .collect();
        patterns.extend(word_patterns(&words));
        let at = steps!["guardrails", name];
        if patterns.is_empty() && spec.patterns.is_empty() && spec.max_length.is_none() {
            let message = format!("the guardrail {name:?} looks for nothing");
            let help = "give it patterns, deny or max_length";
            self.report_name("empty-guardrail", at, message, help);
        }
        let message = spec.message.as_deref();
        Guardrail::new(name, &patterns, spec.max_length, spec.then, message)
            .map_err(|error| {
                let message = format!("its patterns cannot be used: {}", reason(&error));
                self.report_name("bad-pattern", at, message, "use fewer or shorter ones");
            })
            .ok()
    }

    pub(super) fn check_guardrail_names(&mut self, at: &[Step<'_>], names: &[String]) {
        let known = self.spec.guardrails.keys().map(String::as_str);
        for (index, name) in names.iter().enumerate() {
            if !self.spec.guardrails.contains_key(name) {
                let path = [at, steps![index]].concat();
                self.check_name("unknown-guardrail", &path, "guardrail", name, known.clone());
            }
        }
    }

    /// Reports guardrails of a handoff that redact, which they cannot.
    pub(super) fn validate_handoff_guardrails(&mut self, at: &[Step<'_>], names: &[String]) {
        self.check_guardrail_names(at, names);
        for (index, name) in names.iter().enumerate() {
            let guardrail = self.spec.guardrails.get(name);
            if guardrail.is_some_and(|guardrail| guardrail.then == GuardrailAction::Redact) {
                let path = [at, steps![index]].concat();
                let message = format!("{name:?} redacts, which a handoff's guardrail cannot");
                let help =
                    "use a filter: filters = [\"redact_pii\"], or one with patterns of your own";
                self.report("bad-guardrail", &path, message, help);
            }
        }
    }
}

/// Returns the last line of an error, which holds the reason; those before it show the pattern.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
