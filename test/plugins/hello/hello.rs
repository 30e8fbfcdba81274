//! Says hello from Rust: the same lines as every other hello plugin.
use std::{env, fs, io, thread};

fn primes_below(limit: usize) -> usize {
    let mut composite = vec![false; limit];
    let mut count = 0;
    for n in 2..limit {
        if composite[n] {
            continue;
        }
        count += 1;
        for multiple in (n * n..limit).step_by(n) {
            composite[multiple] = true;
        }
    }
    count
}

fn main() -> io::Result<()> {
    let greeting = format!("hello from Rust ({})", option_env!("RUSTC_VERSION").unwrap_or("version unknown"));
    println!("{greeting}");
    for argument in env::args().skip(1) {
        println!("argument: {argument}");
    }
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let line = line.trim_end_matches('\n');
    println!("standard input: {}", if line.is_empty() { "(empty)" } else { line });
    println!("directory: {}", env::current_dir()?.display());
    // In a thread of its own, because threads are what a filter that forgets clone breaks.
    let count = thread::spawn(|| primes_below(1000)).join().expect("the thread ends");
    println!("primes below 1000: {count}");
    fs::create_dir_all("out")?;
    fs::write("out/hello.txt", format!("{greeting}\n"))?;
    println!("wrote: out/hello.txt");
    Ok(())
}
