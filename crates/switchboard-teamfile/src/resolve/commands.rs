//! Resolves commands, and rejects those in which a model's arguments could become options or code.

use super::Resolver;
use super::tools::Arguments;
use crate::document::{Step, steps};
use crate::suggest::{did_you_mean, quoted_list};
use crate::template::{Part, Template};
use crate::tools::{ArgumentTemplate, CommandTool};
use crate::types::CommandSpec;

/// Programs that run code given as text, without version numbers.
#[rustfmt::skip]
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox", "cmd", "powershell",
    "pwsh", "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh",
    "awk", "gawk", "mawk", "nawk", "jq", "sed", "psql", "sqlite3", "mysql", "osascript", "rscript", "groovy",
    "scala", "elixir", "erl", "guile", "emacs", "vim", "make", "m4",
];

/// Programs that start another one, named among their arguments.
const WRAPPERS: &[&str] = &[
    "env", "nice", "ionice", "nohup", "timeout", "time", "setsid", "stdbuf", "sudo", "doas", "su",
    "chroot", "unshare", "xargs", "parallel", "find", "watch", "script", "docker", "podman",
    "kubectl",
];

/// Programs that pass all their arguments to a shell.
const SHELL_CALLERS: &[&str] = &["ssh", "rsh", "su", "eval", "watch", "parallel"];

