//! Drawing of messages, as their text arrives or as a whole.

use std::io::{self, Write as _};
use std::sync::Arc;

use anstyle::Style;

use super::markdown::MarkdownWrapper;
use super::style::{Colours, Look, USER};
use super::wrap::LineWrapper;
use super::{Screen, UserMessages};

/// A message that is drawn as its text arrives.
pub(super) struct StreamedMessage {
    id: Arc<str>,
    pub(super) wrapper: TextWrapper,
    text: String,
}

/// Wraps the text of a message: as Markdown where it can be styled, and otherwise as it is.
pub(super) enum TextWrapper {
    Plain(LineWrapper),
    Markdown(MarkdownWrapper),
}

impl TextWrapper {
    pub(super) fn new(look: Look, indent: usize) -> Self {
        match look.colours {
            Colours::On => Self::Markdown(MarkdownWrapper::new(look.width, indent, indent)),
            Colours::Off => Self::Plain(LineWrapper::new(look.width, indent, indent)),
        }
    }

    pub(super) fn push(&mut self, text: &str) -> String {
        match self {
            Self::Plain(wrapper) => wrapper.push(text),
            Self::Markdown(wrapper) => wrapper.push(text),
        }
    }

    pub(super) fn finish(&mut self) -> String {
        match self {
            Self::Plain(wrapper) => wrapper.finish(),
            Self::Markdown(wrapper) => wrapper.finish(),
        }
    }

    pub(super) fn resize(&mut self, width: Option<usize>) {
        match self {
            Self::Plain(wrapper) => wrapper.resize(width),
            Self::Markdown(wrapper) => wrapper.resize(width),
        }
    }
}

impl Screen {
    /// Draws a message of the user, unless it is on the screen already.
    pub(super) fn user_message(&mut self, input: Option<&str>) -> io::Result<()> {
        let Some(input) = input.filter(|_| self.user_messages == UserMessages::Drawn) else {
            return Ok(());
        };
        if std::mem::replace(&mut self.has_content, true) {
            writeln!(self.out)?;
        }
        self.name(self.look.language.user(), USER)?;
        self.rest_of_entry(Style::new(), input)
    }

    pub(super) fn text_delta(
        &mut self,
        agent: &str,
        id: &Arc<str>,
        mut text: &str,
    ) -> io::Result<()> {
        if self
            .message
            .as_ref()
            .is_none_or(|message| message.id != *id)
        {
            text = text.trim_start();
            if text.is_empty() {
                return Ok(());
            }
            self.name(agent, self.style_of(agent))?;
            let indent = self.indent();
            self.message = Some(StreamedMessage {
                id: id.clone(),
                wrapper: TextWrapper::new(self.look, indent),
                text: String::new(),
            });
        }
        let Some(message) = &mut self.message else {
            return Ok(());
        };
        message.text.push_str(text);
        let shown = message.wrapper.push(text);
        self.out.write_all(shown.as_bytes())
    }

    /// Draws a complete message, unless its text was drawn as it arrived.
    pub(super) fn message(&mut self, agent: &str, text: &str) -> io::Result<()> {
        self.end_message()?;
        let text = text.trim();
        if text.is_empty() || self.is_drawn(text) {
            return Ok(());
        }
        self.drawn_messages.push(text.to_owned());
        self.name(agent, self.style_of(agent))?;
        let mut wrapper = TextWrapper::new(self.look, self.indent());
        let shown = wrapper.push(&format!("{text}{}", self.signature())) + &wrapper.finish();
        writeln!(self.out, "{shown}")
    }

    /// Returns the mark below a message that no language model wrote.
    fn signature(&self) -> String {
        if self.is_offline {
            format!("\n\n{}", self.look.language.offline())
        } else {
            String::new()
        }
    }

    pub(super) fn is_drawn(&self, message: &str) -> bool {
        self.drawn_messages.iter().any(|drawn| drawn == message)
    }

    pub(super) fn end_message(&mut self) -> io::Result<()> {
        let Some(mut message) = self.message.take() else {
            return Ok(());
        };
        self.drawn_messages.push(message.text.trim().to_owned());
        let signature = message.wrapper.push(&self.signature());
        writeln!(self.out, "{signature}{}", message.wrapper.finish())
    }
}
