//! The promises of the guide on team files about filters, rules, budgets and tools, shown by the requests of the built
//! program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use fake_provider::Reply;
use serde_json::{Value, json};

use crate::conversations::{Desk, words};
use crate::support::Ran;

/// Replies with one tool call.
fn call(id: &str, tool: &str, arguments: &Value) -> Reply {
    Reply::call(id, tool, &arguments.to_string())
}

/// The output of a call in the last request.
fn output_of(desk: &Desk, call_id: &str) -> String {
    let requests = desk.requests();
    let input = requests.last().unwrap()["input"].as_array().unwrap();
    let output = input
        .iter()
        .find(|item| item["type"] == "function_call_output" && item["call_id"] == call_id);
    output.unwrap()["output"].as_str().unwrap().to_owned()
}

#[test]
fn classes_of_personal_data_are_hidden_by_choice_with_their_placeholders() {
    let message = "I am ann@example.com, card 4111 1111 1111 1111, order ORD-77";
    for (filters, expected) in [
        (r#""redact_pii""#, "I am [EMAIL], card [CARD], order ORD-77"),
        (
            r#"{ redact_pii = { only = ["card"], placeholders = { card = "[hidden]" } } }"#,
            "I am ann@example.com, card [hidden], order ORD-77",
        ),
        (
            r#"{ redact_pii = { without = ["card"] } }, { redact = { patterns = { 'ORD-\d+' = "[ORDER]" } } }"#,
            "I am [EMAIL], card 4111 1111 1111 1111, order [ORDER]",
        ),
    ] {
        let team = format!(
            "[agents.Triage]\nhandoffs = [{{ to = 'Desk', filters = [{filters}] }}]\n\
             [agents.Desk]\ndescription = 'A desk.'\n"
        );
        let replies = [
            Reply::call("c1", "transfer_to_desk", "{}"),
            Reply::text("Hello."),
        ];
        let desk = Desk::new(&team, replies);
        let ran = desk.send(message, &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let requests = desk.requests();
        assert_eq!(words(&requests[0]), [format!("{message:?}")]);
        assert_eq!(words(&requests[1]), [format!("{expected:?}")]);
    }
}

#[test]
fn rules_refuse_a_handoff_or_lead_it_to_another_agent() {
    let team = r#"
[context]
is_open = true
tier = "basic"

[agents.Triage]
instructions = "Route the customer."

[[agents.Triage.handoffs]]
to = "Billing"
payload = { properties = { amount = { type = "number" } }, required = ["amount"] }
rules = [
    { when = "not is_open", redirect = "Night desk" },
    { when = "payload.amount > 1000 and tier != 'gold'", refuse = "Write a letter." },
]

[agents.Billing]
description = "Bills."

[agents."Night desk"]
description = "Takes messages."
"#;
    for (context, to, status) in [
        ("tier=basic", "Billing", "refused"),
        ("tier=gold", "Billing", "taken"),
        ("is_open=false", "Night desk", "taken"),
    ] {
        let replies = [
            call("c1", "transfer_to_billing", &json!({"amount": 5000})),
            Reply::text("Hello."),
        ];
        let desk = Desk::new(team, replies);
        let ran = desk.send("Hi", &["-c", context, "--json"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let handoff = ran.events_of("handoff").pop().unwrap();
        assert_eq!(
            (&handoff["to"], &handoff["status"]),
            (&json!(to), &json!(status)),
            "{context}"
        );
        if status == "refused" {
            assert_eq!(output_of(&desk, "c1"), "Write a letter.");
        }
    }
}

#[test]
fn a_budget_ends_the_run_or_leads_it_to_another_agent() {
    let team = |at_budget: &str| {
        format!(
            "[agents.Triage]\ninstructions = 'x'\nhandoffs = ['Night desk']\ntools = ['today']\n\
             [agents.\"Night desk\"]\ndescription = 'Takes messages.'\n\
             [commands]\nallow = ['echo']\n[tools.today]\ndescription = 'The date.'\n\
             command.run = ['echo', 'Monday']\n[run]\nbudget = {{ turns = 1 }}\n{at_budget}\n"
        )
    };
    let ask = |at_budget: &str| {
        let replies = [
            call("c1", "today", &json!({})),
            Reply::text("I am the night desk."),
        ];
        let desk = Desk::new(&team(at_budget), replies);
        let ran = desk.send("Hi", &["--quiet"]);
        (ran, desk.requests().len())
    };
    let (ran, requests) = ask("");
    assert_eq!((ran.code, requests), (Some(1), 1), "{ran:?}");
    assert!(
        ran.stderr.contains("the budget of 1 turn of the run"),
        "{ran:?}"
    );
    let (ran, requests) = ask("at_budget = { finish = 'I get back to you.' }");
    assert_eq!((ran.code, requests), (Some(0), 1), "{ran:?}");
    assert_eq!(ran.stdout, "I get back to you.\n");
    let (ran, requests) = ask("at_budget = { hand_to = 'Night desk' }");
    assert_eq!((ran.code, requests), (Some(0), 2), "{ran:?}");
    assert_eq!(ran.stdout, "I am the night desk.\n");
    // The screen shows who has the conversation, though no model called a handoff.
    let replies = [call("c1", "today", &json!({})), Reply::text("Hello.")];
    let desk = Desk::new(&team("at_budget = { hand_to = 'Night desk' }"), replies);
    let ran = desk.send("Hi", &[]);
    assert!(
        ran.stdout
            .contains("\nTriage      → Night desk\nNight desk  Hello.\n"),
        "{ran:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_value_of_the_model_cannot_lead_a_command_to_another_folder() {
    let team = r#"
[commands]
allow = ["cat"]

[agents.Desk]
tools = ["note"]

[tools.note]
description = "Reads a note."
parameters = { properties = { name = { type = "string" } }, required = ["name"] }
command.run = ["cat", "notes/{name}.txt"]
"#;
    let names = ["../secret", "/etc/passwd", "..", "", "one"];
    let ids: Vec<String> = (0..names.len())
        .map(|number| format!("c{number}"))
        .collect();
    let calls = names.iter().zip(&ids).map(|(name, id)| {
        json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "note",
            "arguments": json!({"name": name}).to_string(), "status": "completed",
        })
    });
    let desk = Desk::new(team, [Reply::items(calls), Reply::text("Done.")]);
    std::fs::create_dir(desk.folder.path("notes")).unwrap();
    desk.folder.write("notes/one.txt", "the first note");
    desk.folder.write("secret.txt", "the secret");
    let ran = desk.send("Hi", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let outputs: Vec<String> = ids.iter().map(|id| output_of(&desk, id)).collect();
    let (read, refused) = outputs.split_last().unwrap();
    assert_eq!(read, "the first note");
    for output in refused {
        assert!(output.contains("\"name\""), "{output}");
        assert!(
            !output.contains("secret") && !output.contains("root"),
            "{output}"
        );
    }
}

/// A server of tools. It answers by the first part of the path.
struct Server {
    address: String,
    /// The heads and bodies of the requests.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, received) = (stream.unwrap(), received.clone());
                std::thread::spawn(move || answer(stream, &received));
            }
        });
        Self { address, requests }
    }

    /// The request to a path, by the beginning of its line.
    fn request(&self, line: &str) -> Option<(String, String)> {
        let requests = self.requests.lock().unwrap();
        let found = requests.iter().find(|(head, _)| head.starts_with(line));
        found.cloned()
    }
}

