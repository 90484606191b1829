//! The audio endpoints: speech to text, and text to speech.

mod multipart;
mod speech;
mod transcription;

pub use speech::SpeechModel;
pub use transcription::TranscriptionModel;
