//! Replies of the gateway itself.

/// Sent if the client has not named a server.
pub const NO_SERVER: &str = "530 Say which server you want: USER name@host";
/// Sent if the client has to log in at the gateway first.
pub const NO_ACCOUNT: &str = "530 Log in at the gateway first";
/// Sent if the line has no verb.
pub const UNKNOWN: &str = "500 Unknown command";
/// Sent for `AUTH`, which no rule can allow.
pub const NO_TLS: &str = "502 No TLS through this gateway: it reads all commands";
/// Sent for other commands that no rule can allow.
pub const NEVER: &str = "502 Not through this gateway";
/// Sent for a command that the rules do not allow.
pub const NOT_ALLOWED: &str = "550 The gateway does not allow this command";
/// Sent for a transfer without a data connection.
pub const NO_WAY: &str = "425 Use PORT or PASV first";
/// Sent for a data connection command with an invalid argument.
pub const GARBLED: &str = "501 No address and port";
/// Sent for an address that is not the client's, or a port below 1024.
pub const NOT_YOURS: &str = "501 Data go to the client of the session, from port 1024 on";

/// The gateway's own features (RFC 2389), in the order of their names.
pub const FEATURES: [&str; 2] = ["EPRT", "EPSV"];