fn answer(stream: TcpStream, received: &Mutex<Vec<(String, String)>>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    let answer = match head.split(['/', ' ', '?']).nth(2) {
        Some("moved") => "302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
        Some("broken") => "500 Oh\r\nContent-Length: 4\r\n\r\nboom",
        Some("long") => "200 OK\r\nContent-Length: 12\r\n\r\nxxxxxxxxxxxx",
        _ => "200 OK\r\nContent-Length: 5\r\n\r\nfound",
    };
    received
        .lock()
        .unwrap()
        .push((head, String::from_utf8(body).unwrap()));
    // The program may have closed it.
    let _ = write!(
        reader.get_mut(),
        "HTTP/1.1 {}",
        answer.replacen("\r\n", "\r\nConnection: close\r\n", 1)
    );
}

const HTTP_TEAM: &str = r#"
[context]
customer = { id = "C 1" }

[agents.Desk]
tools = ["find", "refund", "put", "marked", "moved", "broken", "long"]

[tools.find]
description = "Finds an invoice."
parameters = { properties = { number = { type = "string" }, lang = { type = "string" } }, required = ["number"] }
http.url = "SERVER/of/{context.customer.id}/{number}"
http.query = { lang = "{lang}", form = "{{short}}" }
http.headers = { Authorization = { env = "BILLING_TOKEN", prefix = "Bearer " }, Idempotency-Key = "{call.idempotency_key}" }

