//! Diagnostics for invalid files.

use switchboard_teamfile::{Case, Severity, TeamFile};

/// The printed problems of an invalid file.
fn report(text: &str) -> String {
    let problems = TeamFile::parse(text, "team.toml").expect_err("the file is valid");
    problems.to_string()
}

/// The code, line, column and suggestion of each problem.
fn positions(text: &str) -> Vec<(&'static str, usize, usize, Option<String>)> {
    let problems = TeamFile::parse(text, "team.toml").expect_err("the file is valid");
    let positions = problems.iter().map(|problem| {
        let (line, column) = (problem.line.unwrap_or(0), problem.column.unwrap_or(0));
        (problem.code, line, column, problem.suggestion.clone())
    });
    positions.collect()
}

#[test]
fn all_problems_are_reported_at_once_with_their_positions() {
    let text = r#"strat = "Triage"

[agents.Triage]
instructons = "Route."
handoffs = ["Billing", { too = "Billing" }]

[agents.Billing]
settings = { temperature = "hot" }
"#;
    assert_eq!(
        report(text),
        r#"error[unknown-field]: a team file has no field "strat"
 --> team.toml:1:1
  |
1 | strat = "Triage"
  | ^^^^^ did you mean "start"?
  |
  = help: start: The agent that gets the conversation first. Without it, the first agent of the file.

error[unknown-field]: an agent has no field "instructons"
 --> team.toml:4:1
  |
4 | instructons = "Route."
  | ^^^^^^^^^^^ did you mean "instructions"?
  |
  = help: instructions: The instructions for the agent's model.

error[unknown-field]: a handoff table has no field "too"
 --> team.toml:5:26
  |
5 | handoffs = ["Billing", { too = "Billing" }]
  |                          ^^^ did you mean "to"?
  |
  = help: to: The agent that gets the conversation.

error[wrong-type]: "temperature" must be a number, and this is text
 --> team.toml:8:28
  |
8 | settings = { temperature = "hot" }
  |                            ^^^^^
  |
  = help: Randomness of sampling.
"#
    );
}

#[test]
fn unknown_names_are_reported_with_a_suggestion() {
    let text = r#"
start = "Triaje"
model = "ofline"
[agents.Triage]
tools = ["find_invoise"]
input_guardrails = ["polite"]
handoffs = ["Biling", "Nobody at all"]
[agents.Billing]
model = "gpt-5.2"
after_tools = { stop_at = ["find_invoice"] }
[tools.find_invoice]
description = "Finds it."
http.url = "https://example.com"
[guardrails.polite]
deny = []
"#;
    let meant = |name: &str| Some(format!("did you mean {name:?}?"));
    assert_eq!(
        positions(text),
        [
            ("unknown-agent", 2, 9, meant("Triage")),
            ("unknown-model", 3, 9, meant("offline")),
            ("unknown-tool", 5, 10, meant("find_invoice")),
            ("unknown-agent", 7, 13, meant("Billing")),
            ("unknown-agent", 7, 23, None),
            (
                "unknown-model",
                9,
                9,
                Some("did you mean \"openai/gpt-5.2\" or \"chat/gpt-5.2\"?".to_owned()),
            ),
            ("unknown-tool", 10, 28, None),
            ("unused", 11, 8, None),
            ("empty-guardrail", 14, 13, None),
        ]
    );
}

/// The codes and messages of the findings of a valid file.
fn findings(text: &str) -> Vec<(&'static str, String)> {
    let file = TeamFile::parse(text, "team.toml").unwrap();
    let problems = file.check();
    let found = problems.iter();
    found
        .map(|problem| (problem.code, problem.message.clone()))
        .collect()
}

#[test]
fn a_guardrail_that_only_some_agents_have_is_reported() {
    let team = |triage: &str, billing: &str, rest: &str| {
        format!(
            "[agents.Triage]\ninstructions = 'x'\nhandoffs = ['Billing']\n{triage}\n\
             [agents.Billing]\ndescription = 'Bills.'\n{billing}\n\
             [guardrails.polite]\ndeny = ['blast']\n{rest}\n"
        )
    };
    let partial = |text: &str| {
        let mut found = findings(text);
        found.retain(|(code, _)| *code == "partial-guardrail");
        found
    };
    let input = "input_guardrails = ['polite']";
    let output = "output_guardrails = ['polite']";
    assert_eq!(
        partial(&team(input, "", "")),
        [(
            "partial-guardrail",
            "the guardrail \"polite\" checks what is said to \"Triage\", and \"Billing\" can get a message \
             as well"
                .to_owned()
        )]
    );
    assert_eq!(
        partial(&team("", output, "")),
        [(
            "partial-guardrail",
            "the guardrail \"polite\" checks the answers of \"Billing\", and \"Triage\" can answer as well"
                .to_owned()
        )]
    );
    for covered in [
        team(input, input, ""),
        team("", "", &format!("[run]\n{input}")),
        team(input, "", &format!("[run]\n{input}")),
        // The next message goes to Triage again.
        team(input, "active_agent = 'return_to_start'", ""),
    ] {
        assert_eq!(partial(&covered), [], "{covered}");
    }
}

