//! The tools that OpenAI runs over the Responses API.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use switchboard_core::Tool;
use switchboard_core::tool::HostedTool;

/// Implements the conversions of a tool that has the fields `config` and `include`, and a setter for
/// fields that this version does not know.
macro_rules! hosted_tool {
    ($type:ident: Default) => {
        hosted_tool!($type);

        impl Default for $type {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    ($type:ident) => {
        impl $type {
            /// Sets another field of the tool's configuration.
            pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
                self.0.set(name, value);
                self
            }
        }

        impl From<$type> for HostedTool {
            fn from(tool: $type) -> Self {
                tool.0.build()
            }
        }

        impl<C> From<$type> for Tool<C> {
            fn from(tool: $type) -> Self {
                Self::hosted(tool)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($type))
            }
        }
    };
}

/// The configuration of a tool under construction.
#[derive(Clone)]
struct Config {
    fields: Map<String, Value>,
    include: Option<&'static str>,
    name: Option<Arc<str>>,
}

impl Config {
    fn new(kind: &str) -> Self {
        let mut config = Self {
            fields: Map::new(),
            include: None,
            name: None,
        };
        config.set("type", kind);
        config
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    fn build(self) -> HostedTool {
        let mut tool = HostedTool::new(self.fields);
        if let Some(field) = self.include {
            tool = tool.include(field);
        }
        match self.name {
            Some(name) => tool.named(name),
            None => tool,
        }
    }
}

fn strings<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Value {
    texts.into_iter().map(Into::into).collect()
}

/// A search of the web.
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_models::WebSearch;
///
/// let agent: Agent = Agent::new("Researcher")
///     .tool(WebSearch::new().context_size("low").allowed_domains(["rust-lang.org"]));
/// ```
///
/// With a condition or a title, it is finished by the builder of tools:
///
/// ```
/// use switchboard_core::{Agent, tool};
/// use switchboard_models::WebSearch;
///
/// struct App { may_search: bool }
///
/// let search = tool::<App>("search").enabled_if(|ctx, _agent| ctx.may_search).hosted(WebSearch::new());
/// let agent = Agent::new("Researcher").tool(search);
/// ```
#[derive(Clone)]
#[must_use]
pub struct WebSearch(Config);

hosted_tool!(WebSearch: Default);

impl WebSearch {
    /// A search with the settings of the provider.
    pub fn new() -> Self {
        Self(Config::new("web_search"))
    }

    /// Sets how much of what is found the model gets: `low`, `medium` or `high`.
    pub fn context_size(self, size: &str) -> Self {
        self.field("search_context_size", size)
    }

    /// Searches these domains only, and what is below them.
    pub fn allowed_domains<T: Into<String>>(self, domains: impl IntoIterator<Item = T>) -> Self {
        self.field("filters", json!({"allowed_domains": strings(domains)}))
    }

    /// Sets the approximate place of the user: the country as two letters, and a city.
    pub fn user_location(self, country: &str, city: Option<&str>) -> Self {
        let mut location = json!({"type": "approximate", "country": country});
        if let Some(city) = city {
            location["city"] = city.into();
        }
        self.field("user_location", location)
    }

    /// Sets whether the search may fetch live pages, or only what is indexed.
    pub fn live_access(self, is_live: bool) -> Self {
        self.field("external_web_access", is_live)
    }

    /// Searches for images beside text, and asks for them in the items of the response.
    pub fn images(mut self) -> Self {
        self.0.include = Some("web_search_call.results");
        self.field("search_content_types", json!(["text", "image"]))
    }
}

/// A search in files that were uploaded to the provider.
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_models::FileSearch;
///
/// let agent: Agent = Agent::new("Librarian")
///     .tool(FileSearch::new(["vs_123"]).max_results(5).include_results());
/// ```
#[derive(Clone)]
#[must_use]
pub struct FileSearch(Config);

hosted_tool!(FileSearch);

impl FileSearch {
    /// A search in these vector stores.
    pub fn new<T: Into<String>>(vector_stores: impl IntoIterator<Item = T>) -> Self {
        let mut config = Config::new("file_search");
        config.set("vector_store_ids", strings(vector_stores));
        Self(config)
    }

    /// Limits the results; the provider takes 1 to 50.
    pub fn max_results(self, count: u8) -> Self {
        self.field("max_num_results", count)
    }

    /// Sets the filter on the files' attributes, in the provider's form.
    pub fn filters(self, filters: impl Into<Value>) -> Self {
        self.field("filters", filters)
    }

    /// Sets the options of the ranking, in the provider's form.
    pub fn ranking(self, options: impl Into<Value>) -> Self {
        self.field("ranking_options", options)
    }

    /// Asks for the results in the items of the response.
    pub fn include_results(mut self) -> Self {
        self.0.include = Some("file_search_call.results");
        self
    }
}

/// Python code that the model writes and the provider runs in a container.
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_models::CodeInterpreter;
///
/// let agent: Agent = Agent::new("Analyst").tool(CodeInterpreter::new());
/// ```
#[derive(Clone)]
#[must_use]
pub struct CodeInterpreter(Config);

hosted_tool!(CodeInterpreter: Default);

impl CodeInterpreter {
    /// Code in a container that the provider makes.
    pub fn new() -> Self {
        let mut config = Config::new("code_interpreter");
        config.set("container", json!({"type": "auto"}));
        Self(config)
    }

