//! Records of the flow ring.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct pf_flow_record`: a closed state whose rule has `pflow`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FlowRecord {
    /// Addresses of the initiator and the responder, in network byte order.
    pub address: [[u8; 16]; 2],
    /// The same addresses as the responder sees them.
    pub translated_address: [[u8; 16]; 2],
    /// Ports of the initiator and the responder, in network byte order.
    pub port: [[u8; 2]; 2],
    /// The same ports as the responder sees them.
    pub translated_port: [[u8; 2]; 2],
    /// Index of the interface where the first packet came in, 0 for none.
    pub ifindex_in: u32,
    /// Index of the interface where a packet left, 0 for none.
    pub ifindex_out: u32,
    /// Packets of the initiator and of the responder.
    pub packets: [u64; 2],
    /// Bytes of the initiator and of the responder.
    pub bytes: [u64; 2],
    /// Boot-clock second of the state's creation.
    pub creation: u32,
    /// Boot-clock second of the last packet.
    pub last: u32,
    /// [`crate::INET`] or [`crate::INET6`]
    pub family: u8,
    /// IP protocol.
    pub protocol: u8,
    /// TOS criterion of the state's rule.
    pub tos: u8,
    /// 1: the responder sees other addresses or ports, in the same family.
    pub translated: u8,
    #[allow(missing_docs, reason = "the values are those of bpf/abi")]
    pub pad: u32,
}