impl Resolver<'_> {
    pub(super) fn command(
        &mut self,
        name: &str,
        spec: &CommandSpec,
        arguments: &Arguments,
    ) -> Option<CommandTool> {
        let at = steps!["tools", name, "command"];
        let run = [at, steps!["run"]].concat();
        let Some((program, program_args)) = spec.run.split_first() else {
            let help = "write run = [\"program\", \"argument\"]";
            self.report("bad-tool", &run, "the program is missing", help);
            return None;
        };
        self.check_allowed(&[&run[..], steps![0]].concat(), program);
        let mut templates = Vec::new();
        for (index, text) in program_args.iter().enumerate() {
            let path = [&run[..], steps![index + 1]].concat();
            let template = self.template(&path, text, arguments)?;
            self.check_option(&path, &template);
            templates.push(template);
        }
        let stdin = match &spec.stdin {
            Some(text) => Some(self.template(&[at, steps!["stdin"]].concat(), text, arguments)?),
            None => None,
        };
        self.check_code(at, spec, &templates, stdin.as_ref());
        let mut arguments = Vec::new();
        for (index, template) in templates.into_iter().enumerate() {
            match ArgumentTemplate::new(template) {
                Ok(argument) => arguments.push(argument),
                Err(error) => {
                    let (message, help) = error.describe();
                    let path = [&run[..], steps![index + 1]].concat();
                    self.report("bad-url", &path, message, help);
                }
            }
        }
        for (index, variable) in spec.env.iter().enumerate() {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                let path = [at, steps!["env", index]].concat();
                let message = "this is not the name of a variable";
                self.problems.add(self.problem("bad-name", &path, message));
            }
        }
        Some(CommandTool {
            program: program.clone(),
            arguments,
            stdin,
            env: spec.env.clone(),
        })
    }

    fn check_allowed(&mut self, path: &[Step<'_>], program: &str) {
        let allowed = || self.spec.commands.allow.iter().map(String::as_str);
        if allowed().any(|allowed| allowed == program) {
            return;
        }
        let message = format!("{program:?} is not among the programs that may be started");
        let help = if program.contains(' ') {
            "write each argument by itself: run = [\"date\", \"+%s\"]".to_owned()
        } else if self.spec.commands.allow.is_empty() {
            format!("allow it: [commands] allow = [{program:?}]")
        } else {
            let allowed = quoted_list(allowed());
            format!("[commands] allows {allowed}; add it there")
        };
        let problem = self.problem("not-allowed", path, message).help(help);
        let suggestion = did_you_mean(program, allowed());
        self.problems.add(problem.suggestion(suggestion));
    }

    /// Reports a placeholder within an option, such as `-{flags}` or `-o{file}`.
    fn check_option(&mut self, path: &[Step<'_>], template: &Template) {
        let [Part::Text(before), Part::Placeholder(_), ..] = template.parts() else {
            return;
        };
        if before.starts_with('-') && !before.contains('=') {
            let message = "an argument of the model would be part of an option";
            let help = "write the value as an argument of its own, or after a =, as in --limit={n}";
            self.report("bad-tool", path, message, help);
        }
    }

    /// Reports placeholders within code that an interpreter would run.
    fn check_code(
        &mut self,
        at: &[Step<'_>],
        spec: &CommandSpec,
        templates: &[Template],
        stdin: Option<&Template>,
    ) {
        let names: Vec<String> = spec.run.iter().map(|text| base_name(text)).collect();
        let outer = names[0].as_str();
        // `env FOO=1 sh -c …` runs the interpreter among its arguments.
        let wrapped = names.iter().skip(1).position(|name| is_interpreter(name));
        let start = match wrapped {
            Some(index) if WRAPPERS.contains(&outer) => index + 1,
            _ => 0,
        };
        let program = names[start].as_str();
        let calls_shell = SHELL_CALLERS.contains(&outer);
        if !is_interpreter(program) && !calls_shell {
            return;
        }
        let program_args = &spec.run[start + 1..];
        for (index, template) in templates[start..].iter().enumerate() {
            if !template.has_placeholder() {
                continue;
            }
            let before = &program_args[..index];
            // `--` ends the options; the code of an earlier `-c` follows it.
            let flag = before.iter().rfind(|text| *text != "--");
            let follows_code_flag = flag.is_some_and(|flag| is_code_flag(flag));
            // `-cprint({a})` and `--eval={a}` hold the code themselves.
            let is_option = program_args[index].starts_with('-');
            let is_first = before.iter().all(|text| text.starts_with('-'));
            if calls_shell
                || follows_code_flag
                || is_option
                || is_first && takes_code_as_first_argument(program)
            {
                let path = [at, steps!["run", start + 1 + index]].concat();
                self.add_code_problem(&path, program);
            }
        }
        let has_script = program_args.iter().any(|text| !text.starts_with('-'));
        if stdin.is_some_and(Template::has_placeholder) && !has_script {
            self.add_code_problem(&[at, steps!["stdin"]].concat(), program);
        }
    }

    fn add_code_problem(&mut self, path: &[Step<'_>], program: &str) {
        let message =
            format!("an argument of the model would be part of the code that {program} runs");
        let help = "give it as an argument of its own: \
                    run = [\"sh\", \"-c\", 'grep -- \"$1\" file', \"sh\", \"{name}\"]";
        self.report("bad-tool", path, message, help);
    }
}

/// Returns the name of a program in lower case, without its folder and `.exe`.
fn base_name(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// Returns `true` if a program runs code given as text, whatever its version: `python3.12`.
fn is_interpreter(name: &str) -> bool {
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&unversioned)
}

/// Returns `true` if the first argument of a program that is not an option is code.
fn takes_code_as_first_argument(name: &str) -> bool {
    matches!(
        name,
        "awk" | "gawk" | "mawk" | "nawk" | "jq" | "sed" | "cmd" | "powershell" | "pwsh"
    )
}

/// Returns `true` if the argument after an option is code: `-c`, `-lc`, `-e`, `--eval`, `/C`.
fn is_code_flag(flag: &str) -> bool {
    let short = flag.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let is_short_flag = short.is_some_and(|letters| {
        letters.chars().all(|c| c.is_ascii_alphabetic())
            && letters.ends_with(['c', 'e', 'E', 'r', 'R', 'p', 'n', 'f', 'x'])
    });
    is_short_flag
        || matches!(
            flag.to_ascii_lowercase().as_str(),
            "--eval"
                | "--execute"
                | "--command"
                | "--print"
                | "-command"
                | "-encodedcommand"
                | "/c"
                | "/k"
                | "-exec"
        )
}
