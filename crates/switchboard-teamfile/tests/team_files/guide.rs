//! The examples of docs/team-files.md.

use switchboard_core::testing::ScriptedModel;
use switchboard_teamfile::TeamFile;

#[tokio::test]
async fn every_file_of_the_guide_runs() {
    let guide = include_str!("../../../../docs/team-files.md");
    let mut blocks = 0;
    for block in guide.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        let file = TeamFile::parse(text, "team.toml")
            .unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        let found = file.check();
        let worst = found.worst();
        assert!(
            worst < Some(switchboard_teamfile::Severity::Warning),
            "{found}\n{text}"
        );
        // The model of this test has a price, too.
        let price = "[prices]\nscripted = { input = 0, output = 0 }\n";
        let text = text.replace("[prices]", price);
        let file = TeamFile::parse(&text, "team.toml").unwrap();
        let options = file.open_options().vars(|_| Some("x".to_owned()));
        let team = options
            .model_handle(ScriptedModel::new().say("Hi.").say("Hi."))
            .open()
            .unwrap();
        assert_eq!(team.runner().run("Hi").await.unwrap().final_text(), "Hi.");
        blocks += 1;
    }
    assert!(blocks >= 7, "{blocks}");
}

#[test]
fn the_guide_names_every_field_and_filter() {
    let guide = include_str!("../../../../docs/team-files.md");
    let mut open = vec![TeamFile::schema()];
    let mut missing = Vec::new();
    while let Some(schema) = open.pop() {
        match schema {
            serde_json::Value::Object(map) => {
                if let Some(serde_json::Value::Object(properties)) = map.get("properties") {
                    missing.extend(
                        properties
                            .keys()
                            .filter(|name| !guide.contains(name.as_str())),
                    );
                }
                if let Some(serde_json::Value::String(choice)) = map.get("const")
                    && !guide.contains(choice)
                {
                    missing.push(choice);
                }
                open.extend(map.values());
            }
            serde_json::Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    assert_eq!(missing, Vec::<&String>::new());
}
