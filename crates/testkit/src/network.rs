//! The network between a program and a server on this machine, which can be cut.

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Forwards connections to a server.
#[derive(Debug)]
pub struct Network {
    port: u16,
    is_up: watch::Sender<bool>,
    /// Aborted on drop.
    _tasks: JoinSet<()>,
}

impl Network {
    /// A way to a port of 127.0.0.1.
    pub async fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let is_up = watch::Sender::new(true);
        let state = is_up.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let state = state.subscribe();
                connections.spawn(forward(client, server, state));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { port, is_up, _tasks: tasks }
    }

    /// The port on 127.0.0.1 through which the server is reached.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Breaks all connections. New ones break too, until [`Network::connect`].
    pub fn cut(&self) {
        self.is_up.send_replace(false);
    }

    /// Lets connections through again.
    pub fn connect(&self) {
        self.is_up.send_replace(true);
    }
}

async fn forward(mut client: TcpStream, server: u16, mut is_up: watch::Receiver<bool>) {
    if !*is_up.borrow_and_update() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _ = is_up.changed() => {}
    }
}
