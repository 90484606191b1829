//! Frames of audio that carry the time at which they were made.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::ages::{Ages, now_us};

/// The bytes of a second of audio: 24 kHz, 16 bits, one channel.
const BYTES_PER_SECOND: f64 = 48_000.0;

/// The characters of base64 that hold the time.
const STAMP_CHARS: usize = 12;

/// A frame of audio of this length, made now.
pub(super) fn stamped_frame(length: Duration) -> Vec<u8> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a frame is short"
    )]
    let bytes = (length.as_secs_f64() * BYTES_PER_SECOND) as usize;
    let mut frame = vec![0; bytes.max(16)];
    frame[..8].copy_from_slice(&now_us().to_le_bytes());
    frame
}

/// Notes the arrival of a frame.
pub(super) fn note_frame(ages: &Ages, frame: &[u8]) {
    if let Some(stamp) = frame.first_chunk::<8>() {
        ages.note(u64::from_le_bytes(*stamp));
    }
}

/// Notes the arrival of a frame in base64, of which only the time is decoded.
pub(super) fn note_base64_frame(ages: &Ages, frame: &str) {
    let stamp = frame.get(..STAMP_CHARS).unwrap_or_default();
    if let Ok(stamp) = STANDARD.decode(stamp) {
        note_frame(ages, &stamp);
    }
}
