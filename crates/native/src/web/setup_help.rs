//! Instructions for configuring a search service, with exact lines, in both languages.

pub(super) const ENGLISH: &str = r#"no search service is set up: choose one, in toolhub.toml or by an environment variable

1. SearXNG, an instance that you may use (it needs `formats: [html, json]` under `search:` in its settings.yml)
   [web_search]
   provider = "searxng"
   url = "http://127.0.0.1:8080"
   or: export SEARXNG_URL=http://127.0.0.1:8080

2. Brave Search, with a key from https://brave.com/search/api/
   [web_search]
   provider = "brave"
   api_key = "${BRAVE_API_KEY}"
   or only: export BRAVE_API_KEY=…

3. Tavily, with a key from https://app.tavily.com
   [web_search]
   provider = "tavily"
   api_key = "${TAVILY_API_KEY}"
   or only: export TAVILY_API_KEY=…"#;

pub(super) const CHINESE: &str = r#"还没有设置搜索服务：请在 toolhub.toml 中或用环境变量选择一个

1. SearXNG：可供你使用的实例（它的 settings.yml 中 `search:` 下要有 `formats: [html, json]`）
   [web_search]
   provider = "searxng"
   url = "http://127.0.0.1:8080"
   或者：export SEARXNG_URL=http://127.0.0.1:8080

2. Brave Search：密钥可在 https://brave.com/search/api/ 获取
   [web_search]
   provider = "brave"
   api_key = "${BRAVE_API_KEY}"
   或者只需：export BRAVE_API_KEY=…

3. Tavily：密钥可在 https://app.tavily.com 获取
   [web_search]
   provider = "tavily"
   api_key = "${TAVILY_API_KEY}"
   或者只需：export TAVILY_API_KEY=…"#;
