//! Tools that run a command.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use switchboard_core::callback::BoxError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::argument::ArgumentTemplate;
use super::{Limits, Vars, output_text};
use crate::template::{Template, TemplateValues};

/// A command as the file describes it.
#[derive(Debug, Clone)]
pub(crate) struct CommandTool {
    pub(crate) program: String,
    pub(crate) arguments: Vec<ArgumentTemplate>,
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
        for argument in &self.command.arguments {
            command.arg(argument.render(values)?);
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
