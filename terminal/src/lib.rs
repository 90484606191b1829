//! Pseudo-terminals for tests of command-line programs, and screenshots of them.
//!
//! A [`Terminal`] runs a program in a pseudo-terminal with a line discipline, a size, keys and signals. A
//! test types, waits for the expected output, and checks the screen:
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
//! [`Terminal::svg`] draws the screen, and [`Recording::svg`] draws everything since the start as an
//! animation. The program `terminal-record` does both from the command line.
//!
//! Waiting ends when the condition holds, when the program ends, or after a generous timeout, so that
//! tests give the same result on a busy machine. For Unix only.

mod answers;
mod colours;
mod draw;
mod error;
mod key;
mod output;
mod recording;
mod screenshot;
mod terminal;
mod text;

pub use error::Error;
pub use key::Key;
pub use recording::Recording;
pub use terminal::{Signal, Size, Terminal};
