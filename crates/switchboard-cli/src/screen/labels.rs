//! The labels around a conversation, in the reader's language.

use switchboard_core::model::Usage;

use crate::screen::style::Language;

impl Language {
    /// The name of the user.
    pub(crate) fn user(self) -> &'static str {
        self.choose("You", "用户")
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

    /// A run that the user stopped.
    pub(super) fn stopped(self) -> &'static str {
        self.choose("stopped", "已停止")
    }

    /// The end of a shortened text.
    pub(super) fn more(self, characters: usize) -> String {
        self.choose(
            format!("… ({characters} more characters; --json shows all)"),
            format!("…（还有 {characters} 个字符，--json 可看全部）"),
        )
    }
}
