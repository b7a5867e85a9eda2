//! The numbers for the state of one side of a flow, as `pfctl -s states` names them.

/// BSD's numbers of the TCP states that PF uses.
pub mod tcp_state {
    /// The side has sent nothing.
    pub const CLOSED: u8 = 0;
    /// The side has sent a SYN, or another first packet.
    pub const SYN_SENT: u8 = 2;
    /// The side's SYN was acknowledged.
    pub const ESTABLISHED: u8 = 4;
    /// The side has sent a FIN.
    pub const CLOSING: u8 = 7;
    /// The side's FIN was acknowledged.
    pub const FIN_WAIT_2: u8 = 9;
    /// The connection was reset.
    pub const TIME_WAIT: u8 = 10;
    /// `synproxy state`: the firewall waits for the client's handshake.
    pub const PROXY_SRC: u8 = 11;
    /// `synproxy state`: the firewall waits for the server's handshake.
    pub const PROXY_DST: u8 = 12;
}

/// States of a side of a flow that is not TCP.
pub mod other_state {
    /// The side has sent nothing.
    pub const NO_TRAFFIC: u8 = 0;
    /// The side has sent a packet.
    pub const SINGLE: u8 = 1;
    /// The side has sent a packet and got an answer.
    pub const MULTIPLE: u8 = 2;
}
