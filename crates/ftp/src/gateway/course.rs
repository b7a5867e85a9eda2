//! A session, from the client's first byte to its last.

use anyhow::Result;

use crate::gateway::relay::Relay;
use crate::gateway::session::Session;

impl Session {
    /// Goes on until one side has no more to say.
    pub async fn run(mut self) {
        let id = self.journal.id;
        log::info!("#{id} client={} session begins", self.journal.client);
        match self.converse().await {
            Ok(()) => log::info!("#{id} session ends"),
            Err(problem) => {
                log::info!("#{id} session ends: {problem:#}");
                // it may have been the client's fault, and its end
                let _ = self.client.say(format!("421 {}", printable(&problem))).await;
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

/// A problem as the text of a reply: one line of ASCII.
fn printable(problem: &anyhow::Error) -> String {
    let text = format!("{problem:#}");
    text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect()
}
