//! What the gateway itself says to clients.

/// To who has not said which server it wants.
pub const NO_SERVER: &str = "530 Say which server you want: USER name@host";
/// To who has to log in at the gateway first.
pub const NO_ACCOUNT: &str = "530 Log in at the gateway first";
/// To a verb that is none.
pub const UNKNOWN: &str = "500 Unknown command";
/// To a command that no rule can allow.
pub const NO_TLS: &str = "502 No TLS through this gateway: it reads what it passes on";
/// To another such.
pub const NEVER: &str = "502 Not through this gateway";
/// To a command that the rules do not allow.
pub const NOT_ALLOWED: &str = "550 The gateway does not allow this command";
/// To a transfer without a way.
pub const NO_WAY: &str = "425 Use PORT or PASV first";
/// To a way that says nothing.
pub const GARBLED: &str = "501 No address and port";
/// To an address that is not the client's.
pub const NOT_YOURS: &str = "501 Data go to the client of the session, from port 1024 on";

/// The gateway's own features (RFC 2389), in the order of their names.
pub const FEATURES: [&str; 2] = ["EPRT", "EPSV"];
