//! People, ways back, handoffs that conditions make, and payloads that are delivered.

use switchboard_core::Run;
use switchboard_core::approval::InterruptionKind;
use switchboard_core::people::PersonAnswer;
use switchboard_core::testing::ScriptedModel;
use switchboard_teamfile::{OpenTeam, Problem, Severity, TeamFile};

fn open(text: &str, model: &ScriptedModel, context: &[(&str, &str)]) -> OpenTeam {
    let file = TeamFile::parse(text, "team.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let mut options = file.open_options().model_handle(model.clone());
    for (key, value) in context {
        options = options.context(key, value).unwrap();
    }
    options.open().unwrap()
}

fn problems(text: &str) -> Vec<Problem> {
    let problems = match TeamFile::parse(text, "team.toml") {
        Ok(file) => file.check(),
        Err(problems) => problems,
    };
    problems.iter().cloned().collect()
}

const PEOPLE: &str = r#"
    [agents.Triage]
    handoffs = [{ to = "Ann", payload = { properties = { reason = { type = "string" } }, required = ["reason"] } }, "Billing"]
    [agents.Ann]
    description = "Complaints."
    person = true
    handoffs = ["Billing"]
    [agents.Billing]
    description = "Bills."
    handoffs = ["Ann"]
"#;

async fn asked(model: &ScriptedModel) -> (OpenTeam, Run) {
    let team = open(PEOPLE, model, &[]);
    let run = team.runner().run("A person!").await.unwrap().into_run();
    (team, run)
}

#[tokio::test]
async fn a_run_waits_for_a_person_and_goes_on_with_the_answer() {
    let model = ScriptedModel::new()
        .call("transfer_to_ann", r#"{"reason":"angry"}"#)
        .say("Bills here.");
    let (team, mut run) = asked(&model).await;
    let waiting = run.interruptions().remove(0);
    let InterruptionKind::Person {
        from, may_hand_to, ..
    } = &waiting.kind
    else {
        panic!("{waiting:?}")
    };
    assert_eq!(from.as_deref(), Some("Triage"));
    assert!(
        may_hand_to.iter().any(|name| **name == *"Billing"),
        "{may_hand_to:?}"
    );
    assert_eq!(
        (&*waiting.agent, &*waiting.arguments),
        ("Ann", r#"{"reason":"angry"}"#)
    );
    let mut other = run.fork();

    run.answer(&waiting, PersonAnswer::reply("I am here."))
        .unwrap();
    let result = team.runner().resume(run).await.unwrap();
    assert_eq!(result.final_text(), "I am here.");
    assert_eq!(result.last_agent().name(), "Ann");

    let waiting = other.interruptions().remove(0);
    other
        .answer(&waiting, PersonAnswer::hand_to("Billing"))
        .unwrap();
    let result = team.runner().resume(other).await.unwrap();
    assert_eq!(result.final_text(), "Bills here.");
}

#[test]
fn people_need_no_model_and_no_price_and_what_they_ignore_is_reported() {
    let team = "[run]\nbudget.cost = 1\n[agents.A]\nhandoffs = ['P']\n[agents.P]\ndescription = 'P.'\nperson = true\n\
                handoffs = ['A']\n";
    let worst = |text: &str| {
        let problems = problems(text);
        let worst = problems.iter().max_by_key(|problem| problem.severity);
        worst.map(|problem| (problem.severity, problem.code))
    };
    assert!(
        worst(team) < Some((Severity::Warning, "")),
        "{:?}",
        problems(team)
    );
    let ignored = Some((Severity::Warning, "ignored-by-person"));
    assert_eq!(
        worst(&team.replace("person = true", "person = true\ninstructions = 'x'")),
        ignored
    );
    // A person that a handoff leads to can hand back; one that begins has nobody.
    let found = problems("[agents.P]\ndescription = 'P.'\nperson = true\n");
    let found = found.iter().find(|problem| problem.code == "dead-end");
    let found = found.unwrap();
    assert!(
        found
            .message
            .contains("can hand the conversation to nobody"),
        "{found:?}"
    );
    assert_eq!((found.line, found.column), (Some(1), Some(9)));
}

#[tokio::test]
async fn ways_back_lead_to_the_previous_and_the_first_agent() {
    let text = r#"
        [agents.A]
        handoffs = ["B"]
        [agents.B]
        description = "B."
        handoffs = ["C"]
        [agents.C]
        description = "C."
        handoffs = [{ return = "previous" }, { return = "start", tool_name = "home" }]
    "#;
    for (tool, agent) in [("return_to_previous", "B"), ("home", "A")] {
        let model = ScriptedModel::new()
            .call("transfer_to_b", "{}")
            .call("transfer_to_c", "{}")
            .call(tool, "{}")
            .say("Yes?");
        let result = open(text, &model, &[]).runner().run("Hi").await.unwrap();
        assert_eq!(result.last_agent().name(), agent);
    }
}

#[tokio::test]
async fn a_handoff_returns_a_result() {
    let text = r#"
        [agents.A]
        handoffs = [{ to = "B", returns = { properties = { amount = { type = "number" } }, required = ["amount"] }, return_filters = ["remove_all_tools"] }]
        [agents.B]
        description = "B."
    "#;
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("hand_back", r#"{"amount":"much"}"#)
        .call("hand_back", r#"{"amount":20}"#)
        .say("You get 20.");
    let result = open(text, &model, &[]).runner().run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "A");
    let shown = &model.requests()[3].input;
    let text: String = shown.iter().map(|item| item.as_json().to_owned()).collect();
    assert!(
        text.contains("20") && !text.contains("function_call"),
        "{text}"
    );
}

#[tokio::test]
async fn conditions_make_handoffs_before_and_after_a_turn() {
    let text = r#"
        [context]
        blocked = false
        [agents.Writer]
        handoffs = [
            { to = "Fraud desk", before_turn = "blocked", hidden = true },
            { to = "Reviewer", after_turn = "true", hidden = true },
        ]
        [agents."Fraud desk"]
        description = "Blocked accounts."
        [agents.Reviewer]
        description = "Reviews."
    "#;
    let model = ScriptedModel::new().say("Blocked.");
    let team = open(text, &model, &[("blocked", "true")]);
    let result = team.runner().run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Fraud desk");
    assert_eq!(model.requests().len(), 1);

    let model = ScriptedModel::new().say("A draft.").say("Approved.");
    let result = open(text, &model, &[]).runner().run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Reviewer");
    assert_eq!(result.final_text(), "Approved.");
    assert!(model.requests()[0].handoffs.is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn a_payload_is_delivered_as_the_file_says() {
    let text = r#"
        [commands]
        allow = ["printf"]
        [agents.A]
        handoffs = [{ to = "B", deliver = ["WAYS"], payload = { properties = { order = { type = "string" } }, required = ["order"] } }]
        [agents.B]
        description = "B."
        instructions = "You are B."
        tools = ["find"]
        [tools.find]
        description = "Finds it."
        command.run = ["printf", "found %s", "{payload.order}"]
    "#;
    for (ways, in_instructions, in_messages, output) in [
        ("message", false, true, "\"order\" is missing"),
        ("instructions", true, false, "found A-17"),
        ("context", false, false, "found A-17"),
    ] {
        let model = ScriptedModel::new()
            .call("transfer_to_b", r#"{"order":"A-17"}"#)
            .call("find", "{}")
            .say("Found.");
        let text = text.replace("WAYS", ways);
        let result = open(&text, &model, &[]).runner().run("Hi").await.unwrap();
        assert_eq!(result.final_text(), "Found.");
        let request = &model.requests()[1];
        let instructions = request.instructions.clone().unwrap_or_default();
        assert_eq!(instructions.contains("A-17"), in_instructions, "{ways}");
        let messages = request.input.iter().filter_map(|item| item.text());
        let is_shown = messages.into_iter().any(|text| text.contains("A-17"));
        assert_eq!(is_shown, in_messages, "{ways}");
        let last = model.requests()[2]
            .input
            .iter()
            .next_back()
            .unwrap()
            .output_text()
            .unwrap()
            .into_owned();
        assert!(last.contains(output), "{ways}: {last}");
    }
}

#[test]
fn ways_that_lead_nowhere_are_reported() {
    let with = |handoff: &str| {
        format!(
            "[context]\nx = true\n[agents.A]\ndescription = 'A.'\nhandoffs = ['B', {handoff}]\n[agents.B]\ndescription = 'B.'\n\
             handoffs = ['A']\n[run]\nloops.per_edge = 2\n"
        )
    };
    let payload = "payload.properties.n.type = 'number'";
    for (handoff, severity, code, message) in [
        (
            "{ tool_name = 'x' }".to_owned(),
            Severity::Error,
            "bad-handoff",
            "this handoff leads to nobody",
        ),
        (
            "{ to = 'B', return = 'start' }".to_owned(),
            Severity::Error,
            "bad-handoff",
            "a handoff leads to an agent that is named or back, not both",
        ),
        (
            "{ return = 'previous', budget.turns = 2 }".to_owned(),
            Severity::Error,
            "bad-handoff",
            "a way back has no budget of its own",
        ),
        (
            format!("{{ to = 'B', tool_name = 'x', before_turn = 'x', {payload} }}"),
            Severity::Error,
            "bad-handoff",
            "a handoff that a condition makes has no payload",
        ),
        (
            "{ to = 'B', tool_name = 'x', deliver = ['message'] }".to_owned(),
            Severity::Error,
            "bad-handoff",
            "there is no payload to deliver",
        ),
        (
            "{ to = 'B', tool_name = 'x', before_turn = 'y' }".to_owned(),
            Severity::Error,
            "bad-condition",
            "the context has no \"y\"",
        ),
        (
            "{ to = 'B', tool_name = 'x', hidden = true }".to_owned(),
            Severity::Warning,
            "no-effect",
            "nothing makes this handoff: it is hidden from the model",
        ),
        (
            "{ to = 'B', tool_name = 'x', return_filters = ['redact_pii'] }".to_owned(),
            Severity::Warning,
            "no-effect",
            "this has no effect without returns",
        ),
    ] {
        let found = problems(&with(&handoff));
        let found: Vec<_> = found
            .iter()
            .filter(|problem| problem.severity > Severity::Note)
            .map(|problem| {
                (
                    problem.severity,
                    problem.code,
                    problem.message.as_str(),
                    problem.line,
                )
            })
            .collect();
        assert_eq!(found, [(severity, code, message, Some(5))], "{handoff}");
    }
}
