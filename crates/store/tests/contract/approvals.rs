//! Approvals: at most one for each tool.

use toolhub_core::approval::Approval;
use toolhub_core::{RawJson, Source, ToolName};

use crate::database::{Database, hour};

pub(crate) async fn keeps_one_approval_per_tool(database: Database) {
    let store = database.open().await;
    let approval = |source: &str, version: &str, hours| Approval {
        source: Source::from_name(source),
        tool: ToolName::new("工具"),
        version: version.to_owned(),
        definition: RawJson::parse(r#"{"name": "工具", "x": 1.0}"#).unwrap(),
        at: hour(hours),
    };
    for one in [approval("s", "1", 1), approval("native", "1", 2), approval("s", "2", 3)] {
        store.approve(one).await.unwrap();
    }
    let store = database.open().await;
    let found = store.approvals().await.unwrap();
    assert_eq!(format!("{found:?}"), format!("{:?}", [approval("native", "1", 2), approval("s", "2", 3)]));
    let tool = ToolName::new("工具");
    assert!(store.revoke(&Source::from_name("s"), &tool).await.unwrap());
    assert!(!store.revoke(&Source::from_name("s"), &tool).await.unwrap());
    assert_eq!(store.approvals().await.unwrap().len(), 1);
}
