//! `--ctstate`: pf asks no rule about packets of a connection that it knows.

/// Which packets of connections a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// `NEW`: begins one
    pub new: bool,
    /// `ESTABLISHED` or `RELATED`: belongs to one
    pub established: bool,
    /// `INVALID`: neither begins one nor belongs to one
    pub invalid: bool,
}

impl Connection {
    /// Reads a list; `None` if it names a state that pf does not know.
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
        // pf has RELATED packets, errors of ICMP, pass with the connection that they are about
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
