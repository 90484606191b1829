//! The candidates of a decision: an agent's handoffs, tools and knowledge.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use switchboard_core::ModelRequest;
use switchboard_core::agent::Knowledge;
use switchboard_core::handoff::{HANDOFF_PROMPT, default_tool_description};
use switchboard_core::model::{HandoffSpec, ToolSpec};

use crate::features::{Bag, Feature, bag_of};
use crate::index::Index;
use crate::text::{identifier_words, tokenize};

/// The maximum number of agents in the cache.
const MAX_CACHED: usize = 32;
/// The maximum number of candidates in the cache, of all agents together.
const MAX_CACHED_CANDIDATES: usize = 20_000;
/// The maximum number of bytes of a text that are read.
const MAX_TEXT: usize = 16_000;
/// The maximum number of knowledge entries of another agent that are read.
const MAX_KNOWLEDGE: usize = 500;
/// The weight of texts that mention more than their subject: answers, and the parameters of tools.
const TEXT_WEIGHT: f64 = 0.5;
/// The maximum number of agent names that are looked for in the instructions.
const MAX_AGENT_NAMES: usize = 32;

/// The handoffs, tools and knowledge of an agent, indexed.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) handoffs: Arc<[HandoffSpec]>,
    pub(crate) tools: Arc<[ToolSpec]>,
    pub(crate) knowledge: Arc<[Knowledge]>,
    instructions: Option<Arc<str>>,
    pub(crate) index: Index,
}

/// The scores of all candidates for a query.
#[derive(Debug)]
pub(crate) struct Scores {
    pub(crate) handoffs: Vec<f64>,
    /// The handoffs scored without topics: a common topic alone is no reason to hand over.
    pub(crate) handoffs_without_topics: Vec<f64>,
    pub(crate) tools: Vec<f64>,
    /// The handoffs and tools scored by words alone: zero if they have none of the message.
    pub(crate) handoff_words: Vec<f64>,
    pub(crate) tool_words: Vec<f64>,
    pub(crate) knowledge: Vec<f64>,
    /// The knowledge entries scored without topics: an entry on the same topic does not have to
    /// answer the question.
    pub(crate) answers: Vec<f64>,
    /// The score of the agent's own instructions.
    pub(crate) instructions: f64,
}

impl Scores {
    /// Returns the highest score of a handoff, tool or knowledge entry.
    pub(crate) fn best(&self) -> f64 {
        let all = [&self.handoffs, &self.tools, &self.knowledge];
        all.into_iter().flatten().copied().fold(0.0, f64::max)
    }
}

impl Candidates {
    fn new(request: &ModelRequest) -> Self {
        let handoffs = request.handoffs.iter().map(|handoff| {
            let knowledge = handoff.knowledge.iter().take(MAX_KNOWLEDGE);
            let knowledge =
                knowledge.flat_map(|entry| [(&*entry.title, 1.0), (&*entry.text, TEXT_WEIGHT)]);
            [(&*handoff.to, 1.0), (agent_description(handoff), 1.0)]
                .into_iter()
                .chain(knowledge)
                .map(|(text, weight)| (truncate(text), weight))
                .collect()
        });
        let tool_texts: Vec<(String, String)> = request
            .tools
            .iter()
            .map(|tool| (identifier_words(&tool.name).join(" "), parameters(tool)))
            .collect();
        let tools = request.tools.iter().zip(&tool_texts);
        let tools = tools.map(|(tool, (name, parameters))| {
            vec![
                (name.as_str(), 1.0),
                (truncate(&tool.description), 1.0),
                (parameters.as_str(), TEXT_WEIGHT),
            ]
        });
        let knowledge = request.knowledge.iter().map(|entry| {
            vec![
                (truncate(&entry.title), 2.0),
                (truncate(&entry.text), TEXT_WEIGHT),
            ]
        });
        let duties = duties(request);
        let instructions = [vec![(duties.as_str(), 1.0)]];
        Self {
            index: Index::new(handoffs.chain(tools).chain(knowledge).chain(instructions)),
            handoffs: request.handoffs.clone(),
            tools: request.tools.clone(),
            knowledge: request.knowledge.clone(),
            instructions: request.instructions.clone(),
        }
    }

    /// Returns the scores of all candidates for `query`.
    pub(crate) fn scores(&self, query: &Bag) -> Scores {
        let mut all = self.index.scores(query).into_iter();
        let without_topics = self.scores_without_topics(query);
        let mut words = query.clone();
        words.retain(|feature, _| matches!(feature, Feature::Word(_) | Feature::Pair(..)));
        let mut by_words = self.index.scores(&words).into_iter();
        Scores {
            handoff_words: by_words.by_ref().take(self.handoffs.len()).collect(),
            tool_words: by_words.take(self.tools.len()).collect(),
            handoffs: all.by_ref().take(self.handoffs.len()).collect(),
            tools: all.by_ref().take(self.tools.len()).collect(),
            knowledge: all.by_ref().take(self.knowledge.len()).collect(),
            answers: without_topics[self.first_entry()..][..self.knowledge.len()].to_vec(),
            handoffs_without_topics: without_topics[..self.handoffs.len()].to_vec(),
            instructions: all.next().unwrap_or_default(),
        }
    }

