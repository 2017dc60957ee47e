//! `didact`: predict, simulate and explain how teacher-student networks learn in high dimension.
//!
//! Data goes to stdout, everything else to stderr. Exit code 0: all done, no claim fails; 1: a claim fails; 2: an error;
//! 3: finished, but jobs failed; 75: stopped in good order, to be gone on with (see `exit.rs`).

/// A line on stdout. A reader that has gone (`didact list | head`) is no error: `println!` would panic.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), $($text)*);
    }};
}

/// A line on stderr, whether somebody reads it or not.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), $($text)*);
    }};
}

mod commands;
mod exit;
mod papers;
mod progress;
mod slurm;
mod supervise;
mod units;

use clap::{Args, CommandFactory, Parser, Subcommand};
use didact_experiment::{Diagnostic, Size};
use exit::Ending;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Parser)]
#[command(name = "didact", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an experiment: theory, simulation, comparison, figures and a report
    Run(RunArguments),
    /// Say what would run, on which engine, at what cost; nothing is computed or written
    Check(CheckArguments),
    /// Compute a quantity such as committee/plateau and print it as JSON
    #[command(disable_help_flag = true)]
    Compute {
        /// FAMILY/QUANTITY; all of them: `didact list quantities`
        #[arg(required_unless_present = "help")]
        quantity: Option<String>,
        /// Inputs as key=value (numbers, words, or JSON)
        inputs: Vec<String>,
        /// Print this, or the inputs and outputs of the quantity
        #[arg(short, long)]
        help: bool,
    },
    /// List families, engines, activations, functions of formulas, observables, quantities and papers
    List {
        /// One of families, engines, activations, functions, observables, quantities, papers; all unless given
        what: Option<String>,
        /// One quantity or paper, to see its inputs and outputs, or its figures
        name: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Reproduce figures of papers and judge their claims
    Reproduce {
        /// PAPER or PAPER/FIGURE, also several; a list of papers unless given
        what: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Share an experiment out to a cluster, or to any number of machines with a common folder
    #[command(subcommand)]
    Sweep(commands::sweep::SweepCommand),
    /// Open a page on which an experiment moves while you change it
    Explore {
        /// Description (TOML or JSON) to begin with; a gallery unless given
        file: Option<PathBuf>,
        /// Where saved descriptions and run folders go
        #[arg(long, default_value = "runs")]
        out: PathBuf,
        /// Port on this machine; a free one unless given
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Seconds of one core that simulations on the page may take, by the planner
        #[arg(long, default_value_t = 60.0)]
        limit: f64,
        /// Print the address and leave the browser alone
        #[arg(long)]
        no_open: bool,
    },
    /// Show what a finished run found, and where its report is
    Report {
        /// Folder of the run
        run: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Compare every file of a finished run with its digest
    Verify {
        /// Folder of the run
        run: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what to cite for an experiment
    Cite {
        /// Description (TOML or JSON)
        file: PathBuf,
    },
    /// Print the JSON schema of descriptions
    Schema {
        /// As a Markdown reference
        #[arg(long)]
        markdown: bool,
    },
    /// Print completions for a shell
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Description (TOML or JSON)
    file: PathBuf,
    #[command(flatten)]
    options: Options,
    /// Compute nothing: draw and judge what is kept, and say what is missing
    #[arg(long, conflicts_with = "fresh")]
    no_compute: bool,
}

#[derive(Debug, Args)]
struct CheckArguments {
    /// Description (TOML or JSON)
    file: PathBuf,
    #[command(flatten)]
    size: SizeOptions,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Args)]
struct SizeOptions {
    /// The small version that runs in seconds
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// The version that is as large as the source
    #[arg(long)]
    full: bool,
}

impl SizeOptions {
    fn size(self) -> Size {
        match (self.quick, self.full) {
            (true, _) => Size::Quick,
            (_, true) => Size::Full,
            _ => Size::Normal,
        }
    }
}

#[derive(Debug, Args)]
struct Options {
    #[command(flatten)]
    size: SizeOptions,
    /// Where run folders go
    #[arg(long, default_value = "runs")]
    out: PathBuf,
    /// Seed, in place of the description's
    #[arg(long)]
    seed: Option<u64>,
    /// Compute everything anew, also what is found
    #[arg(long)]
    fresh: bool,
    /// Threads; all cores unless given (results do not depend on it)
    #[arg(long)]
    threads: Option<usize>,
    /// Print results as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the program with these arguments, the first of which is its own name, and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { exit::ERROR } else { 0 };
        }
    };
    match dispatch(cli.command) {
        Ok(ending) => ending.code(),
        Err(diagnostic) => {
            complain!("{diagnostic}");
            exit::ERROR
        }
    }
}

fn dispatch(command: Command) -> Result<Ending, Diagnostic> {
    match command {
        Command::Run(arguments) => {
            commands::run::run(&arguments.file, &arguments.options, arguments.no_compute)
        }
        Command::Check(arguments) => {
            commands::check::check(&arguments.file, arguments.size.size(), arguments.json)
        }
        Command::Compute { quantity: Some(quantity), inputs, help } => {
            commands::compute::compute(&quantity, &inputs, help)
        }
        Command::Compute { quantity: None, .. } => {
            let mut program = Cli::command();
            let compute = program.find_subcommand_mut("compute").expect("a command of this program");
            say!("{}", compute.render_long_help().to_string().trim_end());
            Ok(Ending::Done)
        }
        Command::List { what, name, json } => commands::list::list(what.as_deref(), name.as_deref(), json),
        Command::Reproduce { what, options } => commands::reproduce::reproduce(&what, &options),
        Command::Sweep(command) => commands::sweep::sweep(command),
        #[cfg(feature = "explore")]
        Command::Explore { file, out, port, limit, no_open } => {
            commands::explore::explore(file.as_deref(), out, port, limit, !no_open)
        }
        #[cfg(not(feature = "explore"))]
        Command::Explore { .. } => Err(Diagnostic::new("this program was built without the explorer")
            .hint("build it with `--features explore`, which `cargo build` does unless told otherwise")),
        Command::Report { run, json } => commands::report::report(&run, json),
        Command::Verify { run, json } => commands::verify::verify(&run, json),
        Command::Cite { file } => commands::cite::cite(&file),
        Command::Schema { markdown } => Ok(commands::schema::schema(markdown)),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "didact", &mut script);
            say!("{}", String::from_utf8_lossy(&script).trim_end());
            Ok(Ending::Done)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(Diagnostic::new)?;
            say!("{}", String::from_utf8_lossy(&page).trim_end());
            Ok(Ending::Done)
        }
    }
}
