//! Records the screen over time.

use std::time::Duration;

use vt100::Screen;

use crate::{
    draw,
    screenshot::{Cursor, Screenshot},
};

/// A recording of a screen since its start.
#[derive(Debug, Clone)]
pub struct Recording {
    frames: Vec<Frame>,
}

/// A screenshot, and the time when it appeared.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) at: Duration,
    pub(crate) screenshot: Screenshot,
}

/// Collects the frames of a recording while a program runs.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    frames: Vec<Frame>,
    changed_at: Duration,
}

/// The minimum duration of a frame. Faster changes are merged.
const TICK: Duration = Duration::from_millis(33);

impl Recording {
    /// Draws the recording as an animated SVG, with this window title.
    ///
    /// The animation repeats, and idle time is shortened. With reduced motion, it shows the last frame.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        draw::animated(&self.frames, title)
    }
}

impl Recorder {
    /// Records the screen before it changes. That way fast output takes only a few screenshots a second.
    pub(crate) fn before_change(&mut self, screen: &Screen, at: Duration) {
        if at.saturating_sub(self.changed_at) < TICK {
            return;
        }
        let screenshot = Screenshot::of(screen, Cursor::Visible);
        push_frame(&mut self.frames, self.changed_at, screenshot);
        self.changed_at = at;
    }

    /// The recording so far, with `last` as its last frame.
    pub(crate) fn recording(&self, last: Screenshot) -> Recording {
        let mut frames = self.frames.clone();
        push_frame(&mut frames, self.changed_at, last);
        Recording { frames }
    }
}

/// Appends a frame, unless it is equal to the last one.
fn push_frame(frames: &mut Vec<Frame>, at: Duration, mut screenshot: Screenshot) {
    if let Some(last) = frames.last() {
        if last.screenshot == screenshot {
            return;
        }
        screenshot.share(&last.screenshot);
    }
    frames.push(Frame { at, screenshot });
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use vt100::Parser;

    use super::*;

    /// Records output at these milliseconds, on a screen of four columns and three rows.
    fn recording(output: &[(u64, &str)]) -> Recording {
        let cells = |cells| NonZeroU16::new(cells).unwrap();
        let mut parser = Parser::new(cells(3), cells(4), 0);
        let mut recorder = Recorder::default();
        for (at, text) in output {
            recorder.before_change(parser.screen(), Duration::from_millis(*at));
            parser.process(text.as_bytes());
        }
        recorder.recording(Screenshot::of(parser.screen(), Cursor::Visible))
    }

    fn times(recording: &Recording) -> Vec<u128> {
        let frames = recording.frames.iter();
        frames.map(|frame| frame.at.as_millis()).collect()
    }

    #[test]
    fn fast_changes_are_one_frame() {
        let recording = recording(&[(0, "a"), (10, "b"), (100, "c"), (120, "d"), (150, "e")]);
        assert_eq!(times(&recording), [0, 100, 150]);
    }

    #[test]
    fn output_that_changes_nothing_adds_no_frame() {
        let recording = recording(&[(0, "a"), (100, "\x1b[m"), (200, "b"), (300, "")]);
        assert_eq!(times(&recording), [0, 200]);
    }

    #[test]
    fn an_animation_draws_each_row_once_and_shortens_idle_time() {
        // `$` stays, `a` goes after a second, and `b` comes after a minute, which is shortened.
        let svg = recording(&[
            (0, "\x1b[?25l$\r\na"),
            (1000, "\r\x1b[K"),
            (2000, "a"),
            (62_000, "\r\nb"),
        ])
        .svg("t");
        insta::assert_snapshot!(svg, @r##"
        <svg xmlns="http://www.w3.org/2000/svg" width="58" height="101" viewBox="0 0 58 101" role="img" xml:space="preserve">
        <title>t</title>
        <style>
        text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;fill:#e6edf3;white-space:pre}
        .b{font-weight:700}.d{opacity:.6}.i{font-style:italic}.u{text-decoration:underline}.c{fill:#e6edf3;opacity:.5}
        .h{visibility:hidden}.f{animation:7.5s step-end infinite}
        @media(prefers-reduced-motion:reduce){.f{animation:none!important}}
        @keyframes f1{0%{visibility:visible}13.333%{visibility:hidden}26.666%{visibility:visible}}
        @keyframes f2{0%{visibility:hidden}46.666%{visibility:visible}}
        </style>
        <rect x=".5" y=".5" width="57" height="100" rx="8" fill="#0d1117" stroke="#30363d"/>
        <circle cx="18" cy="16" r="5" fill="#ff5f57"/><circle cx="36" cy="16" r="5" fill="#febc2e"/><circle cx="54" cy="16" r="5" fill="#28c840"/>
        <text class="d" x="29" y="21" text-anchor="middle">t</text>
        <g transform="translate(12 38)">
        <g>
        <g transform="translate(0 0)"><text x="0" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">$</text></g>
        </g>
        <g class="f" style="animation-name:f1">
        <g transform="translate(0 17)"><text x="0" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">a</text></g>
        </g>
        <g class="f" style="animation-name:f2">
        <g transform="translate(0 34)"><text x="0" y="13" textLength="8.4" lengthAdjust="spacingAndGlyphs">b</text></g>
        </g>
        </g>
        </svg>
        "##);
    }

    #[test]
    fn a_row_that_moves_is_drawn_once_and_used_twice() {
        let svg = recording(&[(0, "1\r\n2\r\n3"), (100, "\r\n4")]).svg("t");
        assert_eq!(svg.matches(">2</text>").count(), 1);
        assert_eq!(svg.matches("<use href=\"#r0\"").count(), 2);
    }
}
