//! Findings of `check` on policies, budgets and rules.

use switchboard_teamfile::{Problem, Severity, TeamFile};

/// The problems of a text, as errors or from `check`.
fn problems(text: &str) -> Vec<Problem> {
    let problems = match TeamFile::parse(text, "team.toml") {
        Ok(file) => file.check(),
        Err(problems) => problems,
    };
    problems.iter().cloned().collect()
}

/// The line and column of a part of a text.
fn position(text: &str, part: &str) -> (Option<usize>, Option<usize>) {
    let start = text
        .find(part)
        .unwrap_or_else(|| panic!("{part} in {text}"));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[..start].matches('\n').count() + 1;
    (Some(line), Some(start - line_start + 1))
}

/// A text, and its only problem of more than a note: severity, code, message and position.
type Expected<'a> = (&'a str, Severity, &'a str, &'a str, &'a str);

fn assert_problems(cases: &[Expected<'_>]) {
    for (text, severity, code, message, part) in cases {
        let found = problems(text);
        let found: Vec<_> = found
            .iter()
            .filter(|problem| problem.severity > Severity::Note)
            .map(|problem| {
                let at = (problem.line, problem.column);
                assert!(problem.help.is_some(), "{problem:?}");
                (problem.severity, problem.code, problem.message.as_str(), at)
            })
            .collect();
        let expected = (*severity, *code, *message, position(text, part));
        assert_eq!(found, [expected], "{text}");
    }
}

const TWO: &str =
    "[agents.A]\nhandoffs = ['B']\n[agents.B]\ndescription = 'B.'\nhandoffs = ['A']\n";

#[test]
fn a_cycle_without_a_bound_is_reported_by_how_unbounded_it_is() {
    let other = "[agents.C]\ndescription = 'C.'\n";
    let [a, b] = ["handoffs = ['B']", "handoffs = ['A']"];
    let described = |text: &str| text.replace("[agents.A]\n", "[agents.A]\ndescription = 'A.'\n");
    for (text, severity) in [
        // Agents that hand over without anything else are stopped by the policy.
        (TWO.to_owned(), Some(Severity::Note)),
        (
            format!("{TWO}[run]\npolicy = 'reference'"),
            Some(Severity::Warning),
        ),
        (
            format!("{TWO}[run]\nloops.without_progress = 'unlimited'"),
            Some(Severity::Warning),
        ),
        (format!("{TWO}[run]\nloops.per_edge = 2"), None),
        (format!("{TWO}[run]\nloops.handoffs = 5"), None),
        (format!("{TWO}[run]\nloops.ping_pong = 4"), None),
        (format!("{TWO}[run]\nbudget.seconds = 5"), None),
        (
            format!("{TWO}{other}[run]\nbudget.turns = 5\nat_budget = {{ hand_to = 'C' }}"),
            None,
        ),
        // The agent goes on in the cycle, without the budget.
        (
            format!("{TWO}[run]\nbudget.turns = 5\nat_budget = {{ hand_to = 'A' }}"),
            Some(Severity::Note),
        ),
        (TWO.replace(a, "handoffs = ['B']\nbudget.turns = 3"), None),
        (
            TWO.replace(b, "handoffs = [{ to = 'A', budget.turns = 3 }]"),
            None,
        ),
        // The budget is of another agent than the cycle needs.
        (
            format!(
                "{}{other}handoffs = ['A', 'B']\nbudget.turns = 2\n",
                TWO.replace(b, "handoffs = ['A', 'C']")
            ),
            Some(Severity::Note),
        ),
        (
            format!(
                "[context]\nx = true\n{}",
                TWO.replace(b, "handoffs = [{ to = 'A', when = 'x' }]")
            ),
            None,
        ),
    ] {
        let text = described(&text);
        let found = problems(&text);
        let found: Vec<&Problem> = found
            .iter()
            .filter(|problem| problem.code == "unbounded-cycle")
            .collect();
        let severities: Vec<Severity> = found.iter().map(|problem| problem.severity).collect();
        assert_eq!(
            severities,
            severity.into_iter().collect::<Vec<_>>(),
            "{text}"
        );
        for problem in found {
            assert_eq!((problem.line, problem.column), position(&text, "A]"));
            let help = problem.help.as_deref().unwrap();
            assert!(
                help.contains("per_edge or handoffs of [run.loops]"),
                "{help}"
            );
        }
    }
}

#[test]
fn a_cost_needs_the_prices_of_all_models() {
    let models = "model = 'openai/big'\n[agents.A]\nhandoffs = ['B']\n[agents.B]\ndescription = 'B.'\nmodel = 'small'\n\
                  [models.small]\nname = 'tiny'\nbase_url = 'http://localhost:1/v1'\n";
    let big = "\"openai/big\" = { input = 1, output = 2 }";
    let small = "small = { input = 1, output = 2 }";
    let with = |rest: &str| format!("{models}{rest}");
    assert_eq!(
        problems(&with(&format!(
            "[run]\nbudget.cost = 1\n[prices]\n{big}\n{small}"
        )))
        .len(),
        1, // A dead end.
    );
    assert_problems(&[
        (
            &with(&format!("[run]\nbudget.cost = 0.25\n[prices]\n{big}")),
            Severity::Error,
            "no-price",
            "there is no price of the model \"small\", which \"B\" uses",
            "0.25",
        ),
        (
            &with("[prices]\nsmal = { input = 1, output = 1 }"),
            Severity::Warning,
            "unused",
            "no agent uses the model \"smal\"",
            "smal = ",
        ),
        (
            &with(&format!(
                "[run]\nbudget.cost = 1\n[prices]\n{big}\n{small}\nsmal = {{ input = 1, output = 1 }}"
            )),
            Severity::Warning,
            "unused",
            "no agent uses the model \"smal\"",
            "smal = ",
        ),
        (
            &with(&format!(
                "[run]\nbudget.cost = 1\n[prices]\n{big}\n{small}\n\"chat/tiny\" = {{ input = 3, output = 1 }}"
            )),
            Severity::Error,
            "bad-price",
            "\"small\" and \"chat/tiny\" are the same model with different prices",
            "\"chat/tiny\"",
        ),
    ]);
    // Without a budget of cost, services and the studio still count by them.
    let priced = with(&format!("[prices]\n{big}"));
    assert_eq!(problems(&priced).len(), 1);
    // The offline model costs nothing.
    assert!(problems("[run]\nbudget.cost = 1\n[agents.A]\n").is_empty());
}

#[test]
fn agents_that_do_not_exist_are_reported_wherever_they_are_named() {
    let rule = "[agents.A]\nhandoffs = [{ to = 'Desk', rules = [{ when = 'true', redirect = 'Desc' }] }]\n\
                [agents.Desk]\ndescription = 'B.'\n";
    let agents = "[agents.A]\nhandoffs = ['Desk']\n[agents.Desk]\ndescription = 'B.'\n";
    let unknown = |text: &str| {
        let found = problems(text);
        let errors = found
            .iter()
            .filter(|problem| problem.severity == Severity::Error);
        let errors: Vec<_> = errors.collect();
        assert_eq!(errors.len(), 1, "{text} {errors:?}");
        assert_eq!(errors[0].code, "unknown-agent");
        assert_eq!((errors[0].line, errors[0].column), position(text, "'Desc'"));
        assert_eq!(
            errors[0].suggestion.as_deref(),
            Some("did you mean \"Desk\"?")
        );
    };
    unknown(rule);
    unknown(&format!(
        "{agents}[run]\nseveral_handoffs.fan_out.join = 'Desc'"
    ));
    unknown(&format!(
        "{agents}[run]\nloops.at_limit = {{ redirect = 'Desc' }}"
    ));
    unknown(&format!(
        "{agents}[run]\nbudget.turns = 2\nat_budget = {{ hand_to = 'Desc' }}"
    ));
}

#[test]
fn an_agent_that_only_rules_and_limits_lead_to_is_reached() {
    let agents = "[agents.A]\nhandoffs = ['B']\n[agents.B]\ndescription = 'B.'\n[agents.C]\nhandoffs = ['D']\n\
                  [agents.D]\ndescription = 'D.'\n";
    let unreachable = |text: &str| {
        let found = problems(text);
        let found = found.iter().filter(|problem| problem.code == "unreachable");
        found.count()
    };
    assert_eq!(unreachable(agents), 2);
    for run in [
        "[run]\nloops.at_limit = { redirect = 'C' }",
        "[run]\nbudget.turns = 2\nat_budget = { hand_to = 'C' }",
    ] {
        assert_eq!(unreachable(&format!("{agents}{run}")), 0, "{run}");
    }
    let rule = "{ to = 'B', rules = [{ when = 'true', redirect = 'C' }] }";
    assert_eq!(unreachable(&agents.replacen("'B'", rule, 1)), 0);
}

#[test]
fn limits_that_are_never_reached_are_reported() {
    let one = "[agents.A]\nhandoffs = ['B']\n[agents.B]\ndescription = 'B.'\n";
    let with = |rest: &str| format!("{one}{rest}");
    let never = "never-reached";
    let cases: Vec<(String, &str, &str, &str)> = vec![
        (
            with("[run]\nloops.handoffs = 10"),
            never,
            "this is never reached: max_turns of [run] is 10",
            "handoffs = 10",
        ),
        (
            with("[run]\nmax_turns = 20\nloops.handoffs = 20"),
            never,
            "this is never reached: max_turns of [run] is 20",
            "handoffs = 20",
        ),
        (
            with("[run.loops]\nhandoffs = 4\nper_edge = 4"),
            never,
            "this is never reached: handoffs is 4",
            "per_edge",
        ),
        (
            with("[run.loops]\nhandoffs = 4\nping_pong = 5"),
            never,
            "this is never reached: handoffs is 4",
            "ping_pong",
        ),
        (
            with("[run.loops]\nper_edge = 2\nwithout_progress = 2"),
            never,
            "this is never reached: per_edge is 2",
            "without_progress",
        ),
        (
            with("[run.loops]\nping_pong = 33"),
            never,
            "this is never reached: a run looks 32 handoffs back",
            "ping_pong",
        ),
        (
            with("[run.loops]\nping_pong = 4\nping_pong_window = 3"),
            never,
            "ping_pong is never reached: it is 4",
            "ping_pong_window",
        ),
        (
            with("[run.loops]\nping_pong_window = 3"),
            "no-effect",
            "this has no effect: ping_pong is not set",
            "ping_pong_window",
        ),
        (
            with("[run]\nbudget.turns = 3\nestimate_input = true"),
            "no-effect",
            "this has no effect: no budget limits tokens or cost",
            "estimate_input",
        ),
        (
            with("[run.loops]\nwithout_progress = 17"),
            never,
            "this is never reached: a run looks 32 handoffs back",
            "without_progress",
        ),
        (
            with("[run.retries]\nper_run = 2\nper_edge = 3"),
            never,
            "this is never reached: per_run is 2",
            "per_edge",
        ),
        (
            with("[run]\nbudget.turns = 11"),
            never,
            "this is never reached: max_turns of [run] is 10",
            "turns = 11",
        ),
        (
            with("budget = { turns = 8, tokens = 5 }\n[run]\nbudget = { turns = 8, tokens = 6 }"),
            never,
            "this is never reached: the budget of the run is not larger",
            "turns = 8, tokens = 5",
        ),
        (
            with("budget.seconds = 2\n").replacen("'B'", "{ to = 'B', budget.seconds = 3 }", 1),
            never,
            "this is never reached: the budget of \"B\" is not larger",
            "seconds = 3",
        ),
        (
            with("budget = {}\n"),
            "no-effect",
            "this budget has no limit",
            "budget",
        ),
        (
            with("[run]\nat_budget = 'fail'"),
            "no-effect",
            "this has no effect: there is no budget",
            "at_budget",
        ),
        (
            with("[run]\npolicy = 'reference'\nloops.at_limit = 'refuse'"),
            "no-effect",
            "this has no effect: no limit on handoffs is set",
            "at_limit",
        ),
    ];
    for (text, code, message, part) in &cases {
        assert_problems(&[(text, Severity::Warning, code, message, part)]);
    }
    for text in [
        with("[run.loops]\nhandoffs = 9\nper_edge = 8\nping_pong = 8\nwithout_progress = 7"),
        with("[run.loops]\nping_pong = 4\nping_pong_window = 4"),
        with("[run]\nbudget.tokens = 300\nestimate_input = true"),
        with("[run.retries]\nper_run = 3\nper_edge = 3"),
        with("budget.turns = 7\n[run]\nbudget.turns = 8"),
        with("budget.turns = 9\n[run]\nbudget.turns = 8\nat_budget = { hand_to = 'B' }"),
    ] {
        let found = problems(&text);
        let worst = found.iter().map(|problem| problem.severity).max();
        assert!(worst < Some(Severity::Warning), "{text} {found:?}");
    }
}

#[test]
fn rules_that_cannot_work_are_reported() {
    let with = |rule: &str| {
        format!(
            "[context]\nx = true\n[agents.A]\nhandoffs = [{{ to = 'B', rules = [{rule}] }}, 'C']\n\
             [agents.B]\ndescription = 'B.'\n[agents.C]\ndescription = 'C.'\n"
        )
    };
    let bad = "bad-rule";
    for (rule, code, message, part) in [
        (
            "{ when = 'x' }",
            bad,
            "this rule has no consequence",
            "{ when",
        ),
        (
            "{ when = 'x', refuse = 'No.', redirect = 'C' }",
            bad,
            "a rule refuses or redirects, not both",
            "redirect",
        ),
        (
            "{ when = 'x', refuse = ' ' }",
            bad,
            "the model gets no reason for the refusal",
            "' '",
        ),
        (
            "{ when = 'x', redirect = 'B' }",
            bad,
            "this redirects to \"B\", where the handoff leads anyway",
            "'B' }",
        ),
        (
            "{ when = 'x', redirect = 'A' }",
            bad,
            "this hands the conversation of \"A\" to itself",
            "'A' }",
        ),
        (
            "{ when = 'y', redirect = 'C' }",
            "bad-condition",
            "the context has no \"y\"",
            "y', redirect",
        ),
        (
            "{ when = 'payload.z == 1', redirect = 'C' }",
            "bad-condition",
            "the handoff has no payload",
            "payload.z",
        ),
    ] {
        assert_problems(&[(&with(rule), Severity::Error, code, message, part)]);
    }
    let missing = problems(&with("{ refuse = 'No.' }"));
    assert_eq!(missing[0].message, "a handoff rule needs \"when\"");

    let redirect = with("{ when = 'x', redirect = 'C' }");
    let payload = "{ to = 'C', payload.properties.n.type = 'number' }";
    let circle = "{ to = 'C', rules = [{ when = 'not x', redirect = 'B' }] }";
    assert_problems(&[
        (
            &redirect.replace(", 'C']", &format!(", {payload}]")),
            Severity::Warning,
            "redirect-payload",
            "the handoff of \"A\" to \"C\" asks for another payload",
            "'C' }",
        ),
        (
            &redirect.replace(", 'C']", &format!(", {circle}]")),
            Severity::Warning,
            "redirect-cycle",
            "the rules of \"A\" redirect in a circle: B → C → B",
            "{ to = 'B'",
        ),
    ]);
}

#[test]
fn values_that_are_no_limits_are_reported() {
    let with = |run: &str| format!("[run]\n{run}\n[agents.A]\n");
    for (run, message) in [
        ("loops.per_edge = 0", "\"per_edge\" must be at least 1"),
        ("loops.per_edge = 'none'", "there is no limit \"none\""),
        ("policy = 'prodution'", "there is no policy \"prodution\""),
        ("budget.cost = 0", "\"cost\" must be more than 0"),
        ("budget.turns = 0", "\"turns\" must be at least 1"),
        ("budget.seconds = -1", "\"seconds\" must be more than 0"),
        ("budget.time = 1", "a budget has no field \"time\""),
        (
            "loops.at_limit = { redirct = 'A' }",
            "an at_limit of loops has no field \"redirct\"",
        ),
        (
            "announced_handoffs = { phrases = [''] }",
            "this phrase is empty, and every answer would have it",
        ),
        (
            "budget.turns = 2\nat_budget = { finish = '' }",
            "this answer is empty",
        ),
        ("loops.at_limit = { answer = ' ' }", "this answer is empty"),
    ] {
        let found = problems(&with(run));
        let found: Vec<&str> = found
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        assert_eq!(found, [message], "{run}");
    }
    let price =
        "[prices]\noffline = { input = -1, output = 2 }\n[run]\nbudget.cost = 1\n[agents.A]\n";
    assert_eq!(problems(price)[0].message, "\"input\" must be at least 0");
}
