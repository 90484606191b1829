//! The audio of the model: how much of each part has come, and since when.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{AudioFormat, AudioPart};

/// The number of parts and of responses that are remembered. Older ones have long been played.
const REMEMBERED: usize = 256;

/// The audio that has come from the model.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ReceivedAudio {
    format: AudioFormat,
    parts: VecDeque<ReceivedPart>,
    /// The part that came last, until it is interrupted.
    last: Option<AudioPart>,
    /// The parts of each response, in the order in which they came.
    responses: VecDeque<(Arc<str>, Vec<AudioPart>)>,
    /// Responses whose further audio is dropped.
    interrupted: VecDeque<Arc<str>>,
}

/// The audio of one part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ReceivedPart {
    pub(super) part: AudioPart,
    /// The time of its first sound.
    pub(super) since: Duration,
    pub(super) length_ms: f64,
    pub(super) response_id: Arc<str>,
}

impl ReceivedPart {
    /// The length in whole milliseconds, rounded up.
    pub(super) fn whole_ms(&self) -> u64 {
        self.length_ms.ceil() as u64
    }
}

impl ReceivedAudio {
    pub(super) fn set_format(&mut self, format: AudioFormat) {
        self.format = format;
    }

    /// Adds audio of a part.
    pub(super) fn received(
        &mut self,
        part: &AudioPart,
        response_id: &Arc<str>,
        bytes: usize,
        now: Duration,
    ) {
        let ms = self.format.length_ms(bytes as u64);
        if self.last.as_ref() != Some(part) {
            self.last = Some(part.clone());
        }
        self.note_response(response_id, part);
        if let Some(known) = self
            .parts
            .iter_mut()
            .rev()
            .find(|known| known.part == *part)
        {
            known.length_ms += ms;
            if known.response_id != *response_id {
                known.response_id = response_id.clone();
            }
            return;
        }
        push_bounded(
            &mut self.parts,
            ReceivedPart {
                part: part.clone(),
                since: now,
                length_ms: ms,
                response_id: response_id.clone(),
            },
        );
    }

    fn note_response(&mut self, response_id: &Arc<str>, part: &AudioPart) {
        let known = self.responses.iter_mut().rev();
        match { known }.find(|(id, _)| id == response_id) {
            Some((_, parts)) if parts.contains(part) => {}
            Some((_, parts)) => parts.push(part.clone()),
            None => push_bounded(
                &mut self.responses,
                (response_id.clone(), vec![part.clone()]),
            ),
        }
    }

    pub(super) fn part(&self, part: &AudioPart) -> Option<&ReceivedPart> {
        self.parts.iter().rev().find(|known| known.part == *part)
    }

    pub(super) fn last(&self) -> Option<&AudioPart> {
        self.last.as_ref()
    }

    /// The parts of a response.
    pub(super) fn parts_of(&self, response_id: &str) -> &[AudioPart] {
        let found = self.responses.iter().find(|(id, _)| **id == *response_id);
        found.map_or(&[], |(_, parts)| parts)
    }

    /// Notes that the part that came last was interrupted.
    pub(super) fn interrupted(&mut self) {
        let Some(last) = self.last.take() else {
            return;
        };
        if let Some(response_id) = self.part(&last).map(|known| known.response_id.clone()) {
            self.responses.retain(|(id, _)| *id != response_id);
        }
    }

    /// Notes that the audio of a response was interrupted.
    pub(super) fn response_interrupted(&mut self, response_id: &str) {
        let is_last_of_it = |last: &AudioPart| self.parts_of(response_id).contains(last);
        if self.last.as_ref().is_some_and(is_last_of_it) {
            self.last = None;
        }
        self.responses.retain(|(id, _)| **id != *response_id);
    }

    /// Drops the audio of a response that is still to come.
    pub(super) fn drop_rest_of(&mut self, response_id: &Arc<str>) {
        if !self.is_dropped(response_id) {
            push_bounded(&mut self.interrupted, response_id.clone());
        }
    }

    pub(super) fn is_dropped(&self, response_id: &str) -> bool {
        self.interrupted.iter().any(|id| **id == *response_id)
    }

    pub(super) fn response_ended(&mut self, response_id: &str) {
        self.interrupted.retain(|id| **id != *response_id);
    }

    /// Forgets everything but the format.
    pub(super) fn clear(&mut self) {
        *self = Self {
            format: self.format,
            ..Self::default()
        };
    }
}

fn push_bounded<T>(list: &mut VecDeque<T>, entry: T) {
    if list.len() >= REMEMBERED {
        list.pop_front();
    }
    list.push_back(entry);
}