#[test]
fn people_whom_nobody_can_answer_for_are_reported() {
    let team = |conversations: &str| {
        format!(
            "{conversations}\n[agents.Triage]\ninstructions = 'x'\nhandoffs = ['Ann']\n\
             [agents.Ann]\nperson = true\ndescription = 'Complaints.'\nhandoffs = ['Triage']\n"
        )
    };
    let unanswerable = |text: &str| {
        let mut found = findings(text);
        found.retain(|(code, _)| *code == "unanswerable-person");
        found
    };
    assert_eq!(
        unanswerable(&team("[conversations]\nstore = 'memory:'")),
        [(
            "unanswerable-person",
            "nobody can answer for \"Ann\" once the program has ended: conversations are kept in memory"
                .to_owned()
        )]
    );
    for lasting in ["", "[conversations]\nstore = 'sqlite:c.db'"] {
        assert_eq!(unanswerable(&team(lasting)), [], "{lasting}");
    }
    let nobody = "[conversations]\nstore = 'memory:'\n[agents.Triage]\ninstructions = 'x'\n";
    assert_eq!(unanswerable(nobody), []);
}

#[test]
fn a_program_that_is_not_on_this_machine_is_reported() {
    let text = "[commands]\nallow = ['no-such-program-anywhere', './here.sh']\n\
        [agents.A]\ninstructions = 'x'\ntools = ['a', 'b']\n\
        [tools.a]\ndescription = 'A.'\ncommand.run = ['no-such-program-anywhere']\n\
        [tools.b]\ndescription = 'B.'\ncommand.run = ['./here.sh']\n";
    let missing: Vec<String> = findings(text)
        .into_iter()
        .filter(|(code, _)| *code == "no-program")
        .map(|(_, message)| message)
        .collect();
    assert_eq!(
        missing,
        [
            "the program \"no-such-program-anywhere\" is not on the PATH",
            "there is no program \"./here.sh\" in the folder of the team file",
        ]
    );
}

#[test]
fn unknown_filters_and_choices_are_reported_with_the_known_ones() {
    let text = r#"
[agents.A]
handoffs = [{ to = "B", filters = ["remove_tools", "redact_pi", { keep_lst = 3 }, { keep_last = -1 }, 5] }]
after_tools = "stop_on_first_toll"
[agents.B]
"#;
    let report = report(text);
    for part in [
        "there is no filter \"remove_tools\"",
        "there is no filter \"redact_pi\"",
        "did you mean \"redact_pii\"?",
        "and as tables { redact_pii = … }, { redact = … }, { keep_last = … }",
        "a filter has no field \"keep_lst\"",
        "did you mean \"keep_last\"?",
        "\"keep_last\" must be at least 0",
        "an entry of \"filters\" must be text in quotes or a table, and this is a number",
        "there is no after_tools behavior \"stop_on_first_toll\"",
        "did you mean \"stop_on_first_tool\"?",
    ] {
        assert!(report.contains(part), "{part} is missing in\n{report}");
    }
}

#[test]
fn misspelt_classes_of_personal_data_are_reported_with_the_known_ones() {
    let text = r#"
[agents.A]
handoffs = [{ to = "B", filters = [
    { redact_pii = { only = ["cards", "iban"], without = ["phones"], placeholders = { emial = "x" } } },
    { redact_pii = { onyl = ["card"] } },
    { redact = { emails = true } },
] }]
[agents.B]
"#;
    let report = report(text);
    for part in [
        "there is no class of personal data \"cards\"",
        "did you mean \"card\"?",
        "there is no class of personal data \"phones\"",
        "did you mean \"phone\"?",
        "there are \"card\", \"iban\", \"ssn\", \"resident_id\", \"passport\", \"email\" and \"phone\"",
        "has no field \"emial\"",
        "did you mean \"email\"?",
        "has no field \"onyl\"",
        "did you mean \"only\"?",
        "has no field \"emails\"",
    ] {
        assert!(report.contains(part), "{part} is missing in\n{report}");
    }
}

