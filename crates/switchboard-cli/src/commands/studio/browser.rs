//! Opening the browser of the system.
//!
//! Everybody on the machine can see the arguments of programs, and the address has the token. So the browser is given
//! a file that only this user can read, and the file leads to the address.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names that are tried for the folder, if others have taken them.
const ATTEMPTS: u32 = 100;

/// The file that leads to the address. It is removed when this is dropped.
pub(super) struct Opened(PathBuf);

impl Drop for Opened {
    fn drop(&mut self) {
        // Somebody may have cleaned up before.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens the browser. Where there is none, or the file cannot be written, the address was printed.
pub(super) fn open(address: &str) -> Option<Opened> {
    let folder = private_folder().ok()?;
    let opened = Opened(folder);
    let file = opened.0.join("studio.html");
    write_private(&file, &page(address)).ok()?;
    start_browser(&file);
    Some(opened)
}

/// A page that leads to the address, which has no characters that HTML gives a meaning to.
fn page(address: &str) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<title>Switchboard</title>\n\
         <a href=\"{address}\">Switchboard</a>\n"
    )
}

/// A new folder that only this user can enter. A name that exists is never taken over: it may be of somebody else.
fn private_folder() -> std::io::Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let process = std::process::id();
    let parent = std::env::temp_dir();
    let mut attempt = 0;
    loop {
        let folder = parent.join(format!("switchboard-studio-{process}-{attempt}"));
        match builder.create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(_) => attempt += 1,
        }
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

fn start_browser(file: &Path) {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("rundll32");
        command.arg("url.dll,FileProtocolHandler");
        command
    } else {
        Command::new("xdg-open")
    };
    let command = command
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // It ends once the browser has the file.
        std::thread::spawn(move || child.wait());
    }
}
