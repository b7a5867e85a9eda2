//! Requests to rtnetlink over a blocking socket.

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::error::{Context, Error, Result};

/// Bytes of a message's header.
const HEADER: usize = 16;

/// A socket of rtnetlink, in the network namespace where it was opened.
pub struct Rtnetlink {
    socket: Socket,
    sequence: u32,
}

impl Rtnetlink {
    /// Opens a socket in the current network namespace.
    ///
    /// # Errors
    /// Fails if the socket cannot be opened or bound.
    pub fn open() -> Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE).context(|| "rtnetlink: open".to_owned())?;
        socket.bind_auto().context(|| "rtnetlink: bind".to_owned())?;
        socket.connect(&SocketAddr::new(0, 0)).context(|| "rtnetlink: connect".to_owned())?;
        Ok(Rtnetlink { socket, sequence: 0 })
    }

    /// Returns all objects that a GET message selects.
    ///
    /// # Errors
    /// Fails if the kernel refuses the request, or if the socket fails.
    pub fn dump(&mut self, get: RouteNetlinkMessage) -> Result<Vec<RouteNetlinkMessage>> {
        self.exchange(get, NLM_F_DUMP)
    }

    /// Returns the one object that a GET message selects.
    ///
    /// # Errors
    /// Fails if the kernel refuses the request, or if the socket fails.
    pub fn get(&mut self, get: RouteNetlinkMessage) -> Result<Vec<RouteNetlinkMessage>> {
        self.exchange(get, NLM_F_ACK)
    }

    /// Sends a request that changes something. `flags` are added to request and acknowledge.
    ///
    /// # Errors
    /// Fails if the kernel refuses the request, or if the socket fails.
    pub fn order(&mut self, message: RouteNetlinkMessage, flags: u16) -> Result<()> {
        self.exchange(message, NLM_F_ACK | flags).map(|_| ())
    }

    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        self.sequence += 1;
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).context(|| "rtnetlink: send".to_owned())?;

        let mut answers = Vec::new();
        loop {
            let (datagram, _) =
                self.socket.recv_from_full().context(|| "rtnetlink: receive".to_owned())?;
            if self.take(&datagram, &mut answers)? {
                return Ok(answers);
            }
        }
    }

    /// Takes the messages of one datagram. Returns true if the exchange is complete.
    fn take(&self, datagram: &[u8], answers: &mut Vec<RouteNetlinkMessage>) -> Result<bool> {
        for message in messages(datagram) {
            if message.header.sequence_number != self.sequence {
                continue;
            }
            match message.payload {
                NetlinkPayload::InnerMessage(object) => answers.push(object),
                NetlinkPayload::Error(error) => match error.code {
                    None => return Ok(true),
                    Some(code) => {
                        let cause = io::Error::from_raw_os_error(-code.get());
                        return Err(Error::System { operation: "rtnetlink".to_owned(), cause });
                    }
                },
                NetlinkPayload::Done(_) => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// Returns the messages of a datagram. Skips messages that the library cannot parse.
pub(crate) fn messages(
    datagram: &[u8],
) -> impl Iterator<Item = NetlinkMessage<RouteNetlinkMessage>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        let bytes = rest.get(..length).filter(|bytes| bytes.len() >= HEADER)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(NetlinkMessage::deserialize(bytes).ok())
    })
    .flatten()
}
