//! Running teams.

use serde_json::json;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{ErrorKind, ModelRequest};
use switchboard_teamfile::TeamFile;

fn file(text: &str) -> TeamFile {
    TeamFile::parse(text, "team.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

fn texts(request: &ModelRequest) -> Vec<String> {
    let items = request.input.iter();
    items
        .map(|item| {
            let text = item
                .text()
                .or_else(|| item.output())
                .or_else(|| item.arguments());
            text.unwrap_or_default().into_owned()
        })
        .collect()
}

const TEAM: &str = r#"
    start = "Triage"

    [settings]
    temperature = 0.5
    max_tokens = 100

    [context]
    tier = "basic"
    customer = { age = 40 }

    [agents.Billing]
    description = "Bills."
    instructions = "You handle bills."
    settings = { temperature = 0.1, tool_choice = "none" }

    [agents.Triage]
    instructions = "Route."
    handoffs = [
        { to = "Billing", tool_name = "bill", description = "For bills.", filters = ["redact_pii", { keep_last = 20 }], payload = { properties = { reason = { type = "string" } }, required = ["reason"] } },
        { to = "Manager", when = "tier == 'gold' and customer.age >= 18" },
    ]

    [agents.Manager]
    description = "A person."
    nested = 1
"#;

#[tokio::test]
async fn agents_settings_and_handoffs_match_the_file() {
    let text = TEAM.replace("nested = 1", "");
    let file = file(&text);
    let model = ScriptedModel::new()
        .call("bill", r#"{"reason":"wrong"}"#)
        .say("Fixed.");
    let team = file
        .open_options()
        .model_handle(model.clone())
        .open()
        .unwrap();
    let result = team
        .runner()
        .run("Mail me at ann@example.com")
        .await
        .unwrap();
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("Billing", "Fixed.")
    );
    assert_eq!(result.handoffs()[0].payload, json!({ "reason": "wrong" }));
    let requests = model.requests();
    let [triage, billing] = requests.as_slice() else {
        panic!("{requests:?}")
    };
    assert_eq!(triage.instructions.as_deref(), Some("Route."));
    // The condition of the other handoff does not hold.
    let offered: Vec<_> = triage
        .handoffs
        .iter()
        .map(|handoff| handoff.tool_name.to_string())
        .collect();
    assert_eq!(offered, ["bill"]);
    assert_eq!(triage.settings.temperature, Some(0.5));
    assert_eq!(billing.settings.temperature, Some(0.1));
    assert_eq!(billing.settings.max_tokens, Some(100));
    let seen = texts(billing);
    assert_eq!(seen[0], "Mail me at [EMAIL]");
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[tokio::test]
async fn a_redaction_has_the_classes_and_placeholders_of_the_file() {
    let message = "I am ann@example.com, 020 7946 0958, card 4111 1111 1111 1111, ORD-7";
    for (filters, expected) in [
        ("'redact_pii'", "I am [EMAIL], [PHONE], card [CARD], ORD-7"),
        (
            "{ redact_pii = {} }",
            "I am [EMAIL], [PHONE], card [CARD], ORD-7",
        ),
        (
            "{ redact_pii = { only = ['card', 'email'], placeholders = { card = '<hidden>' } } }",
            "I am [EMAIL], 020 7946 0958, card <hidden>, ORD-7",
        ),
        (
            "{ redact_pii = { without = ['phone'] } }, { redact = { patterns = { 'ORD-\\d+' = '[ORDER]' } } }",
            "I am [EMAIL], 020 7946 0958, card [CARD], [ORDER]",
        ),
        (
            "{ redact = { patterns = { 'ORD-\\d+' = '[ORDER]' } } }",
            "I am ann@example.com, 020 7946 0958, card 4111 1111 1111 1111, [ORDER]",
        ),
    ] {
        let text = format!(
            "[agents.A]\nhandoffs = [{{ to = 'B', filters = [{filters}] }}]\n[agents.B]\ndescription = 'B.'\n"
        );
        let model = ScriptedModel::new()
            .call("transfer_to_b", "{}")
            .say("Done.");
        let file = file(&text);
        let options = file.open_options().model_handle(model.clone());
        options.open().unwrap().runner().run(message).await.unwrap();
        assert_eq!(texts(&model.requests()[1])[0], expected, "{filters}");
    }
}

#[tokio::test]
async fn conditions_are_evaluated_with_the_context_of_the_run() {
    let text = TEAM.replace("nested = 1", "");
    let file = file(&text);
    for (tier, age, manager) in [
        ("gold", "18", true),
        ("gold", "17", false),
        ("basic", "50", false),
    ] {
        let model = ScriptedModel::new().say("Hi.");
        let options = file.open_options().context("tier", tier).unwrap();
        let options = options.context("customer.age", age).unwrap();
        let team = options.model_handle(model.clone()).open().unwrap();
        team.runner().run("Hi").await.unwrap();
        let request = &model.requests()[0];
        let offers = request.handoffs.iter();
        let has_manager = offers
            .clone()
            .any(|handoff| &*handoff.tool_name == "transfer_to_manager");
        assert_eq!(has_manager, manager, "{tier} {age}");
    }
    let error = file.open_options().context("teir", "gold").unwrap_err();
    assert!(error.contains(r#"did you mean "tier"?"#), "{error}");
}

#[tokio::test]
async fn a_payload_that_violates_its_schema_is_told_to_the_model() {
    let text = TEAM.replace("nested = 1", "");
    let model = ScriptedModel::new()
        .call("bill", r#"{"reason":5}"#)
        .call("bill", r#"{"reason":"wrong"}"#)
        .say("Fixed.");
    let file = file(&text);
    let options = file.open_options().model_handle(model.clone());
    let team = options.open().unwrap();
    let result = team.runner().run("Hi").await.unwrap();
    assert_eq!(result.last_agent().name(), "Billing");
    let told = texts(&model.requests()[1]).pop().unwrap();
    let problem = "at /reason: expected string, got number";
    assert!(told.contains(problem), "{told}");
}

#[tokio::test]
async fn guardrails_stop_redact_and_refuse() {
    let text = r#"
        [guardrails.secret]
        patterns = ['(?i)launch code']
        message = "Not here."

        [guardrails.rude]
        deny = ["darn it", "傻瓜"]
        then = "redact"

        [guardrails.short]
        max_length = 20

        [agents.A]
        input_guardrails = ["secret", "rude"]
        output_guardrails = ["short", "rude"]
        handoffs = [{ to = "B", guardrails = ["secret"], payload = {} }]

        [agents.B]
        description = "B."
    "#;
    let file = file(text);
    let run = async |model: ScriptedModel, said: &str| {
        let team = file.open_options().model_handle(model).open().unwrap();
        team.runner().run(said).await
    };
    let stopped = run(ScriptedModel::new(), "The Launch Code is 5")
        .await
        .unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::InputGuardrail);
    assert!(stopped.to_string().contains("secret"), "{stopped}");

    let model = ScriptedModel::new().say("Ok 傻瓜们.");
    let result = run(model.clone(), "Do it, DARN  it! undarn it")
        .await
        .unwrap();
    assert_eq!(texts(&model.requests()[0]), ["Do it, [removed]! undarn it"]);
    assert_eq!(result.final_text(), "Ok [removed]们.");

    let long = run(
        ScriptedModel::new().say("This is longer than it may be"),
        "Hi",
    )
    .await
    .unwrap_err();
    assert_eq!(long.kind(), ErrorKind::OutputGuardrail);

    let model = ScriptedModel::new()
        .call("transfer_to_b", r#"{"note":["the launch code"]}"#)
        .say("I stay.");
    let result = run(model.clone(), "Hi").await.unwrap();
    assert_eq!(
        (result.last_agent().name(), &*result.final_text()),
        ("A", "I stay.")
    );
    let seen = texts(&model.requests()[1]);
    assert!(
        seen.iter().any(|text| text.contains("Not here.")),
        "{seen:?}"
    );
}

#[tokio::test]
async fn instructions_knowledge_and_schemas_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("a.md", "\u{feff}Be kind.\n");
    write(
        "faq.md",
        "# Due?\nOn the 5th.\n```\n# not a heading\n```\n\n## Empty\n## How much?\n20.\n",
    );
    write("p.toml", "[properties.x]\ntype = \"integer\"\n");
    write(
        "team.json",
        r#"{ "agents": {
            "A": { "instructions": { "file": "a.md" }, "knowledge": [{ "file": "faq.md" }, { "title": "T", "text": "X" }],
                   "handoffs": [{ "to": "B", "payload": { "file": "p.toml" } }] },
            "B": { "description": "B." } } }"#,
    );
    let file = TeamFile::read(folder.path().join("team.json"))
        .unwrap_or_else(|problems| panic!("{problems}"));
    let model = ScriptedModel::new()
        .call("transfer_to_b", r#"{"x":1}"#)
        .say("Hi.");
    let team = file
        .open_options()
        .model_handle(model.clone())
        .open()
        .unwrap();
    let result = team.runner().run("Hi").await.unwrap();
    assert_eq!(result.handoffs()[0].payload, json!({ "x": 1 }));
    let request = &model.requests()[0];
    assert_eq!(request.instructions.as_deref(), Some("Be kind."));
    let known: Vec<_> = request
        .knowledge
        .iter()
        .map(|entry| (&*entry.title, &*entry.text))
        .collect();
    assert_eq!(
        known,
        [
            ("Due?", "On the 5th.\n```\n# not a heading\n```"),
            ("How much?", "20."),
            ("T", "X")
        ]
    );
}

#[tokio::test]
async fn models_are_created_from_the_file_and_the_environment() {
    let text = r#"
        model = "local"
        [models.local]
        name = "llama3.1"
        base_url = "http://127.0.0.1:9/v1"
        api = "chat"
        key = { env = "LOCAL_KEY" }
        [agents.A]
        handoffs = ["B", { to = "C", filters = [{ summarize = { model = "local", keep_last = 2 } }] }]
        [agents.B]
        description = "B."
        model = "openai/gpt-5.2"
        [agents.C]
        description = "C."
        model = "offline"
    "#;
    let file = file(text);
    let set = |names: &'static [&'static str]| {
        move |name: &str| names.contains(&name).then(|| "x".to_owned())
    };
    let team = file
        .open_options()
        .vars(set(&["LOCAL_KEY", "OPENAI_API_KEY"]))
        .open()
        .unwrap();
    let names: Vec<_> = ["A", "B", "C", "D"]
        .map(|agent| team.model_name(agent))
        .to_vec();
    assert_eq!(
        names,
        [Some("local"), Some("openai/gpt-5.2"), Some("offline"), None]
    );
    let problems = file.open_options().vars(set(&[])).open().unwrap_err();
    let found: Vec<_> = problems
        .iter()
        .map(|problem| (problem.line, problem.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (Some(2), "the environment has no variable LOCAL_KEY"),
            (Some(9), "the environment has no variable LOCAL_KEY"),
            (
                Some(12),
                "there is no model \"openai/gpt-5.2\": there is no key: set OPENAI_API_KEY, name another server with OPENAI_BASE_URL, or use the model \"offline\""
            ),
        ]
    );
    // An empty variable counts as not set.
    let empty = |name: &str| (name == "LOCAL_KEY").then(String::new);
    assert_eq!(
        file.open_options()
            .vars(empty)
            .open()
            .unwrap_err()
            .iter()
            .count(),
        3
    );
    // A model for all agents needs no variables.
    let team = file
        .open_options()
        .vars(set(&[]))
        .model("offline")
        .open()
        .unwrap();
    assert_eq!(team.model_name("A"), Some("offline"));
    let wrong = file
        .open_options()
        .vars(set(&[]))
        .model("nobody/x")
        .open()
        .unwrap_err();
    assert!(
        wrong
            .to_string()
            .starts_with("error[unknown-model]: there is no model \"nobody/x\""),
        "{wrong}"
    );
}

#[tokio::test]
async fn a_file_that_names_no_variable_reads_none() {
    let text = "model = 'offline'\n[context]\ntier = 'basic'\n[agents.A]\n";
    let file = file(text);
    let options = file
        .open_options()
        .vars(|name| panic!("{name} was looked up"));
    let team = options.open().unwrap();
    let context = team.context().clone();
    assert_eq!(
        context.clone().with("tier", 5).unwrap_err(),
        "\"tier\" is \"basic\" in the file, and 5 is of another type"
    );
    let premium = team.with_context(context.with("tier", "premium").unwrap());
    assert_eq!(premium.context().get("tier"), Some(&json!("premium")));
    assert_eq!(team.context().get("tier"), Some(&json!("basic")));
    // Values of a context may be secrets.
    assert!(!format!("{:?}", premium.context()).contains("premium"));
}

#[tokio::test]
async fn an_agent_may_answer_with_json() {
    let file = file(
        r#"
        [agents.Billing]
        output = { title = "Bill", properties = { total = { type = "number" } }, required = ["total"] }
        "#,
    );
    let run = async |answer: &str| {
        let model = ScriptedModel::new().say(answer);
        let team = file.open_options().model_handle(model).open().unwrap();
        team.runner().run("x").await
    };
    let result = run(r#"{"total": 12.5}"#).await.unwrap();
    assert_eq!(
        result.final_output().unwrap().to_value(),
        json!({"total": 12.5})
    );
    let error = run(r#"{"total": "much"}"#).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ModelBehavior);
    assert!(error.to_string().contains("not a Bill"), "{error}");
}
