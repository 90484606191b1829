//! Model requests: settings, instructions, limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchboard_core::model::{ModelHandle, Prompt, ToolChoice, Usage};
use switchboard_core::output::OutputType;
use switchboard_core::run::NameCollision;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, FinalOutput, Item, ModelRequest, ModelResponse, ModelSettings, RunConfig, Runner,
    schema, tool,
};

#[tokio::test]
async fn the_runs_settings_override_the_agents_field_by_field() {
    let agent: Agent = Agent::new("A").model_settings(ModelSettings {
        temperature: Some(0.1),
        max_tokens: Some(100),
        ..ModelSettings::default()
    });
    let model = ScriptedModel::new().say("ok");
    let run = ModelSettings {
        temperature: Some(0.9),
        ..ModelSettings::default()
    };
    Runner::new(&agent)
        .model(model.clone())
        .model_settings(run)
        .run("x")
        .await
        .unwrap();
    let asked = &model.requests()[0].settings;
    assert_eq!(
        (asked.temperature, asked.max_tokens),
        (Some(0.9), Some(100))
    );
}

#[tokio::test]
async fn a_forced_tool_choice_is_reset_once_the_agent_used_a_tool() {
    let forced = || {
        Agent::<()>::new("A")
            .tool(tool("t").run(|_ctx, (): ()| "1"))
            .model_settings(ModelSettings {
                tool_choice: Some(ToolChoice::Required),
                ..ModelSettings::default()
            })
    };
    let choices = |model: &ScriptedModel| -> Vec<Option<ToolChoice>> {
        model
            .requests()
            .iter()
            .map(|r| r.settings.tool_choice.clone())
            .collect()
    };
    let model = ScriptedModel::new().call("t", "{}").say("ok");
    Runner::new(&forced())
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    assert_eq!(choices(&model), [Some(ToolChoice::Required), None]);

    let model = ScriptedModel::new().call("t", "{}").say("ok");
    Runner::new(&forced().keep_tool_choice())
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    assert_eq!(
        choices(&model),
        [Some(ToolChoice::Required), Some(ToolChoice::Required)]
    );
}

#[tokio::test]
async fn usage_adds_up_and_callbacks_see_it() {
    let agent = Agent::<()>::new("A")
        .instructions_fn(|ctx, agent| async move {
            format!(
                "{} has used {} tokens.",
                agent.name(),
                ctx.usage().total_tokens()
            )
        })
        .tool(tool("t").run(|_ctx, (): ()| "1"));
    let usage = Usage {
        requests: 1,
        input_tokens: 10,
        output_tokens: 5,
        ..Usage::default()
    };
    let model = ScriptedModel::new()
        .respond_with(ModelResponse::new([Item::function_call("c", "t", "{}")]).usage(usage))
        .respond_with(ModelResponse::new([Item::output_message("m", "ok")]).usage(usage));
    let result = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    assert_eq!(*result.usage(), usage + usage);
    let asked = model.requests()[1].instructions.clone();
    assert_eq!(asked.as_deref(), Some("A has used 15 tokens."));
}

#[tokio::test]
async fn too_many_turns_end_the_run_and_its_items_are_kept() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new()
        .call("t", "{}")
        .call("t", "{}")
        .say("never");
    let runner = Runner::new(&agent).model(model.clone()).max_turns(2);
    let error = runner.run("x").await.unwrap_err();
    assert!(error.is_max_turns());
    assert!(error.to_string().contains("2 turns"), "{error}");
    let run = error.into_run().unwrap();
    assert_eq!((run.turns(), run.new_items().len()), (2, 4));
    let more = Runner::new(&agent).model(model).max_turns(3);
    assert_eq!(more.resume(run).await.unwrap().final_text(), "never");
}

