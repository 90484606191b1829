//! Leases.

use crate::*;

tests! {
    async fn a_lease_has_one_owner_until_it_is_released(backend) {
        let store = backend.open().await;
        let other = backend.open().await;
        assert!(store.lease("c", "a", LONG).await.unwrap());
        assert!(!other.lease("c", "b", LONG).await.unwrap());
        assert!(other.lease("d", "b", LONG).await.unwrap());
        // The owner extends it, with any handle.
        assert!(other.lease("c", "a", LONG).await.unwrap());
        other.release("c", "b").await.unwrap();
        assert!(!other.lease("c", "b", LONG).await.unwrap());
        store.release("c", "a").await.unwrap();
        store.release("c", "a").await.unwrap();
        assert!(other.lease("c", "b", LONG).await.unwrap());
        assert!(!store.lease("c", "a", LONG).await.unwrap());
        assert_eq!(store.head("c").await.unwrap(), None);
    }

    async fn a_lease_ends_by_itself(backend) {
        let store = backend.open().await;
        assert!(store.lease("c", "a", Duration::from_millis(400)).await.unwrap());
        assert!(!store.lease("c", "b", LONG).await.unwrap());
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(store.lease("c", "b", LONG).await.unwrap());
        assert!(!store.lease("c", "a", LONG).await.unwrap());
        // The time of an extension counts from then on.
        assert!(store.lease("c", "b", Duration::from_millis(1)).await.unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(store.lease("c", "a", LONG).await.unwrap());
    }

    async fn a_lease_may_be_of_any_time(backend) {
        let store = backend.open().await;
        assert!(store.lease("c", "a", Duration::ZERO).await.unwrap());
        assert!(store.lease("c", "b", Duration::from_secs(u64::MAX / 2_000)).await.unwrap());
        assert!(!store.lease("c", "a", LONG).await.unwrap());
        assert!(store.lease("c", "b", Duration::from_nanos(1)).await.unwrap());
    }

    async fn a_lease_and_its_conversation_do_not_depend_on_each_other(backend) {
        let store = backend.open().await;
        assert!(store.lease("c", "a", LONG).await.unwrap());
        let revision = committed(&store, "c", commit(Expected::New, "r", 1, &["x"])).await;
        store.clear("c").await.unwrap();
        assert!(store.delete("c").await.unwrap());
        assert!(!store.lease("c", "b", LONG).await.unwrap());
        store.release("c", "a").await.unwrap();
        let late = commit(Expected::At(revision), "r", 2, &["x"]);
        assert_eq!(store.commit("c", late).await.unwrap(), Committed::Conflict);
    }

    async fn one_of_many_gets_the_lease(backend) {
        let store = backend.open().await;
        for _ in 0..5 {
            let tasks = (0..16).map(|owner| {
                let store = store.clone();
                tokio::spawn(async move {
                    let owner = owner.to_string();
                    let is_owner = store.lease("c", &owner, LONG).await.unwrap();
                    is_owner.then_some(owner)
                })
            });
            let mut owners = Vec::new();
            for task in tasks.collect::<Vec<_>>() {
                owners.extend(task.await.unwrap());
            }
            assert_eq!(owners.len(), 1);
            store.release("c", &owners[0]).await.unwrap();
        }
    }
}
