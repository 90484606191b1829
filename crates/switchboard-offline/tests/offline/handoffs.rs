//! Handoffs and their payloads.

use super::*;

fn escalation() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "priority": {"$ref": "#/$defs/Priority"},
            "order": {"type": "string"},
            "amount": {"type": "number"},
            "contact": {
                "type": "object",
                "properties": {"email": {"type": "string"}},
                "required": ["email"],
                "additionalProperties": false,
            },
        },
        "required": ["reason", "priority", "order", "amount", "contact"],
        "additionalProperties": false,
        "$defs": {"Priority": {"type": "string", "enum": ["low", "normal", "high"]}},
    })
}

async fn payload(input: &str) -> Value {
    let refunds: Agent = Agent::new("Refunds").handoff_description("Refunds and complaints. 退款");
    let triage = Agent::new("Triage").handoff(
        handoff(&refunds)
            .payload_schema(escalation())
            .on_handoff(|_ctx, _payload| async {}),
    );
    let result = run(&triage, input).await;
    assert_eq!(result.last_agent().name(), "Refunds");
    let call = result.raw_responses()[0].output[0].clone();
    serde_json::from_str(&call.arguments().unwrap()).unwrap()
}

#[tokio::test]
async fn carry_values_from_the_text() {
    let text = "Urgent: I want a refund of $49.90 for ORD-9, write to me@example.com";
    let expected = json!({
        "reason": text, "priority": "high", "order": "ORD-9", "amount": 49.9,
        "contact": {"email": "me@example.com"},
    });
    assert_eq!(payload(text).await, expected);
    let chinese = payload("很紧急，订单#12退款30元").await;
    assert_eq!(
        (&chinese["priority"], &chinese["order"], &chinese["amount"]),
        (&json!("high"), &json!("12"), &json!(30.0))
    );
}

#[tokio::test]
async fn take_place_without_all_values() {
    let expected = json!({
        "reason": "I want a refund of $5", "priority": "normal", "order": "", "amount": 5.0,
        "contact": {"email": ""},
    });
    assert_eq!(payload("I want a refund of $5").await, expected);
}

/// A desk with one handoff, which has this payload.
fn desk(name: &str, about: &str, payload: Value) -> Agent {
    let agent: Agent = Agent::new(name).handoff_description(about);
    Agent::new("Desk").handoff(handoff(&agent).payload_schema(payload))
}

fn integers(names: &[&str], required: &[&str]) -> Value {
    let properties = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "integer"})));
    let properties: serde_json::Map<String, Value> = properties.collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// The payload of the handoff that a message leads to, or the reply.
async fn payload_or_reply(desk: &Agent, input: &str) -> Result<Value, String> {
    let result = run(desk, input).await;
    let first = &result.raw_responses()[0].output[0];
    match first.arguments() {
        Some(arguments) => Ok(serde_json::from_str(&arguments).unwrap()),
        None => Err(result.final_text().into_owned()),
    }
}

#[tokio::test]
async fn ask_for_a_number_that_was_not_said_once() {
    let desk = desk(
        "Tables",
        "Reservations of tables for dinner.",
        integers(&["guests"], &["guests"]),
    );
    let question = Err("To do that I need: guests. Could you tell me?".to_owned());
    for text in [
        "I want a table for dinner",
        "reserve a table on 12 May",
        "a table at 8 please",
    ] {
        assert_eq!(payload_or_reply(&desk, text).await, question, "{text}");
    }
    assert_eq!(
        payload_or_reply(&desk, "a table for 4 on 12 May").await,
        Ok(json!({"guests": 4}))
    );
    for (reply, guests) in [("4", 4), ("we are 5 people", 5), ("no idea", 0)] {
        let items = vec![
            Item::user("I want a table for dinner"),
            Item::assistant(question.clone().unwrap_err()),
            Item::user(reply),
        ];
        let runner = Runner::new(&desk).model(OfflineModel::new());
        let result = runner.run(items).await.unwrap();
        assert_eq!(result.last_agent().name(), "Tables", "{reply}");
        assert_eq!(
            result.handoffs()[0].payload,
            json!({"guests": guests}),
            "{reply}"
        );
    }
}

