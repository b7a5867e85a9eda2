//! The program `pfctl`.

fn main() -> std::process::ExitCode {
    pfctl::run::main()
}