[tools.refund]
description = "Pays back."
parameters = { properties = { amount = { type = "number" }, note = { type = "string" } }, required = ["amount"] }
http = { url = "SERVER/refund", method = "POST", body = { amount = "{amount}", note = "chat: {note}" } }

[tools.put]
description = "Puts."
parameters = { properties = { a = { type = "integer" } } }
http = { url = "SERVER/put", method = "PUT" }

[tools.marked]
description = "With a header."
parameters = { properties = { mark = { type = "string" } } }
http = { url = "SERVER/marked", headers = { X-Mark = "m {mark}" } }

[tools.moved]
description = "Has moved."
http.url = "SERVER/moved"

[tools.broken]
description = "Fails."
http.url = "SERVER/broken"

[tools.long]
description = "Answers at length."
http.url = "SERVER/long"
max_output_bytes = 4
"#;

/// Makes these calls of the team's HTTP tools, and returns their outputs.
fn http_calls(server: &Server, calls: &[(&str, Value)]) -> Vec<String> {
    let ids: Vec<String> = (0..calls.len())
        .map(|number| format!("c{number}"))
        .collect();
    let items = calls.iter().zip(&ids).map(|((tool, arguments), id)| {
        json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": tool,
            "arguments": arguments.to_string(), "status": "completed",
        })
    });
    let team = HTTP_TEAM.replace("SERVER", &server.address);
    let desk = Desk::new(&team, [Reply::items(items), Reply::text("Done.")]);
    let mut command = desk.command("Hi", &[]);
    command.env("BILLING_TOKEN", "t0ken");
    let ran = Ran::of(command.spawn().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!format!("{ran:?}").contains("t0ken"), "{ran:?}");
    ids.iter().map(|id| output_of(&desk, id)).collect()
}

