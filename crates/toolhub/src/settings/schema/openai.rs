//! The schema of `[openai]`.

use serde_json::Value;

use super::{duration, flag, size, table, texts};

pub(super) fn openai() -> Value {
    table(
        "The OpenAI-compatible endpoint of the gateway (`/v1`)",
        [
            ("enabled", flag("Whether the endpoint exists (default: true)")),
            (
                "approved_tools",
                texts(
                    "Tools that run without approval although they may destroy something: `SERVER__TOOL`; `*` is a wildcard in the name of the tool",
                ),
            ),
            ("keep", duration("How long responses are stored (default: 30d)")),
            ("max_size", size("Size of all stored responses (default: 256MiB)")),
        ],
    )
}