#[tokio::test]
async fn take_no_number_with_another_unit() {
    let room = desk(
        "Housekeeping",
        "Towels and cleaning.",
        integers(&["room", "nights"], &[]),
    );
    for (text, expected) in [
        ("The 20 euro towel is dirty, I paid 45", json!({})),
        ("towels for my room, I paid 45", json!({})),
        ("clean the towel of room 12", json!({"room": 12})),
    ] {
        assert_eq!(payload_or_reply(&room, text).await, Ok(expected), "{text}");
    }
    let schema = json!({
        "type": "object",
        "properties": {"item": {"type": "string"}, "size": {"type": "integer"}},
        "required": ["item"],
    });
    let sales = desk("Sales", "Lights and helmets.", schema);
    let payload = payload_or_reply(&sales, "Do you have lights for 50 euros?")
        .await
        .unwrap();
    assert_eq!(payload.get("size"), None, "{payload}");
}

#[tokio::test]
async fn are_not_taken_for_what_the_user_does_not_want() {
    let desk = Agent::new("Desk")
        .handoff(Agent::new("Rental").handoff_description("Bikes to rent by the day."))
        .handoff(Agent::new("Sales").handoff_description("Bikes to buy."));
    for (text, expected) in [
        ("I don't want to rent, I want to buy", "Sales"),
        ("I don't want to buy, I want to rent", "Rental"),
        ("I want to rent, not to buy", "Rental"),
        ("I want to rent a bike instead of buying one", "Rental"),
    ] {
        assert_eq!(
            run(&desk, text).await.last_agent().name(),
            expected,
            "{text}"
        );
    }
}

#[tokio::test]
async fn are_preferred_to_a_tool_that_shares_no_word() {
    let list = echo(
        "table_list",
        "Lists the table plan.",
        json!({"type": "object", "properties": {}}),
    );
    let housekeeping: Agent = Agent::new("Housekeeping")
        .handoff_description("Towels, cleaning, broken things in the room.");
    let desk = Agent::new("Desk").tool(list).handoff(&housekeeping);
    for text in ["the kettle is broken", "a broken lamp"] {
        assert_eq!(
            run(&desk, text).await.last_agent().name(),
            "Housekeeping",
            "{text}"
        );
    }
    let listed = reply(&desk, "show me the table plan").await;
    assert!(listed.starts_with("called with"), "{listed}");
}

#[tokio::test]
async fn do_not_go_back_and_forth() {
    let team = switchboard_core::Team::new()
        .agent(
            Agent::new("Billing")
                .handoff_description("Bills and refunds.")
                .handoff("Returns"),
        )
        .agent(
            Agent::new("Returns")
                .handoff_description("Refunds of returned goods, parcels to send back.")
                .handoff("Billing"),
        )
        .build()
        .unwrap();
    for start in ["Billing", "Returns"] {
        let result = run(&team[start], "I want a refund for the goods I sent back").await;
        assert!(
            result.raw_responses().len() <= 3,
            "{}",
            result.raw_responses().len()
        );
    }
}

#[tokio::test]
async fn do_not_go_in_circles_if_filters_hide_them() {
    let hidden = |name: &str| handoff(name).filter(switchboard_core::filters::remove_all_tools());
    let team = switchboard_core::Team::new()
        .agent(
            Agent::new("Billing")
                .instructions("You handle bills and refunds.")
                .handoff_description("Bills and refunds.")
                .handoff(hidden("Shipping")),
        )
        .agent(
            Agent::new("Shipping")
                .instructions("You handle parcels and delivery.")
                .handoff_description("Parcels and delivery.")
                .handoff(hidden("Billing")),
        )
        .build()
        .unwrap();
    for text in [
        "refund for my parcel",
        "the delivery and the bill",
        "where is it",
        "退款和快递",
    ] {
        for start in ["Billing", "Shipping"] {
            assert!(
                run(&team[start], text).await.raw_responses().len() <= 2,
                "{text}"
            );
        }
    }
}

#[tokio::test]
async fn that_were_refused_are_not_tried_again() {
    let billing: Agent = Agent::new("Billing").handoff_description("Bills and refunds.");
    let triage = Agent::new("Triage").handoff(handoff(&billing).on_handoff(|_ctx| async {
        switchboard_core::handoff::HandoffDecision::refuse("Billing is closed.")
    }));
    let result = run(&triage, "my bill is wrong").await;
    assert_eq!(result.last_agent().name(), "Triage");
    assert_eq!(result.raw_responses().len(), 2);
}

