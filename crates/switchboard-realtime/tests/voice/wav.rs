//! WAV files, also hostile ones.

use std::io::Cursor;
use std::time::Duration;

use proptest::prelude::*;
use switchboard_realtime::voice::{Audio, WavReader, WavWriter};

/// A WAV file with this head and these bytes of samples.
fn file(format: u16, channels: u16, rate: u32, bits: u16, data: &[u8]) -> Vec<u8> {
    let align = channels * bits.div_ceil(8);
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend(format.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate.wrapping_mul(u32::from(align))).to_le_bytes());
    file.extend(align.to_le_bytes());
    file.extend(bits.to_le_bytes());
    file.extend(b"data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

fn read(file: &[u8]) -> Result<Audio, String> {
    let audio = Audio::from_wav(Cursor::new(file), Duration::from_secs(10));
    audio.map_err(|error| error.to_string())
}

#[test]
fn what_is_written_is_read() {
    let audio = Audio::new(24_000, (-500..500).collect());
    assert_eq!(read(&audio.to_wav().unwrap()), Ok(audio));
}

#[test]
fn channels_are_mixed_and_other_samples_converted() {
    let stereo: Vec<u8> = [100i16, 300, -50, -150]
        .iter()
        .flat_map(|s| s.to_le_bytes())
        .collect();
    let audio = read(&file(1, 2, 48_000, 16, &stereo)).unwrap();
    assert_eq!((audio.rate(), audio.samples()), (48_000, &[200, -100][..]));
    let audio = read(&file(1, 1, 8_000, 8, &[128, 255, 0])).unwrap();
    assert_eq!(audio.samples(), [0, 127 << 8, -128 << 8]);
    let audio = read(&file(1, 1, 8_000, 24, &[0, 0, 1, 0, 0, 0xff])).unwrap();
    assert_eq!(audio.samples(), [256, -256]);
    let floats = [0.5f32, 7.0, f32::NAN, -1.0];
    let floats: Vec<u8> = floats.iter().flat_map(|s| s.to_le_bytes()).collect();
    let audio = read(&file(3, 1, 8_000, 32, &floats)).unwrap();
    assert_eq!(audio.samples(), [16_384, i16::MAX, 0, i16::MIN]);
}

#[test]
fn files_of_another_kind_are_refused() {
    let samples = [0; 8];
    for (name, file) in [
        ("empty", Vec::new()),
        ("text", b"hello, this is text and no audio at all".to_vec()),
        ("rate 0", file(1, 1, 0, 16, &samples)),
        ("rate 4 GHz", file(1, 1, u32::MAX, 16, &samples)),
        ("no channels", file(1, 0, 8_000, 16, &samples)),
        ("no bits", file(1, 1, 8_000, 0, &samples)),
        ("99 bits", file(1, 1, 8_000, 99, &samples)),
        ("G.711", file(7, 1, 8_000, 8, &samples)),
        ("broken off", {
            let mut whole = file(1, 1, 8_000, 16, &[0; 2_000]);
            whole.truncate(900);
            whole
        }),
    ] {
        assert!(read(&file).is_err(), "{name}");
    }
}

#[test]
fn a_large_file_is_read_piece_by_piece() {
    /// A head, and zeros without end.
    struct Zeros(Cursor<Vec<u8>>, u64);
    impl std::io::Read for Zeros {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(out)?;
            if read > 0 {
                return Ok(read);
            }
            out.fill(0);
            self.1 += out.len() as u64;
            Ok(out.len())
        }
    }
    // The head states 4 GB.
    let mut head = file(1, 2, 48_000, 16, &[]);
    let end = head.len();
    head[end - 4..].copy_from_slice(&0xffff_fffcu32.to_le_bytes());
    let mut source = Zeros(Cursor::new(head), 0);
    let mut reader = WavReader::new(&mut source).unwrap();
    let mut seconds = 0;
    while seconds < 550 {
        let piece = reader.read(48_000).unwrap().unwrap();
        assert_eq!(piece.samples().len(), 48_000);
        seconds += 1;
    }
    // More than 100 MB were read, and one second of it at a time.
    assert!(source.1 > 100 << 20, "{}", source.1);
    let audio = Audio::from_wav(&mut source, Duration::from_secs(1));
    assert!(audio.is_err());
}

#[test]
fn audio_of_several_rates_is_written_at_one() {
    let mut bytes = Cursor::new(Vec::new());
    let mut writer = WavWriter::new(&mut bytes, 24_000).unwrap();
    for rate in [24_000, 8_000, 8_000, 16_000, 24_000] {
        writer
            .write(&Audio::silence(rate, Duration::from_millis(100)))
            .unwrap();
    }
    writer.finish().unwrap();
    let audio = read(bytes.get_ref()).unwrap();
    assert_eq!(audio.duration(), Duration::from_millis(500));
}

proptest! {
    #[test]
    fn no_file_panics(
        mut head in proptest::collection::vec((0usize..60, any::<u8>()), 0..6),
        data in proptest::collection::vec(any::<u8>(), 0..200),
        (format, channels, bits) in (0u16..8, 0u16..9, 0u16..40),
    ) {
        let mut file = file(format, channels, 16_000, bits, &data);
        for (at, byte) in head.drain(..) {
            if let Some(old) = file.get_mut(at) {
                *old = byte;
            }
        }
        let _ = read(&file);
        let _ = read(&data);
    }
}
