//! Names the folder of the BPF objects that the build of crates/kernel has compiled.

fn main() {
    let objects = std::env::var("DEP_SKIPSTEP_KERNEL_OBJECTS").expect("crates/kernel sets it");
    println!("cargo::rustc-env=OBJECTS={objects}");
}
