//! The labels around a conversation, in the reader's language.

use crate::event::{Carried, Cost};
use crate::screen::style::Language;

impl Language {
    /// Who talks to the team.
    pub(crate) fn user(self) -> &'static str {
        match self {
            Self::En => "You",
            Self::Zh => "用户",
        }
    }

    /// What a handoff carried.
    pub(super) fn carried(self, carried: &Carried) -> String {
        let Carried { items, of, kinds } = carried;
        // What was said comes before what was done.
        let is_said = |kind: &str| kind.ends_with("_message");
        let mut kinds: Vec<_> = kinds.iter().collect();
        kinds.sort_by_key(|(kind, _)| (!is_said(kind), *kind != "user_message"));
        let kinds = kinds
            .iter()
            .map(|(kind, count)| self.counted(kind, **count));
        let kinds: Vec<String> = kinds.collect();
        match self {
            Self::En => {
                let noun = if *of == 1 { "item" } else { "items" };
                format!("carried {items} of {of} {noun}: {}", kinds.join(", "))
            }
            Self::Zh => format!("带走 {items}/{of} 条：{}", kinds.join("，")),
        }
    }

    fn counted(self, kind: &str, count: usize) -> String {
        let word = match (self, kind) {
            (Self::En, "function_call") => "call",
            (Self::En, "function_call_output") => "output",
            (Self::En, kind) => &kind.replace('_', " "),
            (Self::Zh, "user_message") => "用户消息",
            (Self::Zh, "assistant_message") => "回答",
            (Self::Zh, "system_message") => "系统消息",
            (Self::Zh, "function_call") => "调用",
            (Self::Zh, "function_call_output") => "结果",
            (Self::Zh, "reasoning") => "推理",
            (Self::Zh, kind) => kind,
        };
        match self {
            Self::En if count != 1 => format!("{count} {word}s"),
            _ => format!("{count} {word}"),
        }
    }

    /// What a run took.
    pub(super) fn cost(self, agent: &str, cost: &Cost) -> String {
        let Cost {
            turns,
            usage,
            seconds,
        } = cost;
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        match self {
            Self::En => {
                let noun = if *turns == 1 { "turn" } else { "turns" };
                format!(
                    "{agent} · {turns} {noun} · {input} tokens in, {output} out · {seconds:.2} s"
                )
            }
            Self::Zh => {
                format!(
                    "{agent} · {turns} 轮 · 输入 {input}、输出 {output} 个词元 · {seconds:.2} 秒"
                )
            }
        }
    }

    /// Before what a tool said of its failure.
    pub(super) fn failed(self) -> &'static str {
        match self {
            Self::En => "failed:",
            Self::Zh => "失败：",
        }
    }

    /// A handoff that did not take place.
    pub(super) fn refused(self, to: &str) -> String {
        match self {
            Self::En => format!("→ {to} refused:"),
            Self::Zh => format!("→ {to} 被拒绝："),
        }
    }

    /// A guardrail that stopped the run.
    pub(super) fn tripped(self, guardrail: &str) -> String {
        match self {
            Self::En => format!("guardrail \"{guardrail}\" stopped the run"),
            Self::Zh => format!("护栏“{guardrail}”中止了对话"),
        }
    }

    /// A guardrail that put something else in place of what it saw.
    pub(super) fn replaced(self, guardrail: &str) -> String {
        match self {
            Self::En => format!("guardrail \"{guardrail}\" changed what was said"),
            Self::Zh => format!("护栏“{guardrail}”修改了内容"),
        }
    }

    /// The user stopped the answer.
    pub(super) fn stopped(self) -> &'static str {
        match self {
            Self::En => "stopped",
            Self::Zh => "已停止",
        }
    }

    /// What was left out of the screen.
    pub(super) fn more(self, characters: usize) -> String {
        match self {
            Self::En => format!("… ({characters} more characters; --json shows all)"),
            Self::Zh => format!("…（还有 {characters} 个字符，--json 可看全部）"),
        }
    }
}