#[test]
fn errors_within_expressions_have_positions_of_their_own() {
    let text = r#"
[context]
tier = "basic"
[commands]
allow = ["cat"]
[agents.A]
tools = ["t", "u", "v"]
handoffs = [{ to = "B", when = "teir == 'gold'" }, { to = "B", tool_name = "b", when = "tier = 'gold'" }]
[agents.B]
[tools.t]
description = "d"
http.url = "https://example.com/{nubmer}"
parameters = { properties = { number = {} } }
[tools.u]
description = "d"
command.run = ["rm", "-rf", "{x}"]
parameters = { properties = { x = {} } }
[tools.v]
description = "d"
http.url = "https://{context.tier}.example.com/"
[guardrails.g]
patterns = ['(unclosed', 'fine']
"#;
    let meant = |name: &str| Some(format!("did you mean {name:?}?"));
    assert_eq!(
        positions(text),
        [
            ("unused", 5, 10, None),
            ("bad-condition", 8, 33, meant("tier")),
            ("bad-condition", 8, 94, None),
            ("bad-template", 12, 33, meant("number")),
            ("not-allowed", 16, 16, None),
            ("bad-url", 20, 12, None),
            ("unused", 21, 13, None),
            ("bad-pattern", 22, 13, None),
        ]
    );
}

