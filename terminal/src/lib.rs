//! Real pseudo-terminals for tests of command-line programs, and pictures of what they showed.
//!
//! A [`Terminal`] runs a program as a person's terminal would: with a line discipline, a size, keys and
//! signals. A test types, waits for what it expects to see, and looks at the screen:
//!
//! ```
//! use terminal::{Key, Size, Terminal};
//!
//! # fn main() -> Result<(), terminal::Error> {
//! let size = Size { columns: 40, rows: 5 };
//! let mut terminal = Terminal::start("cat", [], size, [("LC_ALL", "C")])?;
//! terminal.type_text("hello");
//! terminal.press(Key::Enter);
//! terminal.wait_for("hello\nhello")?; // what the terminal echoed, and what cat wrote
//! terminal.press(Key::CtrlD);
//! assert!(terminal.wait_exit()?.success());
//! # Ok(())
//! # }
//! ```
//!
//! [`Terminal::svg`] draws what the screen shows, [`Recording::svg`] all that it has shown since the
//! start, as an animation. The program `terminal-record` does both from the command line.
//!
//! Waiting ends with what was waited for, with the end of the program or with a limit that is
//! generous, so that a test means the same on a busy machine; it never depends on how long something
//! took. For Unix only.

mod answers;
mod colours;
mod draw;
mod error;
mod key;
mod output;
mod picture;
mod recording;
mod terminal;
mod text;

pub use error::Error;
pub use key::Key;
pub use recording::Recording;
pub use terminal::{Signal, Size, Terminal};
