//! The course of a session, from the client's first byte to the last.

use anyhow::Result;

use crate::gateway::relay::Relay;
use crate::gateway::session::Session;

impl Session {
    /// Runs the session until one side ends it.
    pub async fn run(mut self) {
        let id = self.journal.id;
        log::info!("#{id} client={} session begins", self.journal.client);
        match self.converse().await {
            Ok(()) => log::info!("#{id} session ends"),
            Err(problem) => {
                log::info!("#{id} session ends: {problem:#}");
                // the client may have closed the connection
                let _ = self.client.send(format!("421 {}", printable(&problem))).await;
            }
        }
    }

    async fn converse(&mut self) -> Result<()> {
        let login = self.gateway.config.timeouts.login;
        let arrival = tokio::time::timeout(login, Box::pin(self.receive())).await;
        match arrival.map_err(|_| anyhow::anyhow!("no login in time"))?? {
            Some(arrival) => Relay::new(self, arrival.server).run(arrival.opening).await,
            None => Ok(()),
        }
    }
}

/// Formats a problem as the text of a reply: one line of printable ASCII.
fn printable(problem: &anyhow::Error) -> String {
    let text = format!("{problem:#}");
    text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect()
}