#[test]
fn syntax_errors_are_reported_in_toml_and_json() {
    assert_eq!(
        report("[agents.A]\ninstructions = Route.\n"),
        r#"error[syntax]: string values must be quoted, expected literal string
 --> team.toml:2:16
  |
2 | instructions = Route.
  |                ^^^^^^
  |
  = help: in TOML write text in "quotes", text of several lines in """three""", and each table once
"#
    );
    let json = "{\n  \"agents\": { \"A\": {} },\n}";
    let problems = TeamFile::parse(json, "team.json").unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(
        (problem.code, problem.line, problem.column),
        ("syntax", Some(3), Some(1))
    );
    let twice = r#"{ "agents": { "A": {}, "A": {} } }"#;
    let problems = TeamFile::parse(twice, "team.json").unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(
        (problem.message.as_str(), problem.column),
        (r#"duplicate key "A""#, Some(24))
    );
}

#[test]
fn wide_characters_are_aligned() {
    let text =
        "[agents.\"分诊\"]\ninstructions = \"你好\"\nhandoffs = [\"账単\"]\n[agents.\"账单\"]\n";
    assert_eq!(
        report(text),
        r#"error[unknown-agent]: there is no agent "账単"
 --> team.toml:3:13
  |
3 | handoffs = ["账単"]
  |             ^^^^^^ did you mean "账单"?
  |
  = help: there are "分诊" and "账单"
"#
    );
}

#[test]
fn findings_of_team_check_have_positions_in_the_file() {
    let text = r#"
start = "Triage"
[agents.Lost]
description = "Nobody comes here."
[agents.Triage]
handoffs = ["Billing"]
[agents.Billing]
[guardrails.g]
max_length = 5
"#;
    let file = TeamFile::parse(text, "team.toml").unwrap();
    let found = file.check();
    let found: Vec<_> = found
        .iter()
        .map(|problem| (problem.severity, problem.code, problem.line))
        .collect();
    assert_eq!(
        found,
        [
            (Severity::Warning, "unreachable", Some(3)),
            (Severity::Warning, "empty-description", Some(6)),
            (Severity::Note, "dead-end", Some(7)),
            (Severity::Warning, "unused", Some(8)),
        ]
    );
}

#[test]
fn problems_serialize_to_json() {
    let problems =
        TeamFile::parse("[agents.Anna]\nhandoffs = [\"ann\"]\n", "team.toml").unwrap_err();
    let problem = serde_json::to_value(problems.iter().next().unwrap()).unwrap();
    assert_eq!(
        problem,
        serde_json::json!({
            "severity": "error", "code": "unknown-agent", "message": "there is no agent \"ann\"", "help": "there are \"Anna\"",
            "file": "team.toml", "line": 2, "column": 13, "suggestion": "did you mean \"Anna\"?",
        })
    );
}

#[test]
fn schema_violations_do_not_hide_other_problems() {
    let text = r#"
colour = "red"
[agents.A]
instrctions = "x"
handoffs = ["Bob", { too = "Carl" }, { to = "Bib", when = "x ==" }]
tools = ["broken", "misspelt"]
[agents.Bib]
description = 5
[tools.broken]
http.url = 5
"#;
    let codes: Vec<_> = positions(text)
        .into_iter()
        .map(|(code, line, ..)| (code, line))
        .collect();
    assert_eq!(
        codes,
        [
            ("unknown-field", 2),
            ("unknown-field", 4),
            ("unknown-agent", 5),
            ("unknown-field", 5),
            ("bad-condition", 5),
            // The invalid tool exists, so the reference to it is not reported.
            ("unknown-tool", 6),
            ("wrong-type", 8),
            ("missing-field", 9),
            ("wrong-type", 10),
        ]
    );
}

#[test]
fn schemas_of_tools_are_checked() {
    let with = |parameters: &str| {
        format!(
            "[agents.A]\ntools = ['t']\n[tools.t]\ndescription = 'd'\nhttp.url = 'https://example.com'\nparameters = {parameters}\n"
        )
    };
    for (parameters, at, message) in [
        (
            "{ properties = { n = { type = 'strng' } } }",
            "'strng'",
            "this is not a schema: ",
        ),
        (
            "{ properties = { n = { type = 'string', required = true } } }",
            "true",
            "this is not a schema: ",
        ),
        (
            "{ number = { type = 'string' } }",
            "number",
            "a schema has no keyword \"number\"",
        ),
        (
            "{ flie = 'p.json' }",
            "flie",
            "a schema has no keyword \"flie\"",
        ),
        (
            "{ properties = { number = {} }, required = ['numbr'] }",
            "'numbr'",
            "there is no property \"numbr\"",
        ),
        (
            "{ type = 'string' }",
            "{ type",
            "the schema must be that of an object",
        ),
    ] {
        let text = with(parameters);
        let problems = TeamFile::parse(&text, "team.toml").unwrap_err();
        let problem = problems.iter().next().unwrap();
        assert_eq!(problem.code, "bad-schema");
        assert!(
            problem.message.starts_with(message),
            "{parameters}: {problems}"
        );
        let line = text.lines().nth(problem.line.unwrap() - 1).unwrap();
        let found: String = line.chars().skip(problem.column.unwrap() - 1).collect();
        assert!(found.starts_with(at), "{parameters}: {problems}");
    }
}

#[test]
fn files_of_cases_are_checked() {
    let team = "[context]\ntier = 'basic'\nage = 5\n[agents.Triage]\n[agents.Billing]\n";
    let team = TeamFile::parse(team, "team.toml").unwrap();
    let text = r#"
[[cases]]
message = "Hi"
expect = "Biling"
context = { tier = "gold", age = "old" }
[[cases]]
messages = ["a"]
message = "b"
[[cases]]
expect = "Triage"
"#;
    let problems = Case::parse_all(text, "cases.toml", &team).unwrap_err();
    let found: Vec<_> = problems
        .iter()
        .map(|problem| {
            (
                problem.code,
                problem.line.unwrap(),
                problem.message.as_str(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("unknown-agent", 4, "the team has no agent \"Biling\""),
            ("bad-context", 5, "\"age\" must be a number, and is \"old\""),
            ("bad-case", 6, "the case has both message and messages"),
            ("bad-case", 6, "the case expects nothing, so it cannot fail"),
            ("bad-case", 9, "the case has no message"),
        ]
    );
    let problems = Case::parse_all("[[cases]]\nmesage = 'Hi'\n", "cases.toml", &team).unwrap_err();
    assert_eq!(
        problems.to_string(),
        r#"error[unknown-field]: a case has no field "mesage"
 --> cases.toml:2:1
  |
2 | mesage = 'Hi'
  | ^^^^^^ did you mean "message"?
  |
  = help: message: The user's message.
"#
    );
    let none = Case::parse_all("", "cases.toml", &team).unwrap_err();
    assert_eq!(none.iter().next().unwrap().code, "no-cases");
    let text = "[[cases]]\nmessages = ['a', 'b']\ncontext = { tier = 'gold' }\npath = ['Triage']\n";
    let cases = Case::parse_all(text, "cases.toml", &team).unwrap();
    assert_eq!(
        (cases[0].name.as_str(), cases[0].messages.len()),
        ("a / b", 2)
    );
    assert_eq!(cases[0].context, [("tier".to_owned(), "gold".to_owned())]);
}
