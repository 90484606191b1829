//! What an agent can choose from: colleagues, tools, and what it knows.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use switchboard_core::{
    HANDOFF_PROMPT, HandoffSpec, Knowledge, ModelRequest, ToolSpec, default_tool_description,
};

use super::features::{Bag, Feature, bag_of};
use super::fields::words_of;
use super::index::Index;
use super::text::tokens;

/// How many boards are kept ready, and how many candidates they may have together.
const KEPT: usize = 32;
const LARGEST: usize = 20_000;
/// The longest text of one candidate that is read, in bytes.
const LONGEST: usize = 16_000;

/// What an agent can choose from, ready to be searched.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) handoffs: Arc<[HandoffSpec]>,
    pub(super) tools: Arc<[ToolSpec]>,
    pub(super) knowledge: Arc<[Knowledge]>,
    instructions: Option<Arc<str>>,
    pub(super) index: Index,
}

/// How well everything on a board fits a text.
#[derive(Debug)]
pub(super) struct Scores {
    pub(super) handoffs: Vec<f64>,
    pub(super) tools: Vec<f64>,
    pub(super) knowledge: Vec<f64>,
    /// The entries, by what they say and not by their field alone: a neighbouring question's
    /// answer is no answer.
    pub(super) answers: Vec<f64>,
    /// The agent's own instructions.
    pub(super) own: f64,
}

impl Scores {
    /// How well the best of all fits.
    pub(super) fn best(&self) -> f64 {
        let all = [&self.handoffs, &self.tools, &self.knowledge];
        all.into_iter().flatten().copied().fold(0.0, f64::max)
    }
}

impl Board {
    fn new(request: &ModelRequest) -> Self {
        let own = duties(request);
        let parameters: Vec<String> = request.tools.iter().map(parameters).collect();
        let names = request
            .tools
            .iter()
            .map(|tool| words_of(&tool.name).join(" "));
        let names: Vec<String> = names.collect();
        let handoffs = request.handoffs.iter().map(|handoff| {
            vec![
                (&*handoff.agent_name, 1.0),
                (cut(about_colleague(handoff)), 1.0),
            ]
        });
        let tools = request.tools.iter().zip(names.iter().zip(&parameters));
        let tools = tools.map(|(tool, (name, parameters))| {
            vec![
                (name.as_str(), 2.0),
                (cut(&tool.description), 1.0),
                (parameters.as_str(), 0.5),
            ]
        });
        let knowledge = request.knowledge.iter();
        let knowledge =
            knowledge.map(|entry| vec![(cut(&entry.title), 2.0), (cut(&entry.text), 0.5)]);
        let own = [vec![(own.as_str(), 1.0)]].into_iter();
        Self {
            index: Index::of(handoffs.chain(tools).chain(knowledge).chain(own)),
            handoffs: request.handoffs.clone(),
            tools: request.tools.clone(),
            knowledge: request.knowledge.clone(),
            instructions: request.instructions.clone(),
        }
    }

    /// How well everything fits.
    pub(super) fn scores(&self, query: &Bag) -> Scores {
        let mut all = self.index.scores(query).into_iter();
        Scores {
            handoffs: all.by_ref().take(self.handoffs.len()).collect(),
            tools: all.by_ref().take(self.tools.len()).collect(),
            knowledge: all.by_ref().take(self.knowledge.len()).collect(),
            answers: self.answers(query.clone()),
            own: all.next().unwrap_or_default(),
        }
    }

    /// What an entry would score if its title were asked for.
    pub(super) fn full_score(&self, entry: usize) -> f64 {
        let title = bag_of(&tokens(cut(&self.knowledge[entry].title)));
        self.answers(title)[entry]
    }

    fn answers(&self, mut query: Bag) -> Vec<f64> {
        query.retain(|feature, _| !matches!(feature, Feature::Topic(_)));
        let mut scores = self.index.scores(&query);
        scores.drain(..self.handoffs.len() + self.tools.len());
        scores.truncate(self.knowledge.len());
        scores
    }

    fn size(&self) -> usize {
        self.handoffs.len() + self.tools.len() + self.knowledge.len()
    }

    fn is_of(&self, request: &ModelRequest) -> bool {
        Arc::ptr_eq(&self.handoffs, &request.handoffs)
            && Arc::ptr_eq(&self.tools, &request.tools)
            && Arc::ptr_eq(&self.knowledge, &request.knowledge)
            && self.instructions == request.instructions
    }
}

/// The boards used last. An agent offers the same from turn to turn: reading it once is enough.
#[derive(Debug, Clone, Default)]
pub(super) struct Boards(Arc<Mutex<Vec<Arc<Board>>>>);

impl Boards {
    /// The board of a request.
    pub(super) fn of(&self, request: &ModelRequest) -> Arc<Board> {
        if let Some(board) = self.kept(request) {
            return board;
        }
        let board = Arc::new(Board::new(request));
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(board.clone());
        while kept.len() > KEPT || kept.iter().map(|board| board.size()).sum::<usize>() > LARGEST {
            kept.remove(0);
        }
        board
    }

    fn kept(&self, request: &ModelRequest) -> Option<Arc<Board>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|board| board.is_of(request)).cloned()
    }
}

/// What a colleague is for, without the words that every handoff has.
pub(super) fn about_colleague(handoff: &HandoffSpec) -> &str {
    let usual = default_tool_description(&handoff.agent_name, None);
    let text = &*handoff.tool_description;
    text.strip_prefix(usual.trim_end()).unwrap_or(text).trim()
}

/// What the instructions say the agent does itself: not what they say about passing on.
fn duties(request: &ModelRequest) -> String {
    let text = request.instructions.as_deref().unwrap_or_default();
    let text = text.strip_prefix(HANDOFF_PROMPT).unwrap_or(text);
    let sentences = cut(text).split(['.', '\n', '。', '；', ';']);
    let own = sentences.filter(|sentence| !speaks_of_passing_on(sentence, &request.handoffs));
    own.collect::<Vec<_>>().join("\n")
}

fn speaks_of_passing_on(sentence: &str, handoffs: &[HandoffSpec]) -> bool {
    let sentence = sentence.to_lowercase();
    let cues = [
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
        "colleague",
        "转接",
        "转给",
        "移交",
        "分流",
        "分诊",
        "交给",
    ];
    cues.iter().any(|cue| sentence.contains(cue))
        || handoffs
            .iter()
            .take(KEPT)
            .any(|handoff| sentence.contains(&handoff.agent_name.to_lowercase()))
}

/// The names of a tool's parameters, and what they are described as.
fn parameters(tool: &ToolSpec) -> String {
    let schema: Value = match tool.parameters.get() {
        long if long.len() > LONGEST => Value::Null,
        schema => serde_json::from_str(schema).unwrap_or_default(),
    };
    let properties = schema["properties"].as_object().into_iter().flatten();
    let texts = properties.map(|(name, part)| {
        let about = part["description"].as_str().unwrap_or_default();
        format!("{}, {}", words_of(name).join(" "), cut(about))
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
