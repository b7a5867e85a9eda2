//! `--ctstate`. pf evaluates no rule for packets of a connection with a state.

/// The states of connections that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// `NEW`: packets that begin a connection
    pub new: bool,
    /// `ESTABLISHED` or `RELATED`: packets of a connection
    pub established: bool,
    /// `INVALID`: packets that neither begin a connection nor belong to one
    pub invalid: bool,
}

impl Connection {
    /// Parses a list of states. Returns `None` for a state without an equivalent in pf.
    pub fn parse(list: &str, negated: bool) -> Option<Self> {
        let mut seen = Connection { new: false, established: false, invalid: false };
        let mut related = false;
        for name in list.split(',') {
            match name {
                "NEW" => seen.new = true,
                "ESTABLISHED" => seen.established = true,
                "RELATED" => related = true,
                "INVALID" => seen.invalid = true,
                _ => return None,
            }
        }
        // pf passes RELATED packets, which are ICMP errors, with the connection that they report
        // on.
        if negated && seen.established != related {
            return None;
        }
        seen.established |= related;
        Some(match negated {
            false => seen,
            true => Connection {
                new: !seen.new,
                established: !seen.established,
                invalid: !seen.invalid,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read() {
        let parse = |list, negated| {
            Connection::parse(list, negated).map(|c| (c.new, c.established, c.invalid))
        };
        assert_eq!(parse("RELATED,ESTABLISHED", false), Some((false, true, false)));
        assert_eq!(parse("RELATED,ESTABLISHED", true), Some((true, false, true)));
        assert_eq!(parse("NEW", false), Some((true, false, false)));
        assert_eq!(parse("INVALID", true), Some((true, true, false)));
        assert_eq!(parse("ESTABLISHED", true), None);
        assert_eq!(parse("DNAT", false), None);
    }
}
