//! A minimal browser on a plain socket that follows redirects.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use url::Url;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The final page of a visit.
#[derive(Debug)]
pub struct BrowserPage {
    /// The final URL.
    pub address: String,
    /// The HTTP status.
    pub status: u16,
    /// Head and body.
    pub page: String,
}

/// Opens a loopback URL and follows up to five redirects.
#[must_use]
pub fn browse(address: &str) -> BrowserPage {
    let mut address = address.to_owned();
    for _ in 0..5 {
        let page = fetch(&address);
        let status = page.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        let sent = page.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
        });
        match sent {
            Some(next) if (300..400).contains(&status) => address = next,
            _ => return BrowserPage { address, status, page },
        }
    }
    panic!("sent round in circles: {address}");
}

fn fetch(address: &str) -> String {
    let url = Url::parse(address).expect("an address");
    let host = url.host_str().expect("a host");
    let port = url.port_or_known_default().expect("a port");
    let mut stream = TcpStream::connect((host, port)).expect("a listener accepts connections");
    stream.set_read_timeout(Some(REQUEST_TIMEOUT)).expect("a deadline");
    let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    page
}