    /// Returns the score that a knowledge entry has for its own title.
    pub(crate) fn full_score(&self, entry: usize) -> f64 {
        let title = bag_of(&tokenize(truncate(&self.knowledge[entry].title)));
        self.scores_without_topics(&title)[self.first_entry() + entry]
    }

    /// Returns the scores of all candidates without topics, in the order of the index.
    fn scores_without_topics(&self, query: &Bag) -> Vec<f64> {
        let mut query = query.clone();
        query.retain(|feature, _| !matches!(feature, Feature::Topic(_)));
        self.index.scores(&query)
    }

    /// The position of the first knowledge entry in the index.
    fn first_entry(&self) -> usize {
        self.handoffs.len() + self.tools.len()
    }

    fn len(&self) -> usize {
        self.handoffs.len() + self.tools.len() + self.knowledge.len()
    }

    fn are_of(&self, request: &ModelRequest) -> bool {
        Arc::ptr_eq(&self.handoffs, &request.handoffs)
            && Arc::ptr_eq(&self.tools, &request.tools)
            && Arc::ptr_eq(&self.knowledge, &request.knowledge)
            && self.instructions == request.instructions
    }
}

/// A cache of the candidates of recent requests. They seldom change between an agent's turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct CandidateCache(Arc<Mutex<Vec<Arc<Candidates>>>>);

impl CandidateCache {
    /// Returns the candidates of a request, indexing them if they are not cached.
    pub(crate) fn get(&self, request: &ModelRequest) -> Arc<Candidates> {
        if let Some(candidates) = self.cached(request) {
            return candidates;
        }
        // Not under the lock: indexing takes time.
        let candidates = Arc::new(Candidates::new(request));
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.push(candidates.clone());
        while cache.len() > MAX_CACHED
            || cache.iter().map(|entry| entry.len()).sum::<usize>() > MAX_CACHED_CANDIDATES
        {
            cache.remove(0);
        }
        candidates
    }

    fn cached(&self, request: &ModelRequest) -> Option<Arc<Candidates>> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.iter().find(|entry| entry.are_of(request)).cloned()
    }
}

/// Returns the description of a handoff's agent, without the default text of every handoff.
pub(crate) fn agent_description(handoff: &HandoffSpec) -> &str {
    let default = default_tool_description(&handoff.to, None);
    let text = &*handoff.tool_description;
    text.strip_prefix(default.trim_end()).unwrap_or(text).trim()
}

/// Returns the sentences of the instructions that are not about handing off.
fn duties(request: &ModelRequest) -> String {
    let text = request.instructions.as_deref().unwrap_or_default();
    let text = text.strip_prefix(HANDOFF_PROMPT).unwrap_or(text);
    truncate(text)
        .split(['.', '\n', '。', '；', ';'])
        .filter(|sentence| !is_about_handoffs(sentence, &request.handoffs))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_about_handoffs(sentence: &str, handoffs: &[HandoffSpec]) -> bool {
    const TERMS: [&str; 26] = [
        "route",
        "routing",
        "hand off",
        "handoff",
        "hand over",
        "transfer",
        "triage",
        "delegate",
        "refer ",
        "forward",
        "pass the conversation",
        "pass them",
        "pass people",
        "pass customers",
        "put people through",
        "send people",
        "send them",
        "colleague",
        "转接",
        "转给",
        "移交",
        "分流",
        "分诊",
        "交给",
        "转到",
        "对应窗口",
    ];
    let sentence = sentence.to_lowercase();
    TERMS.iter().any(|term| sentence.contains(term))
        || handoffs
            .iter()
            .take(MAX_AGENT_NAMES)
            .any(|handoff| sentence.contains(&handoff.to.to_lowercase()))
}

/// Returns the names and descriptions of a tool's parameters.
fn parameters(tool: &ToolSpec) -> String {
    let schema: Value = match tool.parameters.get() {
        long if long.len() > MAX_TEXT => Value::Null,
        schema => serde_json::from_str(schema).unwrap_or_default(),
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let texts = properties.map(|(name, property)| {
        let description = property["description"].as_str().unwrap_or_default();
        format!(
            "{}, {}",
            identifier_words(name).join(" "),
            truncate(description)
        )
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn truncate(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
