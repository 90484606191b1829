//! What a screen has shown over time.

use std::time::Duration;

use vt100::Screen;

use crate::{
    draw,
    picture::{Cursor, Picture},
};

/// All that a screen has shown, with the times.
#[derive(Debug, Clone)]
pub struct Recording {
    frames: Vec<Frame>,
}

/// A picture, and when it appeared.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) at: Duration,
    pub(crate) picture: Picture,
}

/// Keeps pictures while a program runs.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    frames: Vec<Frame>,
    changed_at: Duration,
}

/// What changes faster than this is one picture: nobody would see more.
const TICK: Duration = Duration::from_millis(33);

impl Recording {
    /// The recording as an animation in one file, with the title of its window.
    ///
    /// It starts again when it is over. Where nothing happens for long, the time is shortened; for
    /// who wants no motion it shows the last picture.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        draw::animated(&self.frames, title)
    }
}

impl Recorder {
    /// To be told before the screen changes: a picture is taken only when the next begins, which
    /// makes a flood of output cost a few pictures a second.
    pub(crate) fn about_to_change(&mut self, screen: &Screen, at: Duration) {
        if at.saturating_sub(self.changed_at) < TICK {
            return;
        }
        let picture = Picture::of(screen, Cursor::AsShown);
        keep(&mut self.frames, self.changed_at, picture);
        self.changed_at = at;
    }

    /// The recording up to now, which ends with this picture.
    pub(crate) fn recording(&self, last: Picture) -> Recording {
        let mut frames = self.frames.clone();
        keep(&mut frames, self.changed_at, last);
        Recording { frames }
    }
}

fn keep(frames: &mut Vec<Frame>, at: Duration, mut picture: Picture) {
    if let Some(last) = frames.last() {
        if last.picture == picture {
            return;
        }
        picture.share(&last.picture);
    }
    frames.push(Frame { at, picture });
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use vt100::Parser;

    use super::*;

    /// A recording of what is written at these milliseconds, to a screen of four columns and three rows.
    fn recording(written: &[(u64, &str)]) -> Recording {
        let cells = |cells| NonZeroU16::new(cells).unwrap();
        let mut parser = Parser::new(cells(3), cells(4), 0);
        let mut recorder = Recorder::default();
        for (at, text) in written {
            recorder.about_to_change(parser.screen(), Duration::from_millis(*at));
            parser.process(text.as_bytes());
        }
        recorder.recording(Picture::of(parser.screen(), Cursor::AsShown))
    }

    fn times(recording: &Recording) -> Vec<u128> {
        let frames = recording.frames.iter();
        frames.map(|frame| frame.at.as_millis()).collect()
    }

    #[test]
    fn what_comes_within_a_moment_is_one_picture() {
        let recording = recording(&[(0, "a"), (10, "b"), (100, "c"), (120, "d"), (150, "e")]);
        assert_eq!(times(&recording), [0, 100, 150]);
    }

    #[test]
    fn what_changes_nothing_is_no_picture() {
        let recording = recording(&[(0, "a"), (100, "\x1b[m"), (200, "b"), (300, "")]);
        assert_eq!(times(&recording), [0, 200]);
    }

    #[test]
    fn an_animation_draws_each_row_once_and_shortens_idle_time() {
        // `$` stays, `a` goes after a second that lasts, and `b` comes after a minute that does not.
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
    fn a_row_that_moves_is_drawn_once_and_placed_twice() {
        let svg = recording(&[(0, "1\r\n2\r\n3"), (100, "\r\n4")]).svg("t");
        assert_eq!(svg.matches(">2</text>").count(), 1);
        assert_eq!(svg.matches("<use href=\"#r0\"").count(), 2);
    }
}
