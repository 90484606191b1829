//! Conditional handoffs: the handoffs that a model is offered depend on the hour and on the
//! customer's tier. The clock is part of the context, so that a test can set it.
//!
//! `cargo run --example conditional`

use switchboard::testing::ScriptedModel;
use switchboard::{Agent, RunContext, Runner, handoff};

/// The caller's tier, and the time of the call.
struct Caller {
    tier: Tier,
    now: Clock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    Basic,
    Premium,
    Enterprise,
}

#[derive(Debug, Clone, Copy)]
struct Clock {
    day: Day,
    hour: u8,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Day {
    Workday,
    Weekend,
}

impl Clock {
    fn is_workday_between(self, open: u8, close: u8) -> bool {
        self.day == Day::Workday && (open..close).contains(&self.hour)
    }
}

/// Evaluated each turn. A condition may be async, for example to look the tier up in a database.
async fn may_have_enterprise_support(caller: RunContext<Caller>, _agent: Agent<Caller>) -> bool {
    caller.tier >= Tier::Enterprise
}

fn triage() -> Agent<Caller> {
    let basic = Agent::<Caller>::new("Basic support").handoff_description("Workdays from 9 to 17.");
    let premium = Agent::<Caller>::new("Premium support")
        .handoff_description("Premium: workdays from 7 to 22.");
    let enterprise =
        Agent::new("Enterprise support").handoff_description("Enterprise: around the clock.");
    Agent::new("Triage")
        .instructions(
            "Pass the customer to the best support that you are offered. If there is none, take a \
             message.",
        )
        .handoff(handoff(basic).enabled_if(|caller, _agent| caller.now.is_workday_between(9, 17)))
        .handoff(handoff(premium).enabled_if(|caller, _agent| {
            caller.tier >= Tier::Premium && caller.now.is_workday_between(7, 22)
        }))
        .handoff(handoff(enterprise).enabled_if(may_have_enterprise_support))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (workday, weekend) = (Day::Workday, Day::Weekend);
    let calls = [
        (
            Tier::Basic,
            Clock {
                day: workday,
                hour: 10,
            },
            ScriptedModel::new()
                .call("transfer_to_basic_support", "{}")
                .say("Please restart the router."),
        ),
        (
            Tier::Premium,
            Clock {
                day: workday,
                hour: 20,
            },
            ScriptedModel::new()
                .call("transfer_to_premium_support", "{}")
                .say("I have restarted the router for you."),
        ),
        (
            Tier::Premium,
            Clock {
                day: weekend,
                hour: 3,
            },
            ScriptedModel::new().say("Nobody is here right now. We will call you on Monday."),
        ),
        (
            Tier::Enterprise,
            Clock {
                day: weekend,
                hour: 3,
            },
            ScriptedModel::new()
                .call("transfer_to_enterprise_support", "{}")
                .say("A second router has taken over. We look into the first one."),
        ),
    ];

    let triage = triage();
    for (tier, now, model) in calls {
        println!("{tier:?} customer, {:?} at {:02}:00", now.day, now.hour);
        let result = Runner::new(&triage)
            .context(Caller { tier, now })
            .model(model.clone())
            .run("Our office has no network.")
            .await?;
        if let Some(request) = model.requests().first() {
            let offered: Vec<&str> = request.handoffs.iter().map(|h| &*h.to).collect();
            println!("  offered: {offered:?}");
        }
        println!("  {}: {}", result.last_agent().name(), result.final_text());
    }
    Ok(())
}
