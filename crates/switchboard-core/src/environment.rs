//! Defaults from the environment, under the names of the reference. They are read once.

use std::sync::LazyLock;

/// The settings that the environment of the process makes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    /// No spans are made, whatever the settings of a run.
    pub(crate) disables_tracing: bool,
    /// The default of [`RunConfig::trace_sensitive_data`](crate::RunConfig::trace_sensitive_data).
    pub(crate) traces_sensitive_data: bool,
    /// Warnings may quote the errors of models.
    pub(crate) logs_model_data: bool,
    /// Warnings may quote the errors of tools.
    pub(crate) logs_tool_data: bool,
}

impl Environment {
    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str, words: &[&str]| {
            let value = variable(name)?.trim().to_lowercase();
            Some(words.contains(&value.as_str()))
        };
        let (short, long) = (["1", "true"], ["1", "true", "yes", "on"]);
        Self {
            disables_tracing: is_set("OPENAI_AGENTS_DISABLE_TRACING", &short).unwrap_or(false),
            traces_sensitive_data: is_set("OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA", &long)
                .unwrap_or(true),
            logs_model_data: !is_set("OPENAI_AGENTS_DONT_LOG_MODEL_DATA", &short).unwrap_or(true),
            logs_tool_data: !is_set("OPENAI_AGENTS_DONT_LOG_TOOL_DATA", &short).unwrap_or(true),
        }
    }
}

/// The environment when it was first asked for.
pub(crate) fn environment() -> &'static Environment {
    static READ: LazyLock<Environment> =
        LazyLock::new(|| Environment::read(|name| std::env::var(name).ok()));
    &READ
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: &str) -> Environment {
        Environment::read(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn without_variables_traces_are_complete_and_warnings_quote_no_tool() {
        let expected = Environment {
            disables_tracing: false,
            traces_sensitive_data: true,
            logs_model_data: false,
            logs_tool_data: false,
        };
        assert_eq!(Environment::read(|_| None), expected);
    }

    #[test]
    fn each_variable_understands_the_words_of_the_reference() {
        for (value, is_on) in [("1", true), ("TRUE", true), ("yes", false), ("0", false)] {
            let off = of("OPENAI_AGENTS_DISABLE_TRACING", value);
            assert_eq!(off.disables_tracing, is_on, "{value}");
            let silent = of("OPENAI_AGENTS_DONT_LOG_TOOL_DATA", value);
            assert_eq!(silent.logs_tool_data, !is_on, "{value}");
        }
        for (value, is_on) in [(" On ", true), ("yes", true), ("false", false), ("", false)] {
            let traced = of("OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA", value);
            assert_eq!(traced.traces_sensitive_data, is_on, "{value}");
        }
    }
}
