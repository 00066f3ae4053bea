//! The programs of the benchmark `openai`: a model server that streams tokens at a given pace, a proxy that copies its streams,
//! and clients that measure streams and check their texts.

mod baseline;
mod chunked;
mod client;
mod model;
mod plan;

use anyhow::{Context as _, Result, bail};

use crate::client::{Api, Load};

const USAGE: &str = "usage: openai-load model | baseline MODEL_ADDRESS | load URL chat|responses CLIENTS REQUESTS TOKENS PAUSE_MICROS | \
                     hold URL chat|responses CLIENTS";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["model"] => model::serve().await,
        ["baseline", address] => baseline::serve(address).await,
        ["load", url, api, clients, requests, tokens, pause] => {
            let plan = plan::Plan { tokens: tokens.parse()?, pause_micros: pause.parse()?, hold_millis: 0 };
            let load = Load {
                url,
                api: Api::parse(api)?,
                clients: clients.parse()?,
                requests: requests.parse()?,
                plan,
            };
            load.run().await
        }
        ["hold", url, api, clients] => client::hold(url, Api::parse(api)?, clients.parse()?).await,
        [] => bail!(USAGE),
        _ => Err(anyhow::anyhow!("`{words:?}` is not a valid command line")).context(USAGE),
    }
}
