//! The program `pfctl`.

/// Of 100,000 rules the lists alone have some hundred megabytes.
#[global_allocator]
static ALLOCATOR: skipstep_kernel::allocator::InLargePages =
    skipstep_kernel::allocator::InLargePages;

fn main() -> std::process::ExitCode {
    pfctl::run::main()
}
