//! The playback of an answer: what of it was heard.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The way in which the pipeline knows what was played to the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Playback {
    /// Audio is played at its own speed, from the moment when its event is taken from the session.
    #[default]
    Clock,
    /// The application reports what it has played, with [`VoiceHandle::played`](super::VoiceHandle::played).
    Reported,
    /// Audio counts as heard at once, as where it is written to a file.
    Instant,
}

/// A part of an answer that is spoken at once: a sentence.
#[derive(Debug)]
pub(super) struct Segment {
    /// The text as the model wrote it, with the white space after it.
    pub(super) text: String,
    /// The agent whose words they are.
    pub(super) agent: Arc<str>,
    /// The turn of the run.
    pub(super) turn: u32,
    /// The length of its audio so far.
    pub(super) length: Duration,
    /// Set once all of its audio is there, or it has none.
    pub(super) is_complete: bool,
}

/// The playback of one answer.
#[derive(Debug)]
pub(super) struct AnswerPlayback {
    kind: Playback,
    /// The length of all audio of the answer so far.
    given: Duration,
    /// The time when the audio so far will have been played.
    end: Instant,
    /// The length that the application has reported since the answer began.
    reported: Duration,
}

impl AnswerPlayback {
    pub(super) fn new(kind: Playback, now: Instant) -> Self {
        Self {
            kind,
            given: Duration::ZERO,
            end: now,
            reported: Duration::ZERO,
        }
    }

    /// Adds audio that is given to the application now.
    pub(super) fn add(&mut self, length: Duration, now: Instant) {
        self.given += length;
        self.end = self.end.max(now) + length;
    }

    pub(super) fn report(&mut self, length: Duration) {
        self.reported += length;
    }

    /// The length that was played.
    pub(super) fn played(&self, now: Instant) -> Duration {
        match self.kind {
            Playback::Clock => self
                .given
                .saturating_sub(self.end.saturating_duration_since(now)),
            Playback::Reported => self.reported.min(self.given),
            Playback::Instant => self.given,
        }
    }

    /// The length that was given and not played.
    pub(super) fn lead(&self, now: Instant) -> Duration {
        self.given - self.played(now)
    }

    /// The time when the lead falls to this length; `None` if no clock tells it.
    pub(super) fn time_of_lead(&self, lead: Duration) -> Option<Instant> {
        match self.kind {
            Playback::Clock => self.end.checked_sub(lead),
            Playback::Reported | Playback::Instant => None,
        }
    }
}

/// The text of these segments that was heard when this much of the answer was played. Of a sentence that was
/// heard in part, it has as many words as fit the time.
pub(super) fn heard_text(
    segments: &[Segment],
    played: Duration,
    is_wanted: impl Fn(&Segment) -> bool,
) -> String {
    let mut heard = String::new();
    let mut left = played;
    for segment in segments {
        let is_whole = segment.is_complete && left >= segment.length;
        if is_wanted(segment) {
            if is_whole {
                heard.push_str(&segment.text);
            } else {
                heard.push_str(words_heard(segment, left));
            }
        }
        if !is_whole {
            break;
        }
        left -= segment.length;
    }
    heard.truncate(heard.trim_end().len());
    heard
}

/// The whole words of a sentence that were heard within this time.
fn words_heard(segment: &Segment, played: Duration) -> &str {
    // The length of a sentence whose audio is still being made is estimated: 14 characters a second.
    let estimate = Duration::from_secs_f64(segment.text.chars().count() as f64 / 14.0);
    let length = if segment.is_complete {
        segment.length
    } else {
        segment.length.max(estimate)
    };
    if length.is_zero() {
        return "";
    }
    let share = played.as_secs_f64() / length.as_secs_f64();
    let count = (segment.text.trim_end().chars().count() as f64 * share) as usize;
    let end = segment.text.char_indices().nth(count);
    let Some((end, next)) = end else {
        return segment.text.trim_end();
    };
    let heard = &segment.text[..end];
    let ends_word = next.is_whitespace() || !segment.text.contains(char::is_whitespace);
    if ends_word {
        return heard.trim_end();
    }
    match heard.rfind(char::is_whitespace) {
        Some(space) => heard[..space].trim_end(),
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(text: &str, seconds: u64, is_complete: bool) -> Segment {
        Segment {
            text: text.to_owned(),
            agent: "A".into(),
            turn: 1,
            length: Duration::from_secs(seconds),
            is_complete,
        }
    }

    #[test]
    fn what_was_heard_ends_at_a_whole_word() {
        let segments = [
            segment("One two. ", 2, true),
            segment("Three four five. ", 4, true),
            segment("Six.", 0, false),
        ];
        let heard = |millis| heard_text(&segments, Duration::from_millis(millis), |_| true);
        assert_eq!(heard(0), "");
        assert_eq!(heard(1_000), "One");
        assert_eq!(heard(2_000), "One two.");
        assert_eq!(heard(4_900), "One two. Three four");
        assert_eq!(heard(6_000), "One two. Three four five.");
        assert_eq!(heard(9_000), "One two. Three four five. Six.");
    }

    #[test]
    fn a_text_without_spaces_is_cut_between_characters() {
        let segments = [segment("账单已更正。", 6, true)];
        let heard = heard_text(&segments, Duration::from_secs(2), |_| true);
        assert_eq!(heard, "账单");
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_between_audio_are_not_playback() {
        let mut playback = AnswerPlayback::new(Playback::Clock, Instant::now());
        playback.add(Duration::from_secs(1), Instant::now());
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(playback.played(Instant::now()), Duration::from_secs(1));
        playback.add(Duration::from_secs(4), Instant::now());
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(playback.played(Instant::now()), Duration::from_secs(4));
        assert_eq!(playback.lead(Instant::now()), Duration::from_secs(1));
    }
}
