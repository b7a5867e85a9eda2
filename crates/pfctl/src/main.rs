//! The program `pfctl`.

/// Large pages, because a rule set of 100,000 rules takes some hundred megabytes.
#[global_allocator]
static ALLOCATOR: skipstep_kernel::allocator::InLargePages =
    skipstep_kernel::allocator::InLargePages;

fn main() -> std::process::ExitCode {
    pfctl::run::main()
}
