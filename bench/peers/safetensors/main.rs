//! peer-safetensors open PATH TIMES - map the file and deserialize the header; print the seconds
//!     and the number of tensors, a line for each time
//! peer-safetensors load PATH - also copy all tensors into new memory; print the seconds and the
//!     number of bytes
use std::{env, error::Error, fs::File, hint::black_box, process::exit, time::Instant};

use memmap2::Mmap;
use safetensors::SafeTensors;

type Outcome = Result<(), Box<dyn Error>>;

fn open(path: &str, times: usize) -> Outcome {
    for _ in 0..times {
        let begin = Instant::now();
        // SAFETY: the bench does not change the file during the measurement.
        let map = unsafe { Mmap::map(&File::open(path)?)? };
        let tensors = SafeTensors::deserialize(&map)?;
        let took = begin.elapsed().as_secs_f64();
        println!("{took:.9} {}", tensors.len());
    }
    Ok(())
}

fn load(path: &str) -> Outcome {
    let begin = Instant::now();
    // SAFETY: the bench does not change the file during the measurement.
    let map = unsafe { Mmap::map(&File::open(path)?)? };
    let tensors = SafeTensors::deserialize(&map)?;
    let copies: Vec<Vec<u8>> = tensors
        .tensors()
        .iter()
        .map(|(_, t)| t.data().to_vec())
        .collect();
    let took = begin.elapsed().as_secs_f64();
    println!(
        "{took:.9} {}",
        black_box(copies).iter().map(Vec::len).sum::<usize>()
    );
    Ok(())
}

fn main() -> Outcome {
    let args: Vec<String> = env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "open", path, times] => open(path, times.parse()?),
        [_, "load", path] => load(path),
        _ => {
            eprintln!("usage: peer-safetensors open PATH TIMES | load PATH");
            exit(2)
        }
    }
}
