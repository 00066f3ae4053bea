//! Lists the models of an endpoint, which costs no tokens.

use std::time::Duration;

use serde::Deserialize;
use toolhub_core::model::ModelError;

use crate::client::ModelClient;
use crate::exchange::EndpointExchange;
use crate::failure::AttemptFailure;

#[derive(Deserialize)]
struct Listing {
    data: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
}

impl ModelClient {
    /// The names of the models of this endpoint, in its order.
    pub async fn models(&self, timeout: Duration) -> Result<Vec<String>, ModelError> {
        let endpoint = self.endpoint();
        let ask = async {
            let exchange = EndpointExchange { client: self.http()?, endpoint, idle_timeout: timeout };
            let body = exchange.get(endpoint.models_url()).await?;
            let listing: Listing = serde_json::from_slice(&body).map_err(|error| {
                AttemptFailure::unreadable(endpoint, &format!("no list of models: {error}"))
            })?;
            Ok(listing.data.into_iter().map(|listed| listed.id).collect())
        };
        let answer = tokio::time::timeout(timeout, ask).await;
        answer
            .unwrap_or_else(|_| Err(AttemptFailure::timed_out(endpoint, timeout)))
            .map_err(|failure| failure.error)
    }
}
