# The Rust compiler and the linker that it calls; RUSTC is its path.
set -euo pipefail
cat > main.rs << 'RUST'
fn main() {
    println!("{}", (1..=10).map(|n| std::thread::spawn(move || n * n)).map(|t| t.join().unwrap()).sum::<i32>());
}
RUST
"$RUSTC" -O -o program main.rs
./program
