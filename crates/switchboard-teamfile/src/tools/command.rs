//! Tools that run a command.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use switchboard_core::callback::BoxError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::{Limits, Vars, output_text};
use crate::template::{Part, Template, TemplateValues};

/// A command as the file describes it.
#[derive(Debug, Clone)]
pub(crate) struct CommandTool {
    pub(crate) program: String,
    pub(crate) arguments: Vec<Template>,
    pub(crate) stdin: Option<Template>,
    pub(crate) env: Vec<String>,
}

/// A command with its folder and environment variables.
pub(super) struct OpenCommand {
    command: CommandTool,
    program: PathBuf,
    folder: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl CommandTool {
    pub(super) fn open(&self, folder: &Path, vars: Vars<'_>) -> OpenCommand {
        // The program runs in the folder, so a relative path to it must not be resolved there again.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        // A name is looked up in PATH; a path is relative to the folder.
        let program = if self.program.contains(['/', '\\']) {
            folder.join(&self.program)
        } else {
            PathBuf::from(&self.program)
        };
        let env = self.env.iter();
        let env = env.filter_map(|name| Some((name.into(), vars(name)?.into())));
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
        values: TemplateValues<'_>,
        limits: Limits,
    ) -> Result<String, BoxError> {
        let input = match &self.command.stdin {
            Some(template) => Some(template.render(values)?),
            None => None,
        };
        let mut command = Command::new(&self.program);
        for template in &self.command.arguments {
            command.arg(argument(template, values)?);
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
        // A process group of its own, so that its child processes end with it.
        #[cfg(unix)]
        command.process_group(0);
        let name = &self.command.program;
        let child = command
            .spawn()
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        let mut child = KillOnDrop(child);
        let stdin = child.0.stdin.take();
        let write = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // A program need not read its input.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let (mut stdout, mut stderr) = (child.0.stdout.take(), child.0.stderr.take());
        let group = child.0.id();
        let output = async {
            let (output, is_complete) = read(stdout.as_mut(), limits.output_bytes).await?;
            if !is_complete {
                // The program would block on writing the rest.
                kill_group(group);
            }
            Ok::<_, io::Error>((output, is_complete))
        };
        let errors = async {
            let limit = limits.output_bytes.min(MAX_ERROR_BYTES);
            let (errors, is_complete) = read(stderr.as_mut(), limit).await?;
            if let (false, Some(stderr)) = (is_complete, &mut stderr) {
                tokio::io::copy(stderr, &mut tokio::io::sink()).await?;
            }
            Ok::<_, io::Error>(errors)
        };
        let status = async {
            let status = child.0.wait().await;
            // Child processes would keep the output open.
            kill_group(group);
            status
        };
        let (output, errors, status, ()) = tokio::join!(output, errors, status, write);
        let ((output, is_complete), errors, status) = (output?, errors?, status?);
        let text = output_text(&output, is_complete, limits);
        if status.success() || !is_complete {
            return Ok(text);
        }
        let errors = String::from_utf8_lossy(&errors);
        let reason = match errors.trim() {
            "" => text.trim(),
            errors => errors,
        };
        Err(format!("{name} failed with {status}: {reason}").into())
    }
}

/// Omits the environment variables, which may be secrets.
impl fmt::Debug for OpenCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OpenCommand").field(&self.program).finish()
    }
}

/// The maximum length of the standard error that the model gets.
const MAX_ERROR_BYTES: usize = 4096;

/// Renders an argument of the program. A value cannot become a further argument or an option, and
/// within an argument it cannot lead to another folder.
fn argument(template: &Template, values: TemplateValues<'_>) -> Result<String, BoxError> {
    let mut text = String::new();
    let parts = template.parts();
    for (index, part) in parts.iter().enumerate() {
        match part {
            Part::Text(literal) => text.push_str(literal),
            Part::Placeholder(placeholder) => {
                let name = placeholder.name();
                let value = values.text(placeholder)?;
                if value.contains('\0') {
                    return Err(format!("{name:?} cannot hold a zero byte").into());
                }
                // `-` begins an option, and `@` the name of a file to read in many programs.
                if text.is_empty() && value.starts_with(['-', '@']) {
                    return Err(format!("{name:?} cannot begin with - or @").into());
                }
                check_within(&value, parts, index)
                    .map_err(|problem| format!("{name:?} {problem}"))?;
                text.push_str(&value);
            }
        }
    }
    Ok(text)
}

/// Checks a value that is only a part of an argument, such as the name in `notes/{name}.txt`, as one
/// within a URL is checked.
fn check_within(value: &str, parts: &[Part], index: usize) -> Result<(), &'static str> {
    let literal = |part: Option<&Part>| match part {
        Some(Part::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let before = literal(index.checked_sub(1).and_then(|before| parts.get(before)));
    // `--limit={n}` is as good as an argument of its own.
    let is_option_value = index == 1 && before.ends_with('=') && !before.contains(['/', '\\']);
    if parts.len() == 1 || is_option_value && parts.len() == 2 {
        return Ok(());
    }
    if value.is_empty() {
        return Err("is empty");
    }
    let mut segments = value.split(['/', '\\']);
    if segments.any(|segment| segment == "." || segment == "..") {
        return Err("cannot lead to another folder");
    }
    let is_path = parts
        .iter()
        .any(|part| literal(Some(part)).contains(['/', '\\']));
    if is_path && value.contains(['/', '\\']) {
        return Err("cannot hold / or \\ within a path");
    }
    if index == 0 && value.starts_with(['/', '\\']) {
        return Err("cannot lead to another folder");
    }
    Ok(())
}

/// Reads to the end or to the limit. Returns the bytes, and `true` if they are all.
async fn read(
    from: Option<&mut (impl AsyncRead + Unpin)>,
    limit: usize,
) -> io::Result<(Vec<u8>, bool)> {
    let mut output = Vec::new();
    let Some(from) = from else {
        return Ok((output, true));
    };
    let max = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    from.take(max).read_to_end(&mut output).await?;
    let is_complete = output.len() <= limit;
    output.truncate(limit);
    Ok((output, is_complete))
}

/// A child process whose process group is killed when this is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        kill_group(self.0.id());
    }
}

/// Kills a process group. A process without an id has ended already.
fn kill_group(id: Option<u32>) {
    #[cfg(unix)]
    if let Some(id) = id.and_then(|id| i32::try_from(id).ok())
        && let Some(group) = rustix::process::Pid::from_raw(id)
    {
        // The group may have ended in the meantime.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // On other systems `kill_on_drop` kills the program, but not its child processes.
    #[cfg(not(unix))]
    let _ = id;
}