#[tokio::test]
async fn are_not_taken_if_the_agent_can_answer_itself() {
    let shipping: Agent = Agent::new("Shipping").handoff_description("Parcels and delivery.");
    let billing = Agent::new("Billing")
        .instructions("You answer questions about bills and refunds.")
        .knowledge(Knowledge::new("refund time", "Five days."))
        .handoff(&shipping);
    assert_eq!(
        run(&billing, "when is my refund coming")
            .await
            .last_agent()
            .name(),
        "Billing"
    );
    assert_eq!(
        run(&billing, "where is my parcel")
            .await
            .last_agent()
            .name(),
        "Shipping"
    );
}

#[tokio::test]
async fn work_for_other_domains_than_a_shop() {
    let colleagues = [
        (
            "HR",
            "Leave, payroll, recruiting and onboarding of employees.",
        ),
        ("IT desk", "Computers, software, network and passwords."),
        ("Travel desk", "Flights, hotels and trips."),
        (
            "Clinic",
            "Doctors, appointments, prescriptions and test results.",
        ),
        ("Legal", "Contracts, disputes and compliance."),
        ("Bank", "Loans, mortgages, savings and transfers."),
    ];
    let front = colleagues
        .iter()
        .fold(Agent::new("Front desk"), |front, (name, about)| {
            front.handoff(Agent::new(*name).handoff_description(*about))
        });
    for (text, expected) in [
        ("how many vacation days do I have left", "HR"),
        ("工资条在哪里看", "HR"),
        ("my laptop cannot connect to the wifi", "IT desk"),
        ("电脑蓝屏了", "IT desk"),
        ("I need a room in Berlin and a flight back", "Travel desk"),
        ("帮我改签明天的航班", "Travel desk"),
        ("my throat hurts and I have a fever", "Clinic"),
        ("想挂个号看牙医", "Clinic"),
        ("can they sue us over this clause", "Legal"),
        ("合同里的违约条款怎么写", "Legal"),
        ("what interest would I pay on a morgage", "Bank"),
        ("房贷利率是多少", "Bank"),
    ] {
        assert_eq!(
            run(&front, text).await.last_agent().name(),
            expected,
            "{text}"
        );
    }
}

#[tokio::test]
async fn go_to_the_agent_that_speaks_the_language() {
    let spanish: Agent = Agent::new("Spanish agent");
    let english: Agent = Agent::new("English agent");
    let triage = Agent::new("Triage").handoff(&spanish).handoff(&english);
    assert_eq!(
        run(&triage, "Hola, ¿cómo estás?").await.last_agent().name(),
        "Spanish agent"
    );
}

#[tokio::test]
async fn keep_the_message_in_a_nested_history() {
    let billing: Agent = Agent::new("Billing")
        .handoff_description("Bills and refunds.")
        .knowledge(Knowledge::new("refund time", "Five days."));
    let triage = Agent::new("Triage").handoff(&billing);
    let runner = Runner::new(&triage)
        .model(OfflineModel::new())
        .nest_handoff_history(true);
    let result = runner.run("when is my refund coming").await.unwrap();
    assert_eq!(result.final_text(), "Five days.");
}

#[tokio::test]
async fn consider_earlier_messages_if_a_reply_is_short() {
    let shipping: Agent = Agent::new("Shipping").handoff_description("Parcels and delivery.");
    let billing: Agent = Agent::new("Billing").handoff_description("Bills and refunds.");
    let triage = Agent::new("Triage").handoff(&shipping).handoff(&billing);
    let items = vec![
        Item::user("my parcel has not arrived"),
        Item::assistant("Shall I pass you on?"),
        Item::user("yes please"),
    ];
    let result = Runner::new(&triage)
        .model(OfflineModel::new())
        .run(items)
        .await
        .unwrap();
    assert_eq!(result.last_agent().name(), "Shipping");
}

