//! The programs of tools, and what of a model may reach them.

use super::Planner;
use crate::document::{Step, way};
use crate::suggest::{did_you_mean, listed};
use crate::template::{Part, Template};
use crate::tools::CommandTool;
use crate::types::CommandShape;

/// Programs that take a program as text, by how their names begin.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "ash",
    "zsh",
    "ksh",
    "mksh",
    "fish",
    "csh",
    "tcsh",
    "busybox",
    "cmd",
    "powershell",
    "pwsh",
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "jq",
    "sed",
    "psql",
    "sqlite3",
    "mysql",
    "osascript",
    "rscript",
    "groovy",
    "scala",
    "elixir",
    "erl",
    "guile",
    "emacs",
    "vim",
    "make",
    "m4",
];

/// Programs that start another one, which is named among their arguments.
const WRAPPERS: &[&str] = &[
    "env", "nice", "ionice", "nohup", "timeout", "time", "setsid", "stdbuf", "sudo", "doas", "su",
    "chroot", "unshare", "xargs", "parallel", "find", "watch", "script", "docker", "podman",
    "kubectl",
];

/// Programs that hand all their arguments to a shell elsewhere.
const REMOTE: &[&str] = &["ssh", "rsh", "su", "eval", "watch", "parallel"];

impl Planner<'_> {
    pub(super) fn command(
        &mut self,
        name: &str,
        shape: &CommandShape,
        arguments: &super::tools::Arguments,
    ) -> Option<CommandTool> {
        let at = way!["tools", name, "command"];
        let run = [at, way!["run"]].concat();
        let Some((program, given)) = shape.run.split_first() else {
            let problem = self.problem("bad-tool", &run, "the program is missing");
            self.problems
                .add(problem.help("write run = [\"program\", \"argument\"]"));
            return None;
        };
        self.check_allowed(&[&run[..], way![0]].concat(), program);
        let mut templates = Vec::new();
        for (number, text) in given.iter().enumerate() {
            let way = [&run[..], way![number + 1]].concat();
            let template = self.template(&way, text, arguments)?;
            self.check_option(&way, &template);
            templates.push(template);
        }
        let stdin = match &shape.stdin {
            Some(text) => Some(self.template(&[at, way!["stdin"]].concat(), text, arguments)?),
            None => None,
        };
        self.check_code(at, shape, &templates, stdin.as_ref());
        for (number, variable) in shape.env.iter().enumerate() {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                let way = [at, way!["env", number]].concat();
                let problem = self.problem("bad-name", &way, "this is not the name of a variable");
                self.problems.add(problem);
            }
        }
        Some(CommandTool {
            program: program.clone(),
            arguments: templates,
            stdin,
            env: shape.env.clone(),
        })
    }

    fn check_allowed(&mut self, at: &[Step<'_>], program: &str) {
        let allowed = &self.shape.commands.allow;
        if allowed.iter().any(|allowed| allowed == program) {
            return;
        }
        let message = format!("{program:?} is not among the programs that may be started");
        let problem = self.problem("not-allowed", at, message);
        let near = did_you_mean(program, allowed.iter().map(String::as_str));
        let help = match (program.contains(' '), allowed.is_empty()) {
            (true, _) => "write each argument by itself: run = [\"date\", \"+%s\"]".to_owned(),
            (_, true) => format!("allow it: [commands] allow = [{program:?}]"),
            (_, false) => {
                let allowed = listed(allowed.iter().map(String::as_str));
                format!("[commands] allows {allowed}; add it there")
            }
        };
        self.problems.add(problem.suggestion(near).help(help));
    }

    /// A place that makes a model choose an option.
    fn check_option(&mut self, at: &[Step<'_>], template: &Template) {
        let [Part::Text(before), Part::Place(_), ..] = template.parts() else {
            return;
        };
        let is_short = |text: &str| text.chars().all(|c| c == '-' || c.is_ascii_alphanumeric());
        if before.starts_with('-') && (before.trim_matches('-').is_empty() || is_short(before)) {
            let message = "what a model sends would be part of an option";
            let problem = self.problem("bad-tool", at, message);
            let help =
                "write the value as an argument of its own, or behind a =, as in --limit={n}";
            self.problems.add(problem.help(help));
        }
    }

    /// A place within what a shell or another interpreter would run.
    fn check_code(
        &mut self,
        at: &[Step<'_>],
        shape: &CommandShape,
        templates: &[Template],
        stdin: Option<&Template>,
    ) {
        let mut start = 0;
        let base = |at: usize| {
            shape
                .run
                .get(at)
                .map(|text| base_name(text))
                .unwrap_or_default()
        };
        // `env FOO=1 sh -c …` runs what stands further on.
        if WRAPPERS.contains(&base(0).as_str()) {
            let inner = (1..shape.run.len()).find(|at| is_interpreter(&base(*at)));
            start = inner.unwrap_or(0);
        }
        let program = base(start);
        let is_remote = REMOTE.contains(&base(0).as_str());
        if !is_interpreter(&program) && !is_remote {
            return;
        }
        // Of the arguments, those before the first that has a place tell whether it is code.
        let given: Vec<&String> = shape.run.iter().skip(start + 1).collect();
        let filled = templates.iter().skip(start);
        for (number, template) in filled.enumerate() {
            if !template.has_place() {
                continue;
            }
            let before: &[&String] = &given[..number];
            // `--` only ends the options: what follows it is what `-c` before it asks for.
            let flag = before.iter().rfind(|text| text.as_str() != "--");
            let follows_flag = flag.is_some_and(|flag| is_code_flag(flag));
            // `-cprint({a})` and `--eval={a}` hold both.
            let is_option = given[number].starts_with('-');
            let is_first = !before.iter().any(|text| !text.starts_with('-'));
            if is_remote || follows_flag || is_option || (is_first && takes_code_first(&program)) {
                let way = [at, way!["run", start + 1 + number]].concat();
                self.is_code(&way, &program);
            }
        }
        let has_script = given.iter().any(|text| !text.starts_with('-'));
        if stdin.is_some_and(Template::has_place) && !has_script {
            self.is_code(&[at, way!["stdin"]].concat(), &program);
        }
    }

    fn is_code(&mut self, at: &[Step<'_>], program: &str) {
        let message = format!("what a model sends would be part of what {program} runs");
        let problem = self.problem("bad-tool", at, message);
        let help = "give it as an argument of its own: \
                    run = [\"sh\", \"-c\", 'grep -- \"$1\" file', \"sh\", \"{name}\"]";
        self.problems.add(problem.help(help));
    }
}

/// The name of a program without its folder and ending.
fn base_name(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// Whether a program takes a program as text; `python3.12` is one.
fn is_interpreter(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&plain)
}

/// Whether a program's first argument that is no option is code.
fn takes_code_first(name: &str) -> bool {
    matches!(
        name,
        "awk" | "gawk" | "mawk" | "nawk" | "jq" | "sed" | "cmd" | "powershell" | "pwsh"
    )
}

/// Whether what follows an option is code: `-c`, `-lc`, `-e`, `--eval`, `/C`.
fn is_code_flag(flag: &str) -> bool {
    let short = flag.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let letters = short.is_some_and(|letters| {
        letters.chars().all(|c| c.is_ascii_alphabetic())
            && letters.ends_with(['c', 'e', 'E', 'r', 'R', 'p', 'n', 'f', 'x'])
    });
    let words = [
        "--eval",
        "--execute",
        "--command",
        "--print",
        "-command",
        "-encodedcommand",
        "/c",
        "/k",
        "-exec",
    ];
    letters || words.contains(&flag.to_ascii_lowercase().as_str())
}
