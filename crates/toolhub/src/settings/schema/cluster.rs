//! The schema of `[cluster]`.

use serde_json::Value;

use super::{table, texts};

pub(super) fn cluster() -> Value {
    table(
        "Several hubs that share a store",
        [(
            "session_keys",
            texts(
                "Keys of session ids, 256 bits each in base64; the first seals, all open; without them a key is made and kept in the store",
            ),
        )],
    )
}
