//! `didact sweep submit`: one job array of Slurm.

use super::{CountOptions, Target, plan};
use crate::exit::Ending;
use crate::slurm::{self, quoted};
use crate::supervise::own_program;
use crate::units::duration;
use clap::Args;
use didact_experiment::store::write_atomically;
use didact_experiment::sweep::plan::TaskCount;
use didact_experiment::sweep::submission::Resources;
use didact_experiment::sweep::{Kept, Plan, Submission, folder_of};
use didact_experiment::{Diagnostic, Experiment};
use std::path::{Path, PathBuf};

/// Slurm warns so many seconds before the time of a long task is over; tasks stop by themselves, so this is a precaution.
const WARNING: f64 = 120.0;

#[derive(Debug, Args)]
pub(crate) struct SubmitArguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    count: CountOptions,
    #[command(flatten)]
    resources: ResourceOptions,
    /// Show the plan, the script and the command; write and submit nothing
    #[arg(long)]
    dry_run: bool,
    /// Further options of `sbatch`, after `--`
    #[arg(last = true)]
    options: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ResourceOptions {
    /// Partition
    #[arg(long)]
    partition: Option<String>,
    /// Time of a task, as Slurm writes it: 30 (minutes), 1:30:00, 2-12
    #[arg(long)]
    time: Option<String>,
    /// Memory of a task: 4G
    #[arg(long)]
    mem: Option<String>,
    /// Cores of a task
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    cpus: u32,
    /// Tasks that run at the same time
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_running: Option<u32>,
    /// Image in which `didact` runs, by `apptainer exec`
    #[arg(long)]
    container: Option<String>,
    /// Script with `{options}` and `{command}` in place of our own
    #[arg(long)]
    template: Option<PathBuf>,
    /// How often a task whose time is over goes back into the queue
    #[arg(long, default_value_t = 3)]
    requeues: u32,
}

impl ResourceOptions {
    fn read(&self, options: &[String]) -> Result<Resources, Diagnostic> {
        let wrong = |what: &str, text: &str, hint: &str| {
            Diagnostic::new(format!("`{text}` is no {what}")).hint(hint.to_string())
        };
        if let Some(time) = self.time.as_ref().filter(|time| slurm::seconds(time).is_none_or(|s| s <= 0.0)) {
            return Err(wrong(
                "time",
                time,
                "minutes, hours:minutes:seconds or days-hours, as `sbatch --time`",
            ));
        }
        if let Some(mem) = self.mem.as_ref().filter(|mem| slurm::memory(mem).is_none()) {
            return Err(wrong("amount of memory", mem, "a number with K, M, G or T, as `sbatch --mem`"));
        }
        let template = self.template.as_ref().map(|path| {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Diagnostic::new(format!("cannot read the template {}: {error}", path.display()))
            })?;
            if text.contains("{command}") && text.contains("{options}") {
                return Ok(text);
            }
            let message = format!("the template {} lacks `{{options}}` or `{{command}}`", path.display());
            Err(Diagnostic::new(message)
                .hint("`{options}` becomes the #SBATCH lines, `{command}` what a task executes"))
        });
        Ok(Resources {
            partition: self.partition.clone(),
            time: self.time.clone(),
            mem: self.mem.clone(),
            cpus: self.cpus as usize,
            max_running: self.max_running.map(|n| n as usize),
            container: self.container.clone(),
            template: template.transpose()?,
            requeues: self.requeues,
            options: options.to_vec(),
        })
    }
}

pub(crate) fn submit(arguments: &SubmitArguments) -> Result<Ending, Diagnostic> {
    let resources = arguments.resources.read(&arguments.options)?;
    let count = arguments.count.count()?;
    let experiment = arguments.target.experiment()?;
    let kept = plan::kept(&experiment, &arguments.target);
    send(&experiment, &arguments.target, &kept, count, &resources, arguments.dry_run)
}

/// Shares out what is missing and submits it.
pub(crate) fn send(
    experiment: &Experiment,
    target: &Target,
    kept: &Kept,
    count: TaskCount,
    resources: &Resources,
    dry_run: bool,
) -> Result<Ending, Diagnostic> {
    let most = slurm::most_tasks();
    if let TaskCount::Tasks(tasks) = count
        && tasks > most
    {
        let message = format!("{tasks} tasks are more than an array may have here ({most}, by MaxArraySize)");
        return Err(Diagnostic::new(message).hint("use fewer tasks: each computes many points"));
    }
    let plan = Plan::new(experiment, &target.asked(resources.cpus, count, most), kept);
    if plan.pieces().next().is_none() {
        say!(
            "{}: nothing is missing; `didact run {}` draws and judges",
            plan.experiment,
            target.file.display()
        );
        return Ok(Ending::Done);
    }
    plan::show(experiment, &plan);
    warn_of_long_tasks(&plan, resources);
    let out = std::path::absolute(&target.out)
        .map_err(|error| Diagnostic::new(format!("no folder {}: {error}", target.out.display())))?;
    if dry_run {
        let path = folder_of(&out, experiment).join("plan-N.json");
        say!("\nscript:\n\n{}", script(&plan, &path, &out, resources)?);
        say!("command: sbatch --parsable {} plan-N.sh", resources.options.join(" "));
        return Ok(Ending::Done);
    }
    let path = plan.write_next(&out)?;
    let submitted = submit_plan(&plan, &path, &out, resources);
    if submitted.is_err() {
        // Nobody will compute it: a plan that stays would look like waiting tasks.
        for file in [path.clone(), path.with_extension("sh")] {
            let _ = std::fs::remove_file(file);
        }
        let _ = std::fs::remove_dir(path.with_extension(""));
        let _ = path.parent().map(std::fs::remove_dir);
    }
    let job = submitted?;
    Submission { job: job.clone(), resources: resources.clone() }.write(&path)?;
    let file = target.file.display();
    say!("submitted job {job}: {} tasks; script and reports are beside {}", plan.tasks.len(), path.display());
    say!("  watch:   didact sweep status {file} --watch");
    say!("  cancel:  scancel {job}");
    say!("  go on:   didact sweep resume {file}      (what is missing or failed)");
    say!("  at last: didact run {file}               (finds all of it, draws and judges)");
    Ok(Ending::Done)
}

