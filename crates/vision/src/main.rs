//! The program `didact-vision`: data, the demo, the protocols, and checks of a device.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use clap::{Parser, Subcommand};
use didact_vision::data::found;
use didact_vision::demo::{DemoScale, demo};
use didact_vision::device::{Cpu, Device};
use didact_vision::experiment::{TransferSetting, run};
use didact_vision::protocol::Protocol;
use didact_vision::train::NetworkTrainingError;
use didact_vision::{bench, check};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Pre-trains small vision transformers, keeps checkpoints, and adapts each by LoRA to another task.
#[derive(Parser)]
#[command(name = "didact-vision", version)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Says which data sets are found, and how to get the others.
    Data {
        /// Folder with a folder per data set.
        #[arg(long, default_value = "data")]
        data: PathBuf,
    },
    /// Prints the protocols with all their numbers.
    Protocols,
    /// A transfer in small on images that are made, on the processor, in under two minutes.
    Demo {
        /// Folder for tables and states.
        #[arg(long, default_value = "runs/vision-demo")]
        out: PathBuf,
    },
    /// Runs a protocol, or what is left of it: `letters-to-fashion`, `cifar-to-svhn`, `letters-to-shifted`.
    Run {
        /// Its name.
        protocol: String,
        /// Folder with a folder per data set.
        #[arg(long, default_value = "data")]
        data: PathBuf,
        /// Folder for tables, checkpoints and states; one per protocol is made in it.
        #[arg(long, default_value = "runs/vision")]
        out: PathBuf,
        /// Networks that are pre-trained.
        #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
        seeds: u32,
        /// Seed of all random numbers.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Images per class downstream, if others than those of the protocol; tables go to `N-per-class`.
        #[arg(long)]
        per_class: Option<usize>,
        /// `cuda` or `cpu`.
        #[arg(long, default_value = "cuda")]
        device: String,
    },
    /// Compares every operation of the GPU, and a training, with the processor.
    CheckDevice,
    /// Time per step of training, for numbers of models side by side.
    Bench {
        /// Numbers of models.
        #[arg(long, value_delimiter = ',', default_value = "1,3")]
        models: Vec<usize>,
        /// `cuda` or `cpu`.
        #[arg(long, default_value = "cuda")]
        device: String,
        /// Images per step and model.
        #[arg(long, default_value_t = 256)]
        batch: usize,
        /// Steps that are timed.
        #[arg(long, default_value_t = 100)]
        steps: usize,
    },
}

/// Raised by SIGINT, SIGTERM and SIGHUP.
static STOPPED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Time between two looks at the flag.
const LOOK: Duration = Duration::from_millis(20);

/// What has not stopped this long after a signal is ended: files are whole or not there, and the state is at most 20 s old.
const PATIENCE: Duration = Duration::from_millis(350);

fn listen() -> Result<(), String> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&STOPPED)).map_err(|e| e.to_string())?;
    }
    std::thread::spawn(|| {
        while !stopped() {
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(PATIENCE);
        eprintln!("\ninterrupted; the same command goes on from the last state on disk");
        std::process::exit(130);
    });
    Ok(())
}

fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

fn tell(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}

fn main() -> ExitCode {
    let program = Program::parse();
    let done = listen().map_err(NetworkTrainingError::File).and_then(|()| perform(program.command));
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(NetworkTrainingError::Interrupted) => {
            eprintln!("{}", NetworkTrainingError::Interrupted);
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What is done on a device, whichever it is.
trait Work {
    fn on<D: Device>(&self, device: &D) -> Result<(), NetworkTrainingError>;
}

fn on_device(name: &str, work: &impl Work) -> Result<(), NetworkTrainingError> {
    match name {
        "cpu" => work.on(&Cpu::<f32>::new()),
        #[cfg(feature = "cuda")]
        "cuda" => work.on(&didact_vision::device::Cuda::new()?),
        other => Err(NetworkTrainingError::File(format!(
            "there is no device `{other}`\n\nhint: use `cuda` or `cpu`"
        ))),
    }
}

struct RunProtocol {
    protocol: Protocol,
    data: didact_vision::protocol::Data,
    folder: PathBuf,
    seed: u64,
    seeds: u32,
    per_class: Option<usize>,
}

impl Work for RunProtocol {
    fn on<D: Device>(&self, device: &D) -> Result<(), NetworkTrainingError> {
        let Self { protocol, data, folder, seed, seeds, per_class } = self;
        eprintln!("{} on {}", protocol.name, device.name());
        let setting = TransferSetting {
            device,
            folder: folder.clone(),
            seed: *seed,
            seeds: *seeds,
            per_class: *per_class,
            stopped: &stopped,
            tell: &tell,
        };
        run(protocol, data, &setting)?;
        println!("tables in {}", folder.display());
        Ok(())
    }
}

struct Timed {
    models: Vec<usize>,
    batch: usize,
    steps: usize,
}

impl Work for Timed {
    fn on<D: Device>(&self, device: &D) -> Result<(), NetworkTrainingError> {
        for &models in &self.models {
            println!("{}", bench::step(device, models, self.batch, self.steps)?);
        }
        Ok(())
    }
}

fn perform(command: Command) -> Result<(), NetworkTrainingError> {
    match command {
        Command::Data { data } => print!("{}", found::overview(&data)),
        Command::Protocols => {
            println!("{}", serde_json::to_string_pretty(&Protocol::all()).expect("protocols are plain data"));
        }
        Command::Demo { out } => {
            demo(DemoScale::Small, &out, &stopped, &tell)?;
            let figure = didact_vision::demo::figure(&out).map_err(NetworkTrainingError::File)?;
            println!("tables in {}, figure and claims in {}", out.display(), figure.display());
        }
        Command::Run { protocol, data, out, seeds, seed, per_class, device } => {
            let protocol = Protocol::named(&protocol).map_err(NetworkTrainingError::File)?;
            let found = protocol.data(&data, seed).map_err(NetworkTrainingError::File)?;
            found.stand_ins.iter().for_each(|line| eprintln!("stand-in: {line}"));
            let folder = out.join(&protocol.name);
            on_device(&device, &RunProtocol { protocol, data: found, folder, seed, seeds, per_class })?;
        }
        Command::CheckDevice => {
            #[cfg(feature = "cuda")]
            let report = check::compare(&didact_vision::device::Cuda::new()?, check::SINGLE)?;
            #[cfg(not(feature = "cuda"))]
            let report = check::compare(&Cpu::<f32>::new(), check::SINGLE)?;
            print!("{}", report.text());
            if !report.passed() {
                return Err(NetworkTrainingError::File("the device differs from the processor".into()));
            }
        }
        Command::Bench { models, device, batch, steps } => {
            on_device(&device, &Timed { models, batch, steps })?;
        }
    }
    Ok(())
}
