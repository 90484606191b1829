//! The playback of the model's audio: what the user has really heard.

use std::sync::{Arc, Mutex, PoisonError};

use super::event::AudioPart;
use super::settings::AudioFormat;

/// A record of the audio that has been played to the user. Clones share it.
///
/// A model makes audio faster than it is played. When the user interrupts, the message is cut to what was
/// heard: without a tracker, to the time since its first sound; with one, to what the application says.
///
/// ```
/// use switchboard_realtime::model::PlaybackTracker;
///
/// let tracker = PlaybackTracker::new();
/// tracker.played_bytes("item_1", 0, 4_800);
/// tracker.played_ms("item_1", 0, 50.0);
/// assert_eq!(tracker.state().map(|state| state.elapsed_ms), Some(150.0));
/// ```
#[derive(Debug, Clone, Default)]
pub struct PlaybackTracker(Arc<Mutex<Tracked>>);

#[derive(Debug, Default)]
struct Tracked {
    format: AudioFormat,
    playing: Option<PlaybackState>,
}

/// The part that is being played.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaybackState {
    /// The part.
    pub part: AudioPart,
    /// The length that was played, in milliseconds.
    pub elapsed_ms: f64,
}

impl PlaybackTracker {
    /// Creates a tracker to which nothing was played.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that so many bytes of a part were played. Their length is that of the session's output
    /// format.
    pub fn played_bytes(&self, item_id: &str, content_index: u32, bytes: usize) {
        let format = self.lock().format;
        self.played_ms(item_id, content_index, format.length_ms(bytes as u64));
    }

    /// Records that so many milliseconds of a part were played. The first call for another part begins
    /// to count again.
    pub fn played_ms(&self, item_id: &str, content_index: u32, ms: f64) {
        let mut tracked = self.lock();
        match &mut tracked.playing {
            Some(playing)
                if *playing.part.item_id == *item_id
                    && playing.part.content_index == content_index =>
            {
                playing.elapsed_ms += ms;
            }
            playing => {
                *playing = Some(PlaybackState {
                    part: AudioPart::new(item_id, content_index),
                    elapsed_ms: ms,
                });
            }
        }
    }

    /// The part that is being played.
    pub fn state(&self) -> Option<PlaybackState> {
        self.lock().playing.clone()
    }

    /// Records that the playback was interrupted; for models.
    pub fn interrupted(&self) {
        self.lock().playing = None;
    }

    /// Sets the format of the audio; for models.
    pub fn set_format(&self, format: AudioFormat) {
        self.lock().format = format;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tracked> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
