//! One team of customer support.
//!
//! `data/routing.json` holds a team and a test set, which the model was not tuned on;
//! `data/routing_dev.json` holds the messages it was tuned with.

use std::collections::BTreeMap;

use serde::Deserialize;
use switchboard_core::agent::Knowledge;
use switchboard_core::{Agent, Runner};
use switchboard_offline::OfflineModel;

const TEAM: &str = include_str!("../data/routing.json");
const DEV: &str = include_str!("../data/routing_dev.json");
const TRIAGE: &str = "Triage";

#[derive(Deserialize)]
struct Data {
    #[serde(default)]
    agents: Vec<Specialist>,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Specialist {
    name: String,
    handoff_description: Description,
    knowledge: Vec<Entry>,
}

#[derive(Deserialize)]
struct Description {
    en: String,
    zh: String,
}

#[derive(Deserialize)]
struct Entry {
    q: String,
    a: String,
}

#[derive(Deserialize)]
struct Message {
    text: String,
    /// The right agent. `None`: no specialist's, it stays with Triage.
    agent: Option<String>,
    lang: String,
}

fn data(json: &str) -> Data {
    serde_json::from_str(json).unwrap()
}

fn team() -> Agent {
    let triage = Agent::new(TRIAGE).instructions(
        "Greet the user, find out what they need, and route them to the right colleague.",
    );
    data(TEAM)
        .agents
        .into_iter()
        .fold(triage, |triage, specialist| {
            let Description { en, zh } = &specialist.handoff_description;
            let agent = Agent::new(specialist.name).handoff_description(format!("{en}\n{zh}"));
            let entries = specialist.knowledge.into_iter();
            triage.handoff(entries.fold(agent, |agent, entry| {
                agent.knowledge(Knowledge::new(entry.q, entry.a))
            }))
        })
}

/// A share of messages that were routed right.
#[derive(Default, Debug, Clone, Copy)]
struct Share {
    right: usize,
    all: usize,
}

impl Share {
    fn count(&mut self, is_right: bool) {
        self.right += usize::from(is_right);
        self.all += 1;
    }

    fn percent(self) -> f64 {
        100.0 * self.right as f64 / self.all.max(1) as f64
    }
}

/// Runs every message. Returns the share of the specialists' messages that reached the right one,
/// and the share of the others that stayed with Triage.
async fn measure(messages: &[Message], show_misses: bool) -> (Share, Share) {
    let runner = Runner::new(&team()).model(OfflineModel::new());
    let (mut routed, mut stayed) = (Share::default(), Share::default());
    let mut languages: BTreeMap<&str, Share> = BTreeMap::new();
    let mut confusion: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for message in messages {
        let result = runner.run(message.text.as_str()).await.unwrap();
        let expected = message.agent.as_deref().unwrap_or(TRIAGE);
        let got = result.last_agent().name().to_owned();
        match &message.agent {
            Some(_) => {
                routed.count(got == expected);
                languages
                    .entry(&message.lang)
                    .or_default()
                    .count(got == expected);
            }
            None => stayed.count(got == expected),
        }
        if show_misses && got != expected {
            println!("{expected} -> {got}: {}", message.text);
        }
        *confusion.entry((expected, got)).or_default() += 1;
    }
    for ((expected, got), count) in &confusion {
        println!("{expected:>18} -> {got:<18} {count}");
    }
    for (language, share) in &languages {
        println!("{language:>6}: {:.1} % of {}", share.percent(), share.all);
    }
    println!("routed: {:.1} % of {}", routed.percent(), routed.all);
    println!("stayed: {:.1} % of {}", stayed.percent(), stayed.all);
    (routed, stayed)
}

#[tokio::test]
async fn most_messages_reach_the_right_agent() {
    let messages = data(TEAM).messages;
    assert!(messages.len() >= 120);
    let (routed, stayed) = measure(&messages, false).await;
    assert!(routed.percent() >= 85.0, "{routed:?}");
    let figure = format!("{:.0} % of {} messages", routed.percent(), routed.all);
    assert!(
        crate::DOCS.contains(&figure),
        "docs/models.md does not have: {figure}"
    );
    assert!(stayed.percent() >= 60.0, "{stayed:?}");
}

#[tokio::test]
async fn most_messages_it_was_tuned_with_reach_the_right_agent() {
    let (routed, stayed) = measure(&data(DEV).messages, true).await;
    assert!(routed.percent() >= 85.0, "{routed:?}");
    assert!(stayed.percent() >= 60.0, "{stayed:?}");
}