#[tokio::test]
async fn follow_a_short_message_on_a_new_topic() {
    let shipping: Agent = Agent::new("Shipping").handoff_description("Parcels and delivery.");
    let billing: Agent = Agent::new("Billing").handoff_description("Bills and refunds.");
    let triage = Agent::new("Triage").handoff(&shipping).handoff(&billing);
    let items = vec![
        Item::user("my parcel has not arrived, the courier lost the package, track the delivery"),
        Item::assistant("Sorry to hear that."),
        Item::user("and a refund?"),
    ];
    let result = Runner::new(&triage)
        .model(OfflineModel::new())
        .run(items)
        .await
        .unwrap();
    assert_eq!(result.last_agent().name(), "Billing");
}

#[tokio::test]
async fn leave_out_optional_fields_that_nothing_was_said_of() {
    let schema = json!({
        "type": "object",
        "properties": {
            "request": {"type": "string"},
            "room": {"type": "integer"},
            "floor": {"type": "string", "enum": ["low", "high"]},
            "late": {"type": "boolean"},
        },
        "required": ["request"],
    });
    let service: Agent = Agent::new("Service").handoff_description("Towels and cleaning.");
    let desk = Agent::new("Desk").handoff(handoff(&service).payload_schema(schema));
    for (text, expected) in [
        ("2 towels please", json!({"request": "2 towels please"})),
        (
            "towels for room 12",
            json!({"request": "towels for room 12", "room": 12}),
        ),
    ] {
        let result = run(&desk, text).await;
        assert_eq!(result.last_agent().name(), "Service");
        let call = result.raw_responses()[0].output[0].clone();
        let payload: Value = serde_json::from_str(&call.arguments().unwrap()).unwrap();
        assert_eq!(payload, expected);
    }
}

#[tokio::test]
async fn are_asked_about_if_several_fit() {
    let desk = [
        ("Tickets", "Tickets for shows. 演出的门票。"),
        ("Tours", "Tickets for tours. 参观的门票。"),
        ("Cloakroom", "Coats and bags. 存衣服。"),
    ]
    .into_iter()
    .fold(Agent::new("Desk"), |desk, (name, about)| {
        desk.handoff(Agent::new(name).handoff_description(about))
    });
    assert_eq!(
        reply(&desk, "I need tickets").await,
        "Which of these do you mean?\n- Tickets: Tickets for shows\n- Tours: Tickets for tours"
    );
    assert_eq!(
        reply(&desk, "我要门票").await,
        "请问您指的是哪一项？\n- Tickets: 演出的门票\n- Tours: 参观的门票"
    );
    let answered = run(&desk, "tickets for the tour").await;
    assert_eq!(answered.last_agent().name(), "Tours");
}

#[tokio::test]
async fn are_not_taken_for_a_common_topic_alone() {
    let loans: Agent = Agent::new("Loans").handoff_description("Loans.");
    let desk = Agent::new("Desk").handoff(&loans);
    let result = run(&desk, "what does a bank transfer cost").await;
    assert_eq!(result.last_agent().name(), "Desk");
}

#[tokio::test]
async fn go_by_the_knowledge_of_the_other_agent_too() {
    let desk = Agent::new("Desk")
        .handoff(
            Agent::new("Pool")
                .handoff_description("The pool.")
                .knowledge(Knowledge::new("Lockers", "They take a coin.")),
        )
        .handoff(Agent::new("Kitchen").handoff_description("The kitchen."));
    let result = run(&desk, "how do the lockers work").await;
    assert_eq!(result.last_agent().name(), "Pool");
    assert_eq!(result.final_text(), "They take a coin.");
}

#[tokio::test]
async fn are_preferred_to_a_tool_that_only_shares_a_word() {
    let post = echo(
        "send_programme",
        "Sends the printed programme by post.",
        json!({"type": "object", "properties": {"address": {"type": "string"}}, "required": ["address"]}),
    );
    let programme: Agent =
        Agent::new("Programme").handoff_description("What is on, and for which age.");
    let office = Agent::new("Office").tool(post).handoff(&programme);
    let result = run(&office, "for which age is the programme tonight").await;
    assert_eq!(result.last_agent().name(), "Programme");
    let text = reply(&office, "please send me the printed programme by post").await;
    assert_eq!(text, "To do that I need: address. Could you tell me?");
}
