//! HTTP/1.1 messages over a connection that is kept: heads, and bodies in chunks or of a known length.

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;

/// A connection that is read message by message.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<TcpStream>,
}

/// The head of a message.
pub(crate) struct Head {
    pub(crate) first_line: String,
    fields: String,
}

impl Head {
    /// A field by its name in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.field("transfer-encoding").is_some()
    }
}

impl Connection {
    pub(crate) async fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| address.to_owned())?;
        Self::of(stream)
    }

    pub(crate) fn of(stream: TcpStream) -> Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// The next head; `None` if the connection has ended.
    pub(crate) async fn head(&mut self) -> Result<Option<Head>> {
        let mut first_line = String::new();
        if self.stream.read_line(&mut first_line).await? == 0 {
            return Ok(None);
        }
        let mut fields = String::new();
        loop {
            let begin = fields.len();
            ensure!(self.stream.read_line(&mut fields).await? > 0, "a head broke off");
            if &fields[begin..] == "\r\n" {
                return Ok(Some(Head { first_line: first_line.trim_end().to_owned(), fields }));
            }
        }
    }

    /// A body of known length.
    pub(crate) async fn body(&mut self, head: &Head) -> Result<Vec<u8>> {
        let length = head.field("content-length").context("no length")?.parse()?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }

    /// The next chunk of a body, appended; `false` at its end.
    pub(crate) async fn chunk(&mut self, body: &mut Vec<u8>) -> Result<bool> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line).await? > 0, "a body broke off");
        let Ok(size) = usize::from_str_radix(line.trim(), 16) else { bail!("not a chunk: {line}") };
        let begin = body.len();
        body.resize(begin + size + 2, 0);
        self.stream.read_exact(&mut body[begin..]).await?;
        ensure!(body.ends_with(b"\r\n"), "a chunk is too long");
        body.truncate(begin + size);
        Ok(size > 0)
    }
}
