//! The labels around a conversation, in the reader's language.

use switchboard_core::model::Usage;

use crate::screen::style::Language;

impl Language {
    /// The name of the user.
    pub(crate) fn user(self) -> &'static str {
        self.choose("You", "用户")
    }

    /// The mark below an answer of the offline model.
    pub(super) fn offline(self) -> &'static str {
        self.choose("(offline model)", "（离线模型）")
    }

    /// Introduces an error.
    pub(crate) fn error(self) -> &'static str {
        self.choose("error:", "错误：")
    }

    /// Introduces advice.
    pub(crate) fn help(self) -> &'static str {
        self.choose("help:", "提示：")
    }

    /// The number of items that a handoff carried over.
    pub(super) fn carried(self, items: usize, of: usize) -> String {
        let noun = if of == 1 { "item" } else { "items" };
        self.choose(
            format!("carried {items} of {of} {noun}"),
            format!("带走 {items}/{of} 条"),
        )
    }

    /// The turns, tokens and seconds of a run.
    pub(super) fn cost(self, agent: &str, turns: u32, usage: &Usage, seconds: f64) -> String {
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        let noun = if turns == 1 { "turn" } else { "turns" };
        self.choose(
            format!("{agent} · {turns} {noun} · {input} tokens in, {output} out · {seconds:.2} s"),
            format!("{agent} · {turns} 轮 · 输入 {input}、输出 {output} 个词元 · {seconds:.2} 秒"),
        )
    }

    /// Introduces the output of a tool that failed.
    pub(super) fn failed(self) -> &'static str {
        self.choose("failed:", "失败：")
    }

    /// Introduces the reason for a refused handoff.
    pub(super) fn refused(self, to: &str) -> String {
        self.choose(format!("→ {to} refused:"), format!("→ {to} 被拒绝："))
    }

    /// A handoff that was ignored because the response asked for another one first.
    pub(super) fn ignored(self, to: &str) -> String {
        self.choose(format!("→ {to} ignored"), format!("→ {to} 被忽略"))
    }

    /// A long conversation whose older part could not be replaced by a summary.
    pub(super) fn not_summarised(self, reason: &str) -> String {
        self.choose(
            format!("the long conversation was not summarised: {reason}"),
            format!("未能为较长的对话生成摘要：{reason}"),
        )
    }

    /// A guardrail that stopped the run.
    pub(super) fn tripped(self, guardrail: &str) -> String {
        self.choose(
            format!("guardrail \"{guardrail}\" stopped the run"),
            format!("护栏“{guardrail}”中止了对话"),
        )
    }

    /// A guardrail that replaced the text it checked.
    pub(super) fn replaced(self, guardrail: &str) -> String {
        self.choose(
            format!("guardrail \"{guardrail}\" changed what was said"),
            format!("护栏“{guardrail}”修改了内容"),
        )
    }

    /// Words that a guardrail refused, in a transcript.
    pub(crate) fn refused_by(self, guardrail: &str) -> String {
        self.choose(
            format!("(refused by the guardrail \"{guardrail}\")"),
            format!("（被护栏“{guardrail}”拒绝）"),
        )
    }

    /// A run that the user stopped.
    pub(super) fn stopped(self) -> &'static str {
        self.choose("stopped", "已停止")
    }

    /// Introduces a call that waits for a decision.
    pub(super) fn waits(self, number: usize, of: usize) -> String {
        match of {
            1 => self
                .choose("waits for a decision:", "等待决定：")
                .to_owned(),
            of => self.choose(
                format!("waits for a decision ({number} of {of}):"),
                format!("等待决定（{number}/{of}）："),
            ),
        }
    }

    /// Introduces the payload with which a person is asked for an answer.
    pub(super) fn is_asked(self, by: Option<&str>) -> String {
        match by {
            Some(by) => self.choose(
                format!("is asked for an answer by {by}:"),
                format!("{by} 请其回答："),
            ),
            None => self
                .choose("is asked for an answer:", "等待回答：")
                .to_owned(),
        }
    }

    /// The agents that a person can hand the conversation to.
    pub(super) fn may_hand_to(self, names: &str) -> String {
        self.choose(
            format!("may hand over to {names}"),
            format!("可以交给 {names}"),
        )
    }

    /// The calls of agents used as tools around a call.
    pub(super) fn inside(self, calls: &str) -> String {
        self.choose(format!("inside {calls}"), format!("在 {calls} 之内"))
    }

    /// The end of shortened arguments that a person decides about.
    pub(super) fn more_to_decide(self, characters: usize) -> String {
        self.choose(
            format!("… ({characters} more characters; answer s to see all, --json shows them)"),
            format!("…（还有 {characters} 个字符，回答 s 可看全部，--json 也显示）"),
        )
    }

    /// The end of a shortened text.
    pub(super) fn more(self, characters: usize) -> String {
        self.choose(
            format!("… ({characters} more characters; --json shows all)"),
            format!("…（还有 {characters} 个字符，--json 可看全部）"),
        )
    }
}
