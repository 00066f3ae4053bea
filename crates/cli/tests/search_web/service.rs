//! A local search service with scripted replies, which records the received requests.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;
use url::Url;

/// A received request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// Header names are in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// The reply to a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Status, headers and body.
    Http(u16, Vec<(&'static str, String)>, String),
    /// Sends fewer bytes than announced.
    BreakOff,
    /// Sends nothing until the client disconnects.
    Never,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::Http(status, vec![("Content-Type", "application/json".to_owned())], body.to_string())
    }
}

/// A service that runs until this is dropped.
pub(crate) struct Service {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Received>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub(crate) fn start(reply: impl Fn(&Received) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (received, ends) = (Arc::<Mutex<Vec<Received>>>::default(), Arc::<AtomicBool>::default());
        let (requests, ending) = (Arc::clone(&received), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ending.load(Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.unwrap();
                let Some(request) = read(&stream) else { continue };
                let answer = reply(&request);
                requests.lock().unwrap().push(request);
                // The client may have disconnected.
                let _ = write(&mut stream, answer);
            }
        });
        Self { url, received, ends, thread: Some(thread) }
    }

    /// A service that sends the same reply to every request.
    pub(crate) fn answering(reply: Reply) -> Self {
        Self::start(move |_| reply.clone())
    }

    /// The requests received so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The only request received.
    pub(crate) fn only(&self) -> Received {
        let mut received = self.received();
        assert_eq!(received.len(), 1, "{received:?}");
        received.remove(0)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the service panicked");
        }
    }
}

fn read(stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut parts = line.split_whitespace();
    let (method, target) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let url = Url::parse("http://host").unwrap().join(&target).unwrap();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Received {
        method,
        path: url.path().to_owned(),
        query: url.query_pairs().into_owned().collect(),
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}

fn write(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Http(status, headers, body) => {
            let mut head =
                format!("HTTP/1.1 {status} Told\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n{body}").as_bytes())
        }
        Reply::BreakOff => stream.write_all(b"HTTP/1.1 200 Told\r\nContent-Length: 100\r\n\r\n{\"results\""),
        Reply::Never => stream.read_to_end(&mut Vec::new()).map(|_| ()),
    }
}
