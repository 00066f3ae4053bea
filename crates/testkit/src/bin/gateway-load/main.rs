//! The programs of the benchmark `gateway`: a fast upstream server over HTTP and stdio; the baseline, a bare proxy; the
//! load generator for a URL or a program; and the soak test.

mod baseline;
mod issuer;
mod load;
mod pipe;
#[cfg(target_os = "linux")]
mod soak;
mod tls;
mod upstream;
mod wire;

use anyhow::{Context as _, Result, bail};

use crate::load::CallMode;

const USAGE: &str = "usage: gateway-load upstream-http TOOLS [ADDRESS] | upstream-https TOOLS ADDRESS CERTIFICATE KEY | \
                     upstream-stdio TOOLS | issuer AUDIENCE | baseline URL [CERTIFICATE] | \
                     load URL CALLERS SECONDS [MANNER] | list URL TIMES [MANNER] | pipe CALLERS SECONDS PROGRAM [ARGUMENT…] | \
                     soak PROGRAM FOLDER SECONDS SEED; MANNER is `alone TOOL` or `session VERSION TOOL`; `load` sends the token \
                     in LOAD_TOKEN, if it is set";

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["upstream-http", tools] => upstream::http(tools.parse()?, "127.0.0.1").await,
        ["upstream-http", tools, address] => upstream::http(tools.parse()?, address).await,
        ["upstream-https", tools, address, certificate, key] => {
            upstream::https(tools.parse()?, address, &tls::server(certificate, key)?).await
        }
        ["upstream-stdio", tools] => upstream::stdio(tools.parse()?),
        ["issuer", audience] => issuer::run(audience).await,
        ["baseline", url] => baseline::run(url, None).await,
        ["baseline", url, certificate] => baseline::run(url, Some(certificate)).await,
        ["load", url, callers, seconds, mode @ ..] => {
            load::run(url, callers.parse()?, seconds.parse()?, CallMode::of(mode)?).await
        }
        ["list", url, times, mode @ ..] => load::list(url, times.parse()?, CallMode::of(mode)?).await,
        ["pipe", callers, seconds, program, arguments @ ..] => {
            pipe::run(program, arguments, callers.parse()?, seconds.parse()?).await
        }
        #[cfg(target_os = "linux")]
        ["soak", program, folder, seconds, seed] => {
            soak::run(soak::Plan { program, folder, seconds: seconds.parse()?, seed: seed.parse()? }).await
        }
        [] => bail!(USAGE),
        _ => Err(anyhow::anyhow!("{words:?} is none of what is known")).context(USAGE),
    }
}