#[test]
fn an_http_tool_sends_what_the_file_says() {
    let server = Server::start();
    let outputs = http_calls(
        &server,
        &[
            ("find", json!({"number": "a b/c?d#é"})),
            ("refund", json!({"amount": 1.5, "note": "\"now\""})),
            ("refund", json!({"amount": 2})),
            ("put", json!({"a": 1})),
        ],
    );
    assert_eq!(outputs, ["found"; 4]);
    let (found, _) = server
        .request("get /of/c%201/a%20b%2fc%3fd%23%c3%a9?form=%7bshort%7d ")
        .unwrap();
    assert!(found.contains("authorization: bearer t0ken"), "{found}");
    assert!(found.contains("idempotency-key: "), "{found}");
    let requests = server.requests.lock().unwrap();
    let bodies = |line: &str| {
        let sent = requests.iter().filter(|(head, _)| head.starts_with(line));
        let mut sent: Vec<&str> = sent.map(|(_, body)| &**body).collect();
        sent.sort_unstable();
        sent.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        bodies("post /refund "),
        [
            r#"{"amount":1.5,"note":"chat: \"now\""}"#,
            r#"{"amount":2}"#
        ]
    );
    assert_eq!(bodies("put /put "), [r#"{"a":1}"#]);
}

#[test]
fn what_an_http_tool_cannot_send_or_get_is_told_to_the_model() {
    let server = Server::start();
    let outputs = http_calls(
        &server,
        &[
            ("find", json!({"number": "a/../b"})),
            ("find", json!({"number": ""})),
            ("find", json!({"number": 5})),
            ("find", json!({"number": "a", "other": 1})),
            ("marked", json!({})),
            ("marked", json!({"mark": "a\r\nX-Evil: 1"})),
            ("moved", json!({})),
            ("broken", json!({})),
            ("long", json!({})),
        ],
    );
    let told = [
        "\"number\" cannot lead to another folder",
        "\"number\" is empty",
        "at /number: expected string, got number",
        "'other' was unexpected",
        "\"mark\" is missing",
        "x-mark cannot hold line breaks",
        "the server answered 302 Found, and redirects are not followed",
        "the server answered 500 Internal Server Error: boom",
        "xxxx\n[cut after 4 bytes]",
    ];
    for (output, told) in outputs.iter().zip(told) {
        assert!(output.contains(told), "{output}");
    }
    assert!(server.request("get /of/").is_none());
    assert!(server.request("get /marked").is_none());
}

#[cfg(unix)]
#[test]
fn a_value_within_an_argument_of_a_command_stays_there() {
    let arguments = [
        "http://h/x/{a}",
        "--url=http://h/{a}",
        "a={a}",
        "notes/{a}.txt",
        "{a}",
    ];
    let tools = arguments.iter().enumerate().map(|(number, argument)| {
        format!(
            "[tools.t{number}]\ndescription = 'd'\nparameters = {{ properties = {{ a = {{}} }} }}\n\
             command.run = ['echo', '{argument}']\n"
        )
    });
    let team = format!(
        "[commands]\nallow = ['echo']\n[agents.A]\ntools = ['t0', 't1', 't2', 't3', 't4']\n{}",
        tools.collect::<String>()
    );
    let told = [
        ("t0", "a?b#c", "http://h/x/a%3Fb%23c"),
        ("t0", "%2e%2e", "http://h/x/%252e%252e"),
        ("t0", "..", "\"a\" cannot lead to another folder"),
        ("t1", "/etc/passwd", "--url=http://h/%2Fetc%2Fpasswd"),
        ("t2", "../x", "\"a\" cannot lead to another folder"),
        ("t2", "/etc/passwd", "\"a\" cannot lead to another folder"),
        ("t2", "x", "a=x"),
        ("t3", "%2e%2e", "\"a\" cannot lead to another folder"),
        ("t4", "../x", "../x"),
    ];
    let items = told.iter().enumerate().map(|(number, (tool, a, _))| {
        let arguments = json!({ "a": a }).to_string();
        json!({
            "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("c{number}"),
            "name": tool, "arguments": arguments, "status": "completed",
        })
    });
    let desk = Desk::new(&team, [Reply::items(items), Reply::text("Done.")]);
    let ran = desk.send("Hi", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for (number, (_, _, expected)) in told.iter().enumerate() {
        let output = output_of(&desk, &format!("c{number}"));
        assert!(
            output.trim_end().ends_with(expected),
            "{expected}: {output}"
        );
    }
    let folder = crate::support::Folder::new();
    folder.write(
        "host.toml",
        &team.replace("http://h/x/{a}", "https://{a}.example.com/"),
    );
    let ran = folder.run(&["check", "host.toml"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stdout
            .contains("the server's name cannot have placeholders"),
        "{ran:?}"
    );
}
