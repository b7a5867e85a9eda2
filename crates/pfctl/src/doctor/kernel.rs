//! Checks of the kernel: its release, and the features that the data plane needs.

use skipstep_kernel::features::{Feature, Kernel};
use skipstep_kernel::{pins, sysctl};

use super::finding::Finding;

const SUBJECT: &str = "kernel";

/// The kernel, and the state of its BPF subsystem.
pub struct Facts {
    kernel: Kernel,
    /// `net.core.bpf_jit_enable`; `None` if it cannot be read.
    jit: Option<String>,
    /// True if a BPF file system is mounted at /sys/fs/bpf.
    is_mounted: bool,
}

/// Reads the facts.
pub fn collect() -> Facts {
    Facts {
        kernel: Kernel::running(),
        jit: sysctl::read("net/core/bpf_jit_enable"),
        is_mounted: pins::is_mounted(),
    }
}

/// Judges the facts.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = features(&facts.kernel);
    if facts.jit.as_deref() == Some("0") {
        let text = "BPF programs are interpreted, which takes several times as long";
        findings
            .push(Finding::warn(SUBJECT, text).mended_by("sysctl -w net.core.bpf_jit_enable=1"));
    }
    if !facts.is_mounted {
        let text = "no BPF file system is mounted at /sys/fs/bpf, so the filter cannot be pinned";
        let mount = "mount -t bpf -o mode=700 bpf /sys/fs/bpf";
        findings.push(Finding::fail(SUBJECT, text).mended_by(mount));
    }
    findings
}

fn features(kernel: &Kernel) -> Vec<Finding> {
    let release = &kernel.release;
    if !kernel.is_recent() {
        let text = format!("Linux {release} has no tcx: skipstep needs Linux 6.6 or newer");
        return vec![Finding::fail(SUBJECT, text)];
    }
    let Some(present) = &kernel.features else {
        let text = format!("Linux {release} has no BTF: it lacks CONFIG_DEBUG_INFO_BTF");
        return vec![Finding::fail(SUBJECT, text)];
    };
    let missing = Feature::ALL.into_iter().filter(|feature| !present.contains(feature));
    let missing: Vec<Finding> = missing.map(|feature| lacks(release, feature)).collect();
    if !missing.is_empty() {
        return missing;
    }
    let names = Feature::ALL.map(Feature::name).join(", ");
    vec![Finding::ok(SUBJECT, format!("Linux {release} has BTF, {names}"))]
}

fn lacks(release: &str, feature: Feature) -> Finding {
    let text = format!("Linux {release} lacks {} ({})", feature.name(), feature.option());
    match feature {
        // the filter works without its guard
        Feature::NetfilterHooks => Finding::warn(
            SUBJECT,
            format!("{text}: new interfaces are open until skipstepd attaches the filter"),
        ),
        _ => Finding::fail(SUBJECT, text),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::finding::Level;
    use super::*;

    fn facts(release: &str, features: Option<&[Feature]>) -> Facts {
        let features = features.map(|features| features.iter().copied().collect::<BTreeSet<_>>());
        Facts {
            kernel: Kernel { release: release.to_owned(), features },
            jit: Some("1".to_owned()),
            is_mounted: true,
        }
    }

    #[test]
    fn a_kernel_with_all_features_is_well() {
        let findings = judge(&facts("6.18.4", Some(&Feature::ALL)));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Ok);
        assert!(findings[0].text.starts_with("Linux 6.18.4 has BTF, tcx, timers of BPF programs"));
    }

    #[test]
    fn each_missing_feature_is_named_with_its_option() {
        for (facts, level, says) in [
            (facts("6.1.0", None), Level::Fail, "6.6 or newer"),
            (facts("6.12.0", None), Level::Fail, "CONFIG_DEBUG_INFO_BTF"),
            (facts("6.12.0", Some(&Feature::ALL[1..])), Level::Fail, "CONFIG_NET_XGRESS"),
            (facts("6.12.0", Some(&Feature::ALL[..2])), Level::Warn, "CONFIG_NETFILTER_BPF_LINK"),
        ] {
            let findings = judge(&facts);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert_eq!(findings[0].level, level);
            assert!(findings[0].text.contains(says), "{findings:?}");
        }
    }

    #[test]
    fn the_jit_and_the_file_system_are_missed() {
        let jit = Some("0".to_owned());
        let facts = Facts { jit, is_mounted: false, ..facts("6.18", Some(&Feature::ALL)) };
        let findings = judge(&facts);
        let levels: Vec<Level> = findings.iter().map(|finding| finding.level).collect();
        assert_eq!(levels, [Level::Ok, Level::Warn, Level::Fail]);
        assert!(findings[2].command.as_ref().unwrap().starts_with("mount -t bpf "));
    }
}
