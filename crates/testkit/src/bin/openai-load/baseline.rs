//! The baseline: a proxy that copies the bytes of each connection to the model server and back, and reads nothing of them.

use anyhow::Result;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

#[expect(clippy::print_stdout, reason = "the benchmark that starts it reads the address")]
pub(crate) async fn serve(model: &str) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let model = model.to_owned();
                connections.spawn(async move { drop(copy(stream, &model).await) });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn copy(mut client: TcpStream, model: &str) -> Result<()> {
    let mut server = TcpStream::connect(model).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