#[tokio::test]
async fn without_a_model_the_error_says_how_to_give_one() {
    let agent: Agent = Agent::new("A");
    let error = Runner::new(&agent).run("x").await.unwrap_err();
    assert!(
        error.is_configuration() && error.to_string().contains("Runner::model"),
        "{error}"
    );
}

#[tokio::test]
async fn names_that_collide_can_be_an_error() {
    let b: Agent = Agent::new("B");
    let agent = Agent::new("A")
        .handoff(&b)
        .tool(tool("transfer_to_b").run(|_ctx, (): ()| "1"));
    let config = RunConfig {
        name_collision: NameCollision::Fail,
        ..RunConfig::default()
    };
    let model = ScriptedModel::new().say("never");
    let error = Runner::new(&agent)
        .replace_config(config)
        .model(model)
        .run("x")
        .await
        .unwrap_err();
    assert!(
        error.is_configuration() && error.to_string().contains("transfer_to_b"),
        "{error}"
    );
}

#[test]
fn headers_are_named_and_their_values_are_not_shown() {
    let mut settings = ModelSettings {
        temperature: Some(0.5),
        ..ModelSettings::default()
    };
    let (name, value) = ("api-key".to_owned(), "hunter2".to_owned());
    settings.extra_headers.insert(name, value);
    let config: RunConfig = RunConfig {
        model_settings: Some(settings.clone().into()),
        ..RunConfig::default()
    };
    let mut request = ModelRequest::new(vec![Item::user("x")]);
    request.settings = settings.clone().into();
    let agent: Agent = Agent::new("A").model_settings(settings.clone());
    let shown = format!("{settings:?} {config:?} {request:?} {agent:?}");
    assert!(
        shown.contains("api-key") && shown.contains("0.5"),
        "{shown}"
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn an_output_type_may_be_lenient_or_known_only_at_run_time() {
    let counts = OutputType::lenient::<BTreeMap<String, u32>>();
    let schema = json!({"type": "array", "items": {"type": "integer", "minimum": 1}});
    let numbers = OutputType::described_by("Numbers", schema).unwrap();
    for (output, good, bad) in [
        (counts, r#"{"a": 1}"#, r#"{"a": "x"}"#),
        (numbers, r#"{"response": [1]}"#, r#"{"response": [0]}"#),
    ] {
        assert!(!output.is_strict());
        let agent: Agent = Agent::new("A").output_as(output);
        let run = |answer: &str| {
            let model = ScriptedModel::new().say(answer);
            Runner::new(&agent).model(model).run("x")
        };
        assert!(run(good).await.is_ok());
        assert!(run(bad).await.unwrap_err().is_model_behavior());
    }
    assert!(
        Agent::<()>::new("A")
            .output::<Vec<u32>>()
            .output_type()
            .unwrap()
            .is_strict()
    );
    let wrong = OutputType::described_by("Wrong", json!({"type": "nothing"}));
    assert!(wrong.unwrap_err().contains("schema cannot be used"));
}

#[tokio::test]
async fn a_lenient_output_reads_numbers_and_booleans_from_text_and_a_strict_one_does_not() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Person {
        name: String,
        age: u8,
        height: f64,
        is_member: Option<bool>,
    }
    let sent = r#"{"name": "12", "age": "25", "height": "1.5", "is_member": "true"}"#;
    let run = |output: OutputType, answer: &str| {
        let agent: Agent = Agent::new("A").output_as(output);
        let model = ScriptedModel::new().say(answer);
        async move { Runner::new(&agent).model(model).run("x").await }
    };
    let read = json!({"name": "12", "age": 25, "height": 1.5, "is_member": true});
    let result = run(OutputType::lenient::<Person>(), sent).await.unwrap();
    assert_eq!(
        result.final_output(),
        Some(&FinalOutput::Json(read.clone()))
    );
    let person = Person {
        name: "12".to_owned(),
        age: 25,
        height: 1.5,
        is_member: Some(true),
    };
    assert_eq!(result.final_output_as::<Person>().unwrap(), person);

    let described = OutputType::described_by("Person", schema::of::<Person>()).unwrap();
    let result = run(described, sent).await.unwrap();
    assert_eq!(result.final_output(), Some(&FinalOutput::Json(read)));

    let wrapped = OutputType::lenient::<Vec<u32>>();
    let result = run(wrapped, r#"{"response": ["1", 2.0]}"#).await.unwrap();
    assert_eq!(
        result.final_output(),
        Some(&FinalOutput::Json(json!([1, 2])))
    );

    let strict = OutputType::of::<Person>().unwrap();
    assert!(run(strict, sent).await.unwrap_err().is_model_behavior());
    for not_exact in ["256", "25 ", "25.5", "twenty"] {
        let answer = sent.replace("25", not_exact);
        let result = run(OutputType::lenient::<Person>(), &answer).await;
        assert!(result.unwrap_err().is_model_behavior(), "{answer}");
    }
}

#[tokio::test]
async fn settings_of_an_agent_replace_the_defaults_of_its_model() {
    let defaults = ModelSettings {
        verbosity: Some("low".into()),
        max_tokens: Some(7),
        ..ModelSettings::default()
    };
    let of_agent = ModelSettings {
        temperature: Some(0.5),
        ..ModelSettings::default()
    };
    let of_run = ModelSettings {
        max_tokens: Some(9),
        ..ModelSettings::default()
    };
    for (own, verbosity) in [
        (None, Some("low")),
        (Some(of_agent), None),
        (Some(ModelSettings::default()), None),
    ] {
        let script = ScriptedModel::new().say("Hi.");
        let model = ModelHandle::new(script.clone()).default_settings(defaults.clone());
        let mut agent: Agent = Agent::new("A").model(model);
        if let Some(own) = own {
            agent = agent.model_settings(own);
        }
        let runner = Runner::new(&agent).model_settings(of_run.clone());
        runner.run("x").await.unwrap();
        let sent = &script.requests()[0].settings;
        assert_eq!(sent.verbosity.as_deref(), verbosity);
        assert_eq!(sent.max_tokens, Some(9));
    }
}

#[tokio::test]
async fn the_prompt_of_an_agent_is_fixed_or_made_each_turn() {
    let script = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("look", "{}")
        .say("Hi.");
    let turns = Arc::new(AtomicU32::new(0));
    let counted = turns.clone();
    let b: Agent = Agent::new("B")
        .tool(tool("look").run(|_ctx, (): ()| "nothing"))
        .prompt_fn(move |_ctx, agent: Agent| {
            let turn = counted.fetch_add(1, Ordering::SeqCst);
            async move { Prompt::new(agent.name()).variable("turn", turn) }
        });
    let a = Agent::new("A")
        .handoff(&b)
        .prompt(Prompt::new("pmpt_1").version("3"));
    Runner::new(&a).model(&script).run("x").await.unwrap();
    let requests = script.requests();
    let prompts: Vec<Prompt> = requests
        .iter()
        .map(|request| request.prompt.as_deref().unwrap().clone())
        .collect();
    let expected = [
        Prompt::new("pmpt_1").version("3"),
        Prompt::new("B").variable("turn", 0),
        Prompt::new("B").variable("turn", 1),
    ];
    assert_eq!(prompts, expected);
    assert_ne!(requests[1].fingerprint(), {
        let mut request = requests[1].clone();
        request.prompt = None;
        request.fingerprint()
    });
}

#[tokio::test]
async fn an_error_of_the_function_that_makes_the_prompt_ends_the_run() {
    let agent: Agent = Agent::new("A")
        .model(ScriptedModel::new().say("Hi."))
        .prompt_fn(|_ctx, _agent| Err::<Prompt, _>("no such customer"));
    let error = Runner::new(&agent).run("x").await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the function that makes the prompt"),
        "{text}"
    );
    assert!(text.contains("no such customer"), "{text}");
}
