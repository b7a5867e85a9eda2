//! The program `pftop`.

fn main() -> std::process::ExitCode {
    pftop::run::main()
}
