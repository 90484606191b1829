//! Runs that wait in a session and are resumed with something else: another team, a changed file, twice at once.

use fake_provider::Reply;

use crate::approvals::{Desk, TEAM, refund};
use crate::support::Ran;

const RESUME: [&str; 6] = [
    "resume",
    "team.toml",
    "--session",
    "tuesday",
    "--approve",
    "all",
];

/// The team with a refund that leaves a line behind.
fn paying() -> String {
    let looks_up = "records = { file = \"orders.toml\", by = \"order\" }";
    let pays = "command.run = ['sh', '-c', 'echo \"$1\" >> paid', 'sh', '{order}']";
    assert!(TEAM.contains(looks_up));
    format!(
        "{}\n[commands]\nallow = [\"sh\"]\n",
        TEAM.replace(looks_up, pays)
    )
}

/// A desk whose refund waits.
fn waiting_desk() -> Desk {
    let desk = Desk::new([refund("c1", "500"), Reply::text("Done.")]);
    desk.folder.write("team.toml", &paying());
    let ran = desk.send("Money!", &[], "");
    assert_eq!(ran.code, Some(5), "{ran:?}");
    desk
}

fn has_paid(desk: &Desk) -> bool {
    desk.folder.path("paid").exists()
}

/// Resumes with this team file, which is refused with a message that has these words; then with the file of before.
fn assert_refused(file: &str, words: &[&str]) {
    let desk = waiting_desk();
    desk.folder.write("team.toml", file);
    let ran = desk.program(&RESUME, "");
    assert!(!matches!(ran.code, Some(0 | 5)), "{ran:?}");
    for words in words {
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
    assert!(!has_paid(&desk));
    assert_eq!(desk.provider.requests().len(), 1);

    desk.folder.write("team.toml", &paying());
    let ran = desk.program(&RESUME, "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.folder.read("paid"), "A-1\n");
}

#[test]
fn another_team_is_refused_and_the_run_waits_on() {
    let other = "[agents.Shop]\ninstructions = \"Sell.\"\n";
    assert_refused(other, &["Desk", "resume it with the team file as it was"]);
}

#[test]
fn a_file_whose_tool_has_another_schema_or_is_gone_is_refused_with_its_name() {
    let number = "amount = { type = \"number\" }";
    let bounded = "amount = { type = \"number\", maximum = 1000 }";
    let words = "\"refund\" of \"Desk\" takes other arguments now than when a person was asked";
    assert_refused(
        &paying().replace(number, bounded),
        &[words, "resume it with the team file as it was"],
    );
    let renamed = paying().replace("refund", "repay");
    let words = "the call of \"refund\" waits, and \"Desk\" has it no more";
    assert_refused(&renamed, &[words]);
}

#[test]
fn two_programs_that_resume_at_once_pay_once() {
    let desk = waiting_desk();
    let both = [desk.start(&RESUME), desk.start(&RESUME)];
    let ran = both.map(Ran::of);
    let codes = ran.each_ref().map(|ran| ran.code);
    assert!(codes.contains(&Some(0)), "{ran:?}");
    assert_ne!(codes[0], codes[1], "{ran:?}");
    assert_eq!(desk.folder.read("paid"), "A-1\n");
    assert_eq!(desk.provider.requests().len(), 2);
}

#[test]
fn a_file_of_rules_that_cannot_be_read_decides_nothing() {
    let desk = waiting_desk();
    desk.folder.write("empty.toml", "");
    desk.folder
        .write("wrong.toml", "[[rules]]\ndecision = \"aprove\"\n");
    desk.folder.write("broken.json", "{");
    for (rules, code) in [
        ("missing.toml", 2),
        ("wrong.toml", 2),
        ("broken.json", 2),
        (".", 2),
    ] {
        let args = [&RESUME[..5], &[rules]].concat();
        let ran = desk.program(&args, "");
        assert_eq!(ran.code, Some(code), "{rules}: {ran:?}");
        assert!(!has_paid(&desk));
    }
    // No rule fits: the call waits on.
    let ran = desk.program(&[&RESUME[..5], &["empty.toml"]].concat(), "");
    assert!(matches!(ran.code, Some(2 | 5)), "{ran:?}");
    assert!(!has_paid(&desk));
}
