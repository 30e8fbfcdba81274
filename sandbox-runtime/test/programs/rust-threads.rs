// Threads, channels, a mutex and condition variable, a local server, a child process and a panic that is caught.
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{mpsc, Arc, Condvar, Mutex};
use std::thread;

fn sum() -> u64 {
    let (sender, receiver) = mpsc::channel();
    for worker in 0..8u64 {
        let sender = sender.clone();
        thread::spawn(move || (0..1000).for_each(|number| sender.send(worker * number).unwrap()));
    }
    drop(sender);
    receiver.iter().sum()
}

fn wait_for_all() -> usize {
    let gate = Arc::new((Mutex::new(0), Condvar::new()));
    for _ in 0..8 {
        let gate = gate.clone();
        thread::spawn(move || {
            *gate.0.lock().unwrap() += 1;
            gate.1.notify_one();
        });
    }
    let arrived = gate.1.wait_while(gate.0.lock().unwrap(), |arrived| *arrived < 8).unwrap();
    *arrived
}

fn ask() -> String {
    let listener = TcpListener::bind("localhost:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.accept().unwrap().0.write_all(b"served\n").unwrap());
    let mut line = String::new();
    BufReader::new(TcpStream::connect(address).unwrap()).read_line(&mut line).unwrap();
    line.trim().to_string()
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let caught = thread::spawn(|| panic!("caught")).join().is_err();
    let child = Command::new("echo").arg("child").output().unwrap();
    println!("{} {} {} {} {}", sum(), wait_for_all(), ask(), caught, String::from_utf8_lossy(&child.stdout).trim());
}
