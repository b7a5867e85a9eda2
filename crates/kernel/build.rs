//! Compiles the data plane with clang and leaves the objects for `src/object.rs`, `src/lab/` and
//! crates/testing to embed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Oldest clang whose BPF back end the programs are written for.
const OLDEST_CLANG: u32 = 16;

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let bpf = root.join("../../bpf");
    println!("cargo:rerun-if-changed={}", bpf.display());
    println!("cargo:rerun-if-env-changed=CLANG");

    let clang = find_clang();
    fs::create_dir_all(out.join("lab")).expect("OUT_DIR can be written to");
    for program in [
        "programs.bpf",
        "odd_length.bpf",
        "lookup.bpf",
        "lab/anew.bpf",
        "lab/generator.bpf",
        "lab/route.bpf",
        "lab/sink.bpf",
    ] {
        compile(&clang, &bpf, &bpf.join(format!("{program}.c")), &out.join(format!("{program}.o")));
    }
    // crates/testing embeds objects, too
    println!("cargo::metadata=OBJECTS={}", out.display());
    let layouts = out.join("abi.bpf.c");
    fs::write(&layouts, every_struct(&bpf)).expect("OUT_DIR can be written to");
    compile(&clang, &bpf, &layouts, &out.join("abi.bpf.o"));
}

/// A program that mentions every struct of abi.h and bpf/abi/: the compiler leaves out of BTF those
/// that the data plane only uses inside functions, and the test of crates/abi wants them all.
fn every_struct(bpf: &Path) -> String {
    let parts = fs::read_dir(bpf.join("abi")).expect("bpf/abi is there");
    let parts = parts.map(|part| part.expect("bpf/abi can be read").path());
    let headers = parts.chain([bpf.join("abi.h")]);
    let text: String =
        headers.map(|header| fs::read_to_string(header).expect("a header can be read")).collect();
    let mut program = "#include <linux/bpf.h>\n#include \"abi.h\"\n".to_owned();
    for line in text.lines() {
        let name = line.strip_prefix("struct ").and_then(|rest| rest.split_whitespace().next());
        if let Some(name) = name {
            program.push_str(&format!("struct {name} *mention_{name};\n"));
        }
    }
    program
}

fn compile(clang: &str, include: &Path, source: &Path, object: &Path) {
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let status = Command::new(clang)
        .args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-target", "bpf", "-mcpu=v3"])
        .arg(format!("-I{libbpf}"))
        .arg(format!("-I{}", include.display()))
        .args(multiarch_include())
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("{clang} could not compile {}: see above", source.display()),
        Err(error) => panic!("{clang}: {error}"),
    }
}

/// Returns the compiler: the value of CLANG, or else the newest clang there is.
fn find_clang() -> String {
    if let Ok(clang) = env::var("CLANG") {
        return clang;
    }
    let numbered = (OLDEST_CLANG..=25).rev().map(|version| format!("clang-{version}"));
    numbered
        .chain(["clang".to_owned()])
        .find(|clang| Command::new(clang).arg("--version").output().is_ok())
        .unwrap_or_else(|| panic!("no clang found: install clang-{OLDEST_CLANG} or newer"))
}

/// Debian keeps asm/types.h in a folder per architecture.
fn multiarch_include() -> Option<String> {
    let arch = env::var("CARGO_CFG_TARGET_ARCH").ok()?;
    let include = format!("/usr/include/{arch}-linux-gnu");
    Path::new(&include).is_dir().then(|| format!("-I{include}"))
}
