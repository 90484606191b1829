//! Applications and teams that share a server and a store.

use tokio::time::timeout;

use super::LONG;
use super::worker::{Engine, Place, Team};

pub(super) async fn applications_and_teams_on_one_server_answer_their_own_messages(engine: Engine) {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Place::new(engine, "places", folder.path());
    first.team = Team::Echo;
    let places = [
        first.beside("", None),
        first.beside("", Some("sales")),
        // The names on servers have few characters.
        first.beside("", Some("sales/é 2.0_%")),
        first.beside("_b", Some("sales")),
    ];
    let mut runners = Vec::new();
    for place in &places {
        runners.push(place.client().await);
    }
    let mut workers: Vec<_> = places.iter().map(|place| place.worker(None)).collect();
    let mut runs = Vec::new();
    for number in 0..3 {
        for (at, runner) in runners.iter().enumerate() {
            let conversation = format!("talk {at}.{number}");
            let run = runner.start(&conversation, "m1", "Hello").await.unwrap();
            runs.push(run);
        }
    }
    for run in runs {
        let record = timeout(LONG, run.wait()).await.unwrap().unwrap();
        assert_eq!(record.text().as_deref(), Some("re: Hello"), "{record:?}");
    }

    // A message waits for a worker of its own team.
    workers.remove(1);
    let sales = runners[1].start("talk", "m1", "Buy").await.unwrap();
    for (at, runner) in runners.iter().enumerate() {
        if at != 1 {
            let conversation = format!("talk {at}");
            let run = runner.start(&conversation, "m1", "Hello").await.unwrap();
            let record = timeout(LONG, run.wait()).await.unwrap().unwrap();
            assert_eq!(record.text().as_deref(), Some("re: Hello"), "{record:?}");
        }
    }
    assert!(!sales.record().await.unwrap().is_ended());
    workers.push(places[1].worker(None));
    let record = timeout(LONG, sales.wait()).await.unwrap().unwrap();
    assert_eq!(record.text().as_deref(), Some("re: Buy"), "{record:?}");
}
