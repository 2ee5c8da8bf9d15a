//! Files of servers.

use lm_mcp::{Error, McpServers};

#[test]
fn oversized_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mcp.json");
    let read = |bytes: usize| {
        let text = r#"{"mcpServers": {}}"#;
        std::fs::write(&path, format!("{text}{}", " ".repeat(bytes - text.len()))).expect("it is written");
        McpServers::read(&path)
    };
    assert_eq!(read(1 << 20).expect("a file of the largest size"), McpServers::default());
    match read((1 << 20) + 1) {
        Err(Error::InvalidFile { source, .. }) => {
            assert!(matches!(*source, Error::TooLarge { max_bytes: 1_048_576 }), "{source}");
        }
        other => panic!("{other:?}"),
    }
}
