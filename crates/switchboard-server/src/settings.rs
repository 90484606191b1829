//! The settings of a server: from a file, the environment, and the command line.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

use crate::limits::Limits;

/// The beginning of the variables of the environment: `SWITCHBOARD_SERVE_PORT` is `port`.
pub const VARIABLE_PREFIX: &str = "SWITCHBOARD_SERVE_";

/// Declares the settings: one list for the file, the environment and the documentation.
macro_rules! settings {
    ($($(#[doc = $doc:literal])* $name:ident: $type:ty = $default:literal,)*) => {
        /// The settings of a server. `None` is the default.
        ///
        /// ```
        /// use switchboard_server::Settings;
        ///
        /// let file: Settings = "port = 9000\nruns = 64\n".parse()?;
        /// let mut settings = file;
        /// settings.set("port", "9001")?;
        /// assert_eq!((settings.port, settings.runs), (Some(9001), Some(64)));
        /// assert!("prot = 9000".parse::<Settings>().unwrap_err().to_string().contains("prot"));
        /// # Ok::<(), switchboard_server::SettingsError>(())
        /// ```
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct Settings {
            $($(#[doc = $doc])* pub $name: Option<$type>,)*
        }

        impl Settings {
            /// The names of all settings, with their defaults and descriptions.
            pub const ALL: &'static [(&'static str, &'static str, &'static str)] =
                &[$((stringify!($name), $default, concat!($($doc),*)),)*];

            /// Sets a setting from text.
            ///
            /// # Errors
            /// An error if there is no such setting, or the text is not of its type.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingsError> {
                match name {
                    $(stringify!($name) => self.$name = Some(parse(name, text)?),)*
                    _ => {
                        let known: Vec<&str> = Self::ALL.iter().map(|(name, _, _)| *name).collect();
                        let known = known.join(", ");
                        return Err(SettingsError(format!("there is no setting {name:?}, only {known}")));
                    }
                }
                Ok(())
            }

            /// Takes over what `other` sets.
            #[must_use]
            pub fn overridden_by(self, other: Self) -> Self {
                Self { $($name: other.$name.or(self.$name),)* }
            }
        }
    };
}

settings! {
    /// The address to listen on. Any but a loopback address needs keys.
    host: String = "127.0.0.1",
    /// The port; 0 is any free one.
    port: u16 = "8080",
    /// The address that clients reach the service by, such as `https://agents.example`, for agent cards of A2A.
    url: String = "the one that a client asked at",
    /// The file of keys. Without one, everybody who reaches the address may use the service.
    keys: String = "none",
    /// The store of conversations: `sqlite:PATH`, `postgres://…`, `redis://…` or `memory:`.
    store: String = "that of the team file, or else of the data folder",
    /// The PEM file with the chain of certificates, for TLS.
    tls_certificate: String = "none",
    /// The PEM file with the private key, for TLS.
    tls_key: String = "none",
    /// The seconds that runs have to end when the server is asked to end.
    drain_seconds: u64 = "25",
    /// The form of the log on standard error: `text`, `json` or `off`.
    log: String = "text",
    /// Writes messages and answers to the log.
    log_content: bool = "false",
    /// The models that browsers speak through: `realtime`, `provider` (speech to text and text to speech), `offline` (flite and pocketsphinx) or `none`.
    speech: String = "none",
    /// The realtime model.
    realtime_model: String = "OpenAI's current one",
    /// The model that writes down speech, with `speech = "provider"`.
    transcription_model: String = "gpt-transcribe",
    /// The model that speaks, with `speech = "provider"`.
    speech_model: String = "gpt-4o-mini-tts",
    /// The voices, separated by commas: `NAME` for all agents, or `AGENT=NAME`.
    voices: String = "the model's",
    /// Records what models, tools and handoffs were sent and what came back, in memory, for `/api/runs/RUN/recording`.
    record: bool = "false",
    /// The bytes of a request's body.
    body_bytes: usize = "8388608",
    /// The number of runs at once; more are refused with 503.
    runs: usize = "1024",
    /// The number of requests at once; more are refused with 503.
    requests: usize = "4096",
    /// The number of connections at once; more wait.
    connections: usize = "8192",
    /// The bytes of a request's head.
    header_bytes: usize = "32768",
    /// The seconds in which a request's head must arrive.
    header_seconds: u64 = "10",
    /// The seconds in which a request's body must arrive.
    body_seconds: u64 = "30",
    /// The seconds of a run; it is then stopped after its turn.
    run_seconds: u64 = "600",
    /// The seconds that such a turn has to end; the run is then stopped at once.
    stop_seconds: u64 = "30",
    /// The seconds for which a client may read nothing of what is sent to it.
    write_seconds: u64 = "60",
    /// The seconds for which a message waits for other runs of its conversation.
    wait_seconds: u64 = "30",
    /// The number of events of a run that are kept for clients that come back.
    events: usize = "20000",
    /// The bytes of these events.
    event_bytes: usize = "4194304",
    /// The seconds for which the events of a run that has ended are kept.
    keep_ended_seconds: u64 = "300",
    /// The number of runs that have ended whose events are kept.
    ended_runs: usize = "4096",
    /// The days for which responses of the Responses protocol and tasks of A2A are kept.
    keep_response_days: u64 = "30",
    /// The number of realtime sessions at once; more are refused with 503.
    realtime_sessions: usize = "256",
    /// The seconds of a realtime session; it is then ended.
    realtime_seconds: u64 = "3600",
}

/// The type of a setting.
trait Setting: FromStr {
    /// The values that there are, in words.
    const EXPECTED: &'static str;
}

impl Setting for String {
    const EXPECTED: &'static str = "it is text";
}

impl Setting for bool {
    const EXPECTED: &'static str = "it is true or false";
}

impl Setting for u16 {
    const EXPECTED: &'static str = "it is a number up to 65535";
}

impl Setting for u64 {
    const EXPECTED: &'static str = "it is a whole number";
}

impl Setting for usize {
    const EXPECTED: &'static str = "it is a whole number";
}

fn parse<T: Setting>(name: &str, text: &str) -> Result<T, SettingsError> {
    let parsed = text.trim().parse();
    parsed.map_err(|_| {
        let expected = T::EXPECTED;
        SettingsError(format!("the setting {name} cannot be {text:?}: {expected}"))
    })
}

/// A setting that cannot be used.
#[derive(Debug)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

impl FromStr for Settings {
    type Err = SettingsError;

    /// Reads settings in TOML.
    fn from_str(text: &str) -> Result<Self, SettingsError> {
        toml::from_str(text).map_err(|error| SettingsError(error.to_string()))
    }
}

impl Settings {
    /// Reads a file of settings in TOML.
    ///
    /// # Errors
    /// An error that names the file, the line and the setting.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| SettingsError(format!("{}: {error}", path.display())))?;
        let settings = text.parse::<Self>();
        settings.map_err(|error| SettingsError(format!("{}: {error}", path.display())))
    }

    /// Reads the settings among variables, those that begin with [`VARIABLE_PREFIX`].
    ///
    /// # Errors
    /// An error for a variable with that beginning that is no setting.
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        for (variable, value) in variables {
            if let Some(name) = variable.strip_prefix(VARIABLE_PREFIX) {
                let set = settings.set(&name.to_ascii_lowercase(), &value);
                set.map_err(|error| SettingsError(format!("{variable}: {error}")))?;
            }
        }
        Ok(settings)
    }

    /// The bounds of the service.
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        let seconds =
            |set: Option<u64>, default: Duration| set.map_or(default, Duration::from_secs);
        Limits {
            body_bytes: self.body_bytes.unwrap_or(default.body_bytes),
            runs: self.runs.unwrap_or(default.runs),
            requests: self.requests.unwrap_or(default.requests),
            connections: self.connections.unwrap_or(default.connections),
            header_bytes: self.header_bytes.unwrap_or(default.header_bytes),
            header_time: seconds(self.header_seconds, default.header_time),
            body_time: seconds(self.body_seconds, default.body_time),
            run_time: seconds(self.run_seconds, default.run_time),
            stop_time: seconds(self.stop_seconds, default.stop_time),
            write_time: seconds(self.write_seconds, default.write_time),
            conversation_wait: seconds(self.wait_seconds, default.conversation_wait),
            events: self.events.unwrap_or(default.events),
            event_bytes: self.event_bytes.unwrap_or(default.event_bytes),
            keep_ended: seconds(self.keep_ended_seconds, default.keep_ended),
            ended_runs: self.ended_runs.unwrap_or(default.ended_runs),
            keep_responses: seconds(
                self.keep_response_days
                    .map(|days| days.saturating_mul(24 * 60 * 60)),
                default.keep_responses,
            ),
            realtime_sessions: self.realtime_sessions.unwrap_or(default.realtime_sessions),
            realtime_time: seconds(self.realtime_seconds, default.realtime_time),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    #[test]
    fn the_defaults_that_are_documented_are_those_that_hold() {
        let mut settings = Settings::default();
        for (name, default, _) in &Settings::ALL[15..] {
            settings.set(name, default).unwrap();
        }
        assert_eq!(settings.limits(), Limits::default());
    }

    #[test]
    fn the_guide_has_every_setting_with_its_default() {
        let guide = include_str!("../../../docs/service.md");
        for (name, default, description) in Settings::ALL {
            let row = format!("| `{name}` | {default} | {} |", description.trim());
            assert!(guide.contains(&row), "docs/service.md lacks the row\n{row}");
        }
    }

    #[test]
    fn wrong_variables_are_told() {
        let variable = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        let set = Settings::from_variables(variable("SWITCHBOARD_SERVE_RUNS", "7")).unwrap();
        assert_eq!(set.runs, Some(7));
        assert_eq!(
            Settings::from_variables(variable("OTHER", "7")).unwrap(),
            Settings::default()
        );
        for (name, value) in [
            ("SWITCHBOARD_SERVE_RUN", "7"),
            ("SWITCHBOARD_SERVE_RUNS", "many"),
        ] {
            let error = Settings::from_variables(variable(name, value))
                .unwrap_err()
                .to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
