//! Tools that start a program.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use switchboard_core::BoxError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::{Limits, Vars, shown};
use crate::template::{Filling, Part, Template};

/// A command as the file describes it.
#[derive(Debug, Clone)]
pub(crate) struct CommandTool {
    pub(crate) program: String,
    pub(crate) arguments: Vec<Template>,
    pub(crate) stdin: Option<Template>,
    pub(crate) env: Vec<String>,
}

/// A command that can be started.
pub(super) struct OpenCommand {
    command: CommandTool,
    program: PathBuf,
    folder: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl CommandTool {
    pub(super) fn open(&self, folder: &Path, vars: Vars<'_>) -> OpenCommand {
        // The program is started from that folder, so a path that leads there must not lead on.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        // A name is looked for in PATH, a path is one from the folder of the file.
        let program = if self.program.contains(['/', '\\']) {
            folder.join(&self.program)
        } else {
            PathBuf::from(&self.program)
        };
        let env = self.env.iter();
        let env = env.filter_map(|name| Some((name.into(), vars(name)?.into())));
        // Where programs are found is the machine's to say.
        let path = std::env::var_os("PATH").map(|path| ("PATH".into(), path));
        OpenCommand {
            command: self.clone(),
            program,
            folder,
            env: env.chain(path).collect(),
        }
    }
}

impl OpenCommand {
    pub(super) async fn run(
        &self,
        filling: Filling<'_>,
        limits: Limits,
    ) -> Result<String, BoxError> {
        let input = self.command.stdin.as_ref();
        let input = input
            .map(|template| template.fill_all(filling))
            .transpose()?;
        let mut command = Command::new(&self.program);
        for template in &self.command.arguments {
            command.arg(argument(template, filling)?);
        }
        command
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if !self.folder.as_os_str().is_empty() {
            command.current_dir(&self.folder);
        }
        // A group of its own, so that what the program has started ends with it.
        #[cfg(unix)]
        command.process_group(0);
        let name = &self.command.program;
        let child = command
            .spawn()
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        let mut child = Group(child);
        let stdin = child.0.stdin.take();
        let write = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // A program need not read what it is given.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let (mut out, mut err) = (child.0.stdout.take(), child.0.stderr.take());
        let group = child.0.id();
        let output = async {
            let read = read(out.as_mut(), limits.output).await?;
            if !read.1 {
                // It would wait for ever for somebody to read the rest.
                end_group(group);
            }
            Ok::<_, std::io::Error>(read)
        };
        let errors = async {
            let (errors, is_all) = read(err.as_mut(), limits.output.min(MOST_ERRORS)).await?;
            if let (false, Some(err)) = (is_all, &mut err) {
                tokio::io::copy(err, &mut tokio::io::sink()).await?;
            }
            Ok::<_, std::io::Error>(errors)
        };
        let ended = async {
            let status = child.0.wait().await;
            // What it leaves behind would hold its output open, and live on.
            end_group(group);
            status
        };
        let (output, errors, status, ()) = tokio::join!(output, errors, ended, write);
        let (output, is_all) = output?;
        let errors = errors?;
        let status = status?;
        let text = shown(&output, is_all, limits);
        if status.success() || !is_all {
            Ok(text)
        } else {
            let errors = String::from_utf8_lossy(&errors);
            let said = match errors.trim() {
                "" => text.trim(),
                errors => errors,
            };
            Err(format!("{name} failed with {status}: {said}").into())
        }
    }
}

/// Without the values of variables, which may be secrets.
impl fmt::Debug for OpenCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenCommand").field(&self.program).finish()
    }
}

/// How much of what a program says of its failure is told.
const MOST_ERRORS: usize = 4096;

/// An argument of the program. A value is never more than a part of one argument, and never an option
/// where the file does not make it one.
fn argument(template: &Template, filling: Filling<'_>) -> Result<String, BoxError> {
    let mut text = String::new();
    for part in template.parts() {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Place(place) => {
                let name = place.name();
                let value = filling
                    .text(place)
                    .ok_or_else(|| format!("{name:?} is missing"))?;
                if value.contains('\0') {
                    return Err(format!("{name:?} cannot hold a zero byte").into());
                }
                // Options, and files to be read in the place of a text.
                if text.is_empty() && value.starts_with(['-', '@']) {
                    return Err(format!("{name:?} cannot begin with - or @").into());
                }
                text.push_str(&value);
            }
        }
    }
    Ok(text)
}

/// Reads to the end, or until there is more than may be shown; whether it was all.
async fn read(
    from: Option<&mut (impl AsyncRead + Unpin)>,
    limit: usize,
) -> std::io::Result<(Vec<u8>, bool)> {
    let mut output = Vec::new();
    let Some(from) = from else {
        return Ok((output, true));
    };
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    from.take(most).read_to_end(&mut output).await?;
    let is_all = output.len() <= limit;
    output.truncate(limit);
    Ok((output, is_all))
}

/// A program with all that it has started; dropping it ends them.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        end_group(self.0.id());
    }
}

/// Ends a program and what it has started. Without an id it has ended already.
fn end_group(id: Option<u32>) {
    #[cfg(unix)]
    if let Some(id) = id.and_then(|id| i32::try_from(id).ok())
        && let Some(group) = rustix::process::Pid::from_raw(id)
    {
        // It may have ended in the meantime.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // Elsewhere the program itself ends as its handle is dropped.
    #[cfg(not(unix))]
    let _ = id;
}