fn submit_plan(plan: &Plan, path: &Path, out: &Path, resources: &Resources) -> Result<String, Diagnostic> {
    let unwritable = |place: &Path, error: std::io::Error| {
        Diagnostic::new(format!("cannot write to {}: {error}", place.display()))
    };
    // Slurm does not make the folder of the outputs.
    let folder = path.with_extension("");
    std::fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
    let file = path.with_extension("sh");
    write_atomically(&file, script(plan, path, out, resources)?.as_bytes())
        .map_err(|error| unwritable(&file, error))?;
    slurm::submit(&file, &resources.options)
}

/// Says when tasks are expected to need more than their time.
fn warn_of_long_tasks(plan: &Plan, resources: &Resources) {
    let Some(time) = resources.time.as_deref().and_then(slurm::seconds) else { return };
    let long = (0..plan.tasks.len()).filter(|task| plan.task_seconds(*task) > time).count();
    if long > 0 {
        let longest = (0..plan.tasks.len()).map(|task| plan.task_seconds(task)).fold(0.0, f64::max);
        complain!(
            "warning: {long} of {} tasks are expected to need up to {}, more than their time of {}: they go on after {} requeues at most, then with `didact sweep resume`",
            plan.tasks.len(),
            duration(longest),
            duration(time),
            resources.requeues
        );
    }
}

/// The script of the array.
fn script(plan: &Plan, path: &Path, out: &Path, resources: &Resources) -> Result<String, Diagnostic> {
    let last = plan.tasks.len() - 1;
    let at_a_time = resources.max_running.map_or(String::new(), |most| format!("%{most}"));
    let name: String = plan.experiment.chars().take(40).collect();
    let mut options = vec![
        format!("--job-name=didact-{name}"),
        format!("--array=0-{last}{at_a_time}"),
        format!("--cpus-per-task={}", resources.cpus),
        "--requeue".into(),
        "--open-mode=append".into(),
        format!("--output={}/slurm-%a.out", path.with_extension("").display()),
    ];
    options.extend(resources.partition.as_ref().map(|partition| format!("--partition={partition}")));
    options.extend(resources.time.as_ref().map(|time| format!("--time={time}")));
    options.extend(resources.mem.as_ref().map(|mem| format!("--mem={mem}")));
    let long = resources.time.as_deref().and_then(slurm::seconds).is_none_or(|time| time >= 5.0 * WARNING);
    options.extend(long.then(|| format!("--signal=B:USR1@{WARNING}")));
    let lines: Vec<String> = options.iter().map(|option| format!("#SBATCH {}", directive(option))).collect();
    let mut words: Vec<String> = Vec::new();
    if let Some(image) = &resources.container {
        // The folder of results lies outside of the image.
        let bind = format!("--bind={}", out.display());
        words.extend(["apptainer".into(), "exec".into(), bind, image.clone(), "didact".into()]);
    } else {
        let (program, beginning) = own_program()?;
        words.push(program.display().to_string());
        words.extend(beginning.iter().map(|argument| argument.to_string_lossy().into_owned()));
    }
    words.extend(["sweep", "work", "--plan"].map(String::from));
    words.push(path.display().to_string());
    words.extend(["--out".into(), out.display().to_string()]);
    words.extend(["--requeues".into(), resources.requeues.to_string()]);
    let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    // The shell gives its place to the program, which so gets the signals of Slurm.
    let command = format!("exec {}", command.join(" "));
    let template = resources.template.as_deref().unwrap_or("#!/bin/sh\n{options}\n\n{command}\n");
    Ok(template.replace("{options}", &lines.join("\n")).replace("{command}", &command))
}

/// An option in a line of a script, where `sbatch` reads words as a shell does.
fn directive(option: &str) -> String {
    let Some((name, value)) = option.split_once('=') else { return option.into() };
    if value.contains([' ', '"', '\'', '\\']) {
        format!("{name}=\"{}\"", value.replace('"', "\\\""))
    } else {
        option.into()
    }
}
