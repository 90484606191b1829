//! Servers by address.

use switchboard_sessions::{StoreErrorKind, open};

async fn refused(address: &str) -> (StoreErrorKind, String) {
    let error = open(address).await.unwrap_err();
    (error.kind(), error.to_string())
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_postgres_server_that_is_not_there_is_named_without_the_password() {
    let (kind, message) = refused("postgres://app:s3cr3t@127.0.0.1:1/chats").await;
    assert_eq!(kind, StoreErrorKind::Unreachable, "{message}");
    assert!(
        message.starts_with("conversations at postgres://127.0.0.1:1/chats: "),
        "{message}"
    );
    assert!(
        message.ends_with("check the address and that the server runs, and try again"),
        "{message}"
    );
    assert!(!message.contains("s3cr3t"), "{message}");
    for invalid in [
        "postgres://app:s3cr3t@host:port/chats",
        "postgresql://app:s3cr3t@[::/x",
    ] {
        let (kind, message) = refused(invalid).await;
        assert_eq!(kind, StoreErrorKind::Address, "{message}");
        assert!(!message.contains("s3cr3t"), "{message}");
    }
}

#[cfg(feature = "redis")]
#[tokio::test]
async fn a_redis_server_that_is_not_there_is_named_without_the_password() {
    let (kind, message) = refused("redis://app:s3cr3t@127.0.0.1:1/3").await;
    assert_eq!(kind, StoreErrorKind::Unreachable, "{message}");
    assert!(
        message.starts_with("conversations at redis://127.0.0.1:1/3: "),
        "{message}"
    );
    assert!(
        message.ends_with("check the address and that the server runs, and try again"),
        "{message}"
    );
    let (kind, message) = refused("rediss://app:s3cr3t@127.0.0.1:1/").await;
    assert_eq!(kind, StoreErrorKind::Unreachable, "{message}");
    for invalid in [
        "redis://app:s3cr3t@host:port/",
        "redis://app:s3cr3t@host/database",
    ] {
        let (kind, message) = refused(invalid).await;
        assert_eq!(kind, StoreErrorKind::Address, "{message}");
        assert!(!message.contains("s3cr3t"), "{message}");
    }
}