    /// Runs the code in this container.
    pub fn container(self, id: &str) -> Self {
        self.field("container", id)
    }

    /// Gives uploaded files to a container that the provider makes.
    pub fn files<T: Into<String>>(self, ids: impl IntoIterator<Item = T>) -> Self {
        let container = json!({"type": "auto", "file_ids": strings(ids)});
        self.field("container", container)
    }

    /// Asks for the outputs of the code in the items of the response.
    pub fn include_outputs(mut self) -> Self {
        self.0.include = Some("code_interpreter_call.outputs");
        self
    }
}

/// Images that the provider makes from the model's descriptions. An image is in the `result` of its
/// item.
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_models::ImageGeneration;
///
/// let agent: Agent = Agent::new("Artist").tool(ImageGeneration::new().size("1024x1024"));
/// ```
#[derive(Clone)]
#[must_use]
pub struct ImageGeneration(Config);

hosted_tool!(ImageGeneration: Default);

impl ImageGeneration {
    /// Images with the settings of the provider.
    pub fn new() -> Self {
        Self(Config::new("image_generation"))
    }

    /// Sets the size: `1024x1024`, `auto`, or another of the model.
    pub fn size(self, size: &str) -> Self {
        self.field("size", size)
    }

    /// Sets the quality: `low`, `medium`, `high` or `auto`.
    pub fn quality(self, quality: &str) -> Self {
        self.field("quality", quality)
    }

    /// Sets the format: `png`, `webp` or `jpeg`.
    pub fn format(self, format: &str) -> Self {
        self.field("output_format", format)
    }

    /// Sets the background: `transparent`, `opaque` or `auto`.
    pub fn background(self, background: &str) -> Self {
        self.field("background", background)
    }
}

/// The tools of an MCP server that the provider calls itself. Its name is the label of the server.
///
/// By default the provider asks for approval before each call, which interrupts the run until a
/// person decides (`switchboard_core::approval`).
/// [`without_approval`](Self::without_approval) trusts the server, or some of its tools.
///
/// ```
/// use switchboard_core::Agent;
/// use switchboard_models::HostedMcp;
///
/// let docs = HostedMcp::new("docs", "https://example.com/mcp")
///     .allowed_tools(["search"])
///     .without_approval();
/// let agent: Agent = Agent::new("Librarian").tool(docs);
/// ```
#[derive(Clone)]
#[must_use]
pub struct HostedMcp(Config);

hosted_tool!(HostedMcp);

impl HostedMcp {
    /// The server at an address, under this label.
    pub fn new(label: impl Into<Arc<str>>, url: &str) -> Self {
        Self::labelled(label.into(), "server_url", url)
    }

    /// A connector of the provider, under this label.
    pub fn connector(label: impl Into<Arc<str>>, id: &str) -> Self {
        Self::labelled(label.into(), "connector_id", id)
    }

    fn labelled(label: Arc<str>, field: &str, value: &str) -> Self {
        let mut config = Config::new("mcp");
        config.set("server_label", &*label);
        config.set(field, value);
        config.name = Some(label);
        Self(config)
    }

    /// Sets the description of the server for the model.
    pub fn description(self, description: &str) -> Self {
        self.field("server_description", description)
    }

    /// Offers only these of the server's tools.
    pub fn allowed_tools<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        self.field("allowed_tools", strings(names))
    }

    /// Lets the provider call all tools of the server without approval.
    pub fn without_approval(self) -> Self {
        self.field("require_approval", "never")
    }

    /// Lets the provider call these tools without approval.
    pub fn without_approval_of<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        let approval = json!({"never": {"tool_names": strings(names)}});
        self.field("require_approval", approval)
    }

    /// Sets the access token for the server. It is in no error, log or `Debug` output.
    pub fn authorization(self, token: &str) -> Self {
        self.field("authorization", token)
    }

    /// Sets the headers of the provider's requests to the server. They are in no error, log or
    /// `Debug` output.
    pub fn headers<K: Into<String>, V: Into<String>>(
        self,
        headers: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let headers = headers
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        let headers: BTreeMap<String, String> = headers.collect();
        self.field("headers", json!(headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_for_images_asks_for_their_results() {
        let tool = HostedTool::from(WebSearch::new().images().live_access(false));
        let config = json!({
            "type": "web_search",
            "search_content_types": ["text", "image"],
            "external_web_access": false,
        });
        assert_eq!(tool.config(), &config);
        let included: Vec<&str> = tool.included().iter().map(|field| &**field).collect();
        assert_eq!(included, ["web_search_call.results"]);
    }

    #[test]
    fn other_fields_can_be_set() {
        let tool = HostedTool::from(ImageGeneration::new().field("moderation", "low"));
        let config = json!({"type": "image_generation", "moderation": "low"});
        assert_eq!(tool.config(), &config);
    }
}
