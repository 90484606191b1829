//! `switchboard talk`.
//!
//! The test of offline speech needs `flite`, and a Python with `pocketsphinx` that `SWITCHBOARD_PYTHON` names.

use std::path::PathBuf;
use std::time::Duration;

use fake_provider::{FakeProvider, Reply};
use serde_json::{Value, json};
use switchboard_realtime::testing::speech;
use switchboard_realtime::voice::{Audio, Flite, PocketSphinx, SpeechToText as _, WavReader};

use crate::support::Folder;

/// The key of the scripts.
const KEY: &str = "sk-talk-test-key";

fn wav(folder: &Folder, name: &str, audio: &Audio) {
    std::fs::write(folder.path(name), audio.to_wav().unwrap()).unwrap();
}

/// The speech of this number of turns.
fn turns(number: usize) -> Audio {
    let turn = speech(16_000).into_samples();
    Audio::new(16_000, turn.repeat(number))
}

/// A second of speech at the provider's rate.
fn second() -> Reply {
    Reply::audio(vec![1; 48_000])
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Runs `talk` with speech of this provider.
fn talk(folder: &Folder, provider: &FakeProvider, args: &[&str]) -> Ran {
    let url = provider.url();
    let mut all = vec!["talk"];
    all.extend(args);
    let mut command = folder.command(&all);
    command
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", url);
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn provider(replies: impl IntoIterator<Item = Reply>) -> FakeProvider {
    let provider = FakeProvider::on_thread().unwrap();
    provider.script(KEY, replies);
    provider
}

#[test]
fn a_file_is_answered_with_a_file_after_a_handoff() {
    let folder = Folder::new();
    wav(&folder, "caller.wav", &turns(1));
    let provider = provider([Reply::transcript("My bill is wrong."), second()]);
    let args = [
        "team.toml",
        "--model",
        "offline",
        "--in",
        "caller.wav",
        "--out",
        "answer.wav",
        "--transcript",
        "--voice",
        "Billing=coral",
    ];
    let ran = talk(&folder, &provider, &args);
    assert_eq!(
        (ran.code, &*ran.stdout, &*ran.stderr),
        (
            Some(0),
            "You: My bill is wrong.\nTriage: → Billing\nBilling: A second charge is reversed.\n",
            ""
        )
    );
    let answer = WavReader::open(folder.path("answer.wav")).unwrap();
    assert_eq!(
        (answer.rate(), answer.duration()),
        (24_000, Duration::from_secs(1))
    );
    provider.assert_valid();
    let requests = provider.requests();
    assert_eq!(requests[1].body["voice"], "coral");
    assert_eq!(requests[1].body["model"], "gpt-4o-mini-tts");
    assert_eq!(requests[0].body["model"], "gpt-transcribe");
}

#[test]
fn events_are_those_of_the_run_and_those_of_speech() {
    let folder = Folder::new();
    wav(&folder, "caller.wav", &turns(1));
    let provider = provider([Reply::transcript("My bill is wrong."), second()]);
    let args = [
        "team.toml",
        "--model",
        "offline",
        "--in",
        "caller.wav",
        "--json",
    ];
    let ran = talk(&folder, &provider, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.lines();
    let types: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    let wanted = [
        "speech_started",
        "speech_stopped",
        "transcript",
        "run_started",
        "handoff",
        "sentence",
        "run_finished",
        "answer_ended",
    ];
    let found: Vec<&str> = types
        .into_iter()
        .filter(|name| wanted.contains(name))
        .collect();
    let mut sorted = found.clone();
    sorted.sort_by_key(|name| wanted.iter().position(|wanted| wanted == name));
    sorted.dedup();
    assert_eq!(sorted, wanted, "{found:?}");
    assert!(
        lines
            .iter()
            .all(|line| line["agent"].is_string() && line["at"].is_number())
    );
    let transcript = lines
        .iter()
        .find(|line| line["type"] == "transcript")
        .unwrap();
    assert_eq!(transcript["text"], "My bill is wrong.");
    // The recording can be replayed.
    folder.write("talk.jsonl", &ran.stdout);
    let replayed = folder.run(&["replay", "talk.jsonl"]);
    assert!(replayed.stdout.contains("→ Billing"), "{}", replayed.stdout);
}

#[test]
fn several_turns_are_one_conversation_which_a_chat_goes_on_with() {
    let folder = Folder::new();
    wav(&folder, "caller.wav", &turns(2));
    let replies = [
        Reply::transcript("My bill is wrong."),
        second(),
        Reply::transcript("I was charged twice."),
        second(),
    ];
    let provider = provider(replies);
    let args = [
        "team.toml",
        "--model",
        "offline",
        "--in",
        "caller.wav",
        "--transcript",
        "--session",
        "call",
    ];
    let ran = talk(&folder, &provider, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("You: ").count(), 2, "{}", ran.stdout);
    let later = folder.run(&[
        "run",
        "team.toml",
        "--session",
        "call",
        "--json",
        "Charged twice again",
    ]);
    let first: Value = serde_json::from_str(later.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["type"], &first["agent"]),
        (&json!("run_started"), &json!("Billing"))
    );
}

#[test]
fn calls_that_need_approval_wait_or_are_decided_by_the_command_line() {
    let folder = Folder::new();
    let team = r#"
        [agents.Desk]
        tools = ["refund"]
        [tools.refund]
        description = "Pays a refund back."
        approve = true
        parameters = { properties = { order = { type = "string" } } }
        records = { file = "orders.toml", by = "order" }
    "#;
    folder.write("desk.toml", team);
    folder.write("orders.toml", "\"A-1\" = \"It is paid back.\"\n");
    wav(&folder, "caller.wav", &turns(1));
    let call = || Reply::call("call_1", "refund", r#"{"order": "A-1"}"#);
    let words = || Reply::transcript("Refund the order A-1.");
    let args = [
        "desk.toml",
        "--model",
        "openai/gpt-5.2",
        "--in",
        "caller.wav",
        "--transcript",
    ];
    let waiting = provider([words(), call()]);
    let ran = talk(&folder, &waiting, &args);
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stderr.contains("--approve"), "{}", ran.stderr);
    let decided = provider([words(), call(), Reply::text("Done."), second()]);
    let ran = talk(
        &folder,
        &decided,
        &[&args[..], &["--approve", "all"]].concat(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.ends_with("Desk: Done.\n"), "{}", ran.stdout);
    decided.assert_valid();
}

#[test]
fn failures_have_their_exit_codes_and_no_key() {
    let folder = Folder::new();
    wav(&folder, "caller.wav", &turns(1));
    wav(
        &folder,
        "silence.wav",
        &Audio::silence(8_000, Duration::from_secs(3)),
    );
    folder.write("text.wav", "this is no audio");
    folder.write("empty.wav", "");
    wav(&folder, "nothing.wav", &Audio::new(16_000, Vec::new()));
    let refused = || {
        let message = format!("Incorrect API key provided: {KEY}.");
        Reply::status(
            401,
            json!({"error": {"message": message, "code": "invalid_api_key"}}),
        )
    };
    let words = || Reply::transcript("My bill is wrong.");
    let caller = ["team.toml", "--model", "offline", "--in", "caller.wav"];
    type Case<'a> = (&'a str, Vec<Reply>, Vec<&'a str>, i32, &'a str);
    let cases: [Case<'_>; 10] = [
        (
            "no ears",
            vec![refused()],
            caller.to_vec(),
            4,
            "could not be written down",
        ),
        (
            "no voice",
            vec![words(), refused()],
            caller.to_vec(),
            4,
            "could not be spoken",
        ),
        (
            "silence",
            vec![],
            vec!["team.toml", "--in", "silence.wav"],
            1,
            "nobody says anything in silence.wav",
        ),
        (
            "no WAV",
            vec![],
            vec!["team.toml", "--in", "text.wav"],
            2,
            "text.wav: the WAV file",
        ),
        (
            "an empty file",
            vec![],
            vec!["team.toml", "--in", "empty.wav"],
            2,
            "empty.wav: the WAV file",
        ),
        (
            "no samples",
            vec![],
            vec!["team.toml", "--in", "nothing.wav"],
            1,
            "nobody says anything in nothing.wav",
        ),
        (
            "no file",
            vec![],
            vec!["team.toml", "--in", "none.wav"],
            2,
            "cannot read none.wav",
        ),
        (
            "same file",
            vec![],
            vec!["team.toml", "--in", "caller.wav", "--out", "caller.wav"],
            2,
            "overwrite",
        ),
        (
            "no WAV to write",
            vec![],
            vec!["team.toml", "--in", "caller.wav", "--out", "team.toml"],
            2,
            "is no WAV file",
        ),
        (
            "no such agent",
            vec![],
            vec!["team.toml", "--in", "caller.wav", "--voice", "Biling=x"],
            2,
            "did you mean \"Billing\"?",
        ),
    ];
    for (name, replies, args, code, message) in cases {
        let provider = provider(replies);
        let ran = talk(&folder, &provider, &args);
        assert_eq!(ran.code, Some(code), "{name}: {}", ran.stderr);
        let stderr = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(stderr.contains(message), "{name}: {stderr}");
        assert!(
            !format!("{}{}", ran.stdout, ran.stderr).contains("talk-test-key"),
            "{name}"
        );
    }
    assert!(folder.read("team.toml").contains("[agents.Triage]"));
}

#[test]
fn recordings_of_other_kinds_are_understood() {
    let folder = Folder::new();
    // The same speech as 8 bits, as two channels, and at the rate of a CD.
    let samples = turns(1).into_samples();
    let of_cd = Audio::new(16_000, samples.clone())
        .resampled(44_100)
        .unwrap();
    let bytes = samples
        .iter()
        .map(|sample| ((i32::from(*sample) >> 8) + 128) as u8);
    let doubled = samples.iter().flat_map(|sample| [sample.to_le_bytes(); 2]);
    let stereo: Vec<u8> = doubled.flatten().collect();
    let bytes: Vec<u8> = bytes.collect();
    for (name, file) in [
        ("8 bits", wav_file(1, 8, &bytes)),
        ("two channels", wav_file(2, 16, &stereo)),
        ("44.1 kHz", of_cd.to_wav().unwrap()),
    ] {
        std::fs::write(folder.path("caller.wav"), file).unwrap();
        let provider = provider([Reply::transcript("My bill is wrong."), second()]);
        let args = [
            "team.toml",
            "--model",
            "offline",
            "--in",
            "caller.wav",
            "--transcript",
        ];
        let ran = talk(&folder, &provider, &args);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        assert!(
            ran.stdout.contains("Triage: → Billing"),
            "{name}: {}",
            ran.stdout
        );
    }
}

/// A WAV file at 16 kHz.
fn wav_file(channels: u16, bits: u16, samples: &[u8]) -> Vec<u8> {
    let frame = channels * bits / 8;
    let length = u32::try_from(samples.len()).unwrap();
    let mut file = Vec::new();
    file.extend(b"RIFF");
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(16_000_u32.to_le_bytes());
    file.extend((16_000 * u32::from(frame)).to_le_bytes());
    file.extend(frame.to_le_bytes());
    file.extend(bits.to_le_bytes());
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    file.extend(samples);
    file
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_conversation_and_leaves_a_whole_file() {
    let folder = Folder::new();
    wav(&folder, "caller.wav", &turns(2));
    // The second turn is never written down.
    let words = Reply::transcript("My bill is wrong.");
    let provider = provider([words, second(), Reply::hang()]);
    let args = [
        "talk",
        "team.toml",
        "--model",
        "offline",
        "--in",
        "caller.wav",
        "--out",
        "answer.wav",
    ];
    let mut command = folder.command(&args);
    command
        .env("OPENAI_API_KEY", KEY)
        .env("OPENAI_BASE_URL", provider.url())
        .stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let has_asked = (0..6_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        provider.requests().len() == 3 || child.try_wait().unwrap().is_some()
    });
    assert!(has_asked, "the second turn is not heard");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let answer = WavReader::open(folder.path("answer.wav")).unwrap();
    assert_eq!(answer.duration(), Duration::from_secs(1));
}

#[test]
fn without_a_key_a_microphone_or_programs_the_advice_says_what_to_do() {
    let folder = Folder::new();
    wav(&folder, "caller.wav", &turns(1));
    let ran = folder.run(&["talk", "team.toml", "--in", "caller.wav"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("OPENAI_API_KEY") && ran.stderr.contains("--offline"));
    let mut command = folder.command(&["talk", "--offline"]);
    command.env("SWITCHBOARD_FLITE", "/nowhere/flite");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("apt-get install flite"), "{stderr}");
    #[cfg(not(feature = "microphone"))]
    {
        let provider = provider([]);
        let ran = talk(&folder, &provider, &["team.toml"]);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("--in"), "{}", ran.stderr);
    }
}

#[test]
fn an_answer_that_takes_too_long_is_stopped() {
    let folder = Folder::new();
    wav(&folder, "caller.wav", &turns(2));
    let provider = provider([Reply::transcript("My bill is wrong."), Reply::hang()]);
    for form in ["--json", "--transcript"] {
        provider.script(KEY, [Reply::transcript("My bill is wrong."), Reply::hang()]);
        let before = provider.requests().len();
        let args = [
            "team.toml",
            "--model",
            "chat/m",
            "--in",
            "caller.wav",
            "--timeout",
            "0.5",
            form,
        ];
        let ran = talk(&folder, &provider, &args);
        assert_eq!(ran.code, Some(124), "{} {}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("--timeout"), "{}", ran.stderr);
        // The second turn of the caller is not answered.
        assert_eq!(provider.requests().len(), before + 2);
        if form == "--json" {
            let last = ran.lines().pop().unwrap();
            assert_eq!(last["type"], "run_stopped", "{}", ran.stdout);
        }
    }
}

#[test]
fn a_transcript_says_what_waits_for_a_decision() {
    let folder = Folder::new();
    folder.write(
        "team.toml",
        r#"
[agents.Desk]
tools = ["refund"]
[tools.refund]
description = "Refunds the customer, pays a refund."
command.run = ["date"]
approve = true
[commands]
allow = ["date"]
"#,
    );
    wav(&folder, "caller.wav", &turns(1));
    let provider = provider([Reply::transcript("Please refund me."), second()]);
    let args = [
        "team.toml",
        "--model",
        "offline",
        "--in",
        "caller.wav",
        "--transcript",
    ];
    let ran = talk(&folder, &provider, &args);
    assert_eq!(
        (ran.code, &*ran.stdout),
        (Some(5), "You: Please refund me.\n")
    );
    let told = "Desk waits for a decision: refund\n  help: it is not kept";
    assert!(ran.stderr.starts_with(told), "{}", ran.stderr);
}

/// The Python with `pocketsphinx`.
fn python() -> PathBuf {
    std::env::var_os("SWITCHBOARD_PYTHON").unwrap().into()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs flite, and SWITCHBOARD_PYTHON: a Python with pocketsphinx; ./test installs both"]
async fn an_offline_conversation_is_spoken_and_understood() {
    use futures_util::StreamExt as _;
    use switchboard_realtime::voice::{SpeechRequest, TextToSpeech as _};

    let folder = Folder::new();
    let flite = Flite::from_env();
    let request = SpeechRequest::new("i was charged twice this month", "caller");
    let spoken = std::pin::pin!(flite.speak(request))
        .next()
        .await
        .unwrap()
        .unwrap();
    let pause = vec![0; spoken.rate() as usize];
    let speech = [&*pause, spoken.samples(), &*pause].concat();
    wav(&folder, "caller.wav", &Audio::new(spoken.rate(), speech));
    let args = [
        "talk",
        "--offline",
        "--in",
        "caller.wav",
        "--out",
        "answer.wav",
        "--transcript",
    ];
    let mut command = folder.command(&args);
    command.env("SWITCHBOARD_PYTHON", python());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("charged"), "{stdout}");
    assert!(stdout.contains("Triage: → Billing"), "{stdout}");

    let mut unknown = args.to_vec();
    unknown.extend(["--voice", "Triage=zoe"]);
    let mut command = folder.command(&unknown);
    command.env("SWITCHBOARD_PYTHON", python());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("flite has no voice \"zoe\""), "{stderr}");
    assert!(stderr.contains("slt"), "{stderr}");

    // The answer, as somebody who hears it would write it down.
    let file = std::fs::File::open(folder.path("answer.wav")).unwrap();
    let answer = Audio::from_wav(file, Duration::from_secs(60)).unwrap();
    let understood = PocketSphinx::new(python())
        .transcribe(answer)
        .await
        .unwrap();
    let words = ["second", "charge", "three", "working", "days"];
    let found = words
        .iter()
        .filter(|word| understood.contains(**word))
        .count();
    assert!(found >= 4, "{understood:?}");
}
