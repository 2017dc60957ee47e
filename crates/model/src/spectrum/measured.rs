//! Measured spectra that the program carries: eigenvalues of public image sets (data/spectra/README.md).

use super::Spectrum;
use super::file::{FileError, FileSpectrum, from_bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A data set whose covariance has been measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MeasuredSpectrum {
    /// CIFAR-10, first channel: 1024 pixels of 60 000 images.
    #[serde(rename = "cifar-10")]
    Cifar10,
    /// Fashion-MNIST: 784 pixels of 70 000 images.
    #[serde(rename = "fashion-mnist")]
    FashionMnist,
    /// MNIST: the 713 directions of 784 pixels in which 70 000 images vary.
    #[serde(rename = "mnist")]
    Mnist,
}

impl MeasuredSpectrum {
    /// All of them, by name.
    pub const ALL: [(&str, Self); 3] =
        [("cifar-10", Self::Cifar10), ("fashion-mnist", Self::FashionMnist), ("mnist", Self::Mnist)];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, spectrum)| spectrum)
    }

    fn text(self) -> &'static str {
        match self {
            Self::Cifar10 => include_str!("../../../../data/spectra/cifar-10.csv"),
            Self::FashionMnist => include_str!("../../../../data/spectra/fashion-mnist.csv"),
            Self::Mnist => include_str!("../../../../data/spectra/mnist.csv"),
        }
    }

    /// Its eigenvalues, of mean 1, read as a file of the user is.
    pub fn read(self) -> Result<FileSpectrum, FileError> {
        let found = from_bytes(self.text().as_bytes())?;
        Ok(FileSpectrum { spectrum: found.spectrum.normalised(), ..found })
    }

    /// The same without the numbers about the file.
    pub fn spectrum(self) -> Result<Spectrum, FileError> {
        self.read().map(|found| found.spectrum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_spectra_are_whole_decay_and_say_where_they_are_from() {
        for ((name, spectrum), count) in MeasuredSpectrum::ALL.into_iter().zip([1024, 784, 713]) {
            let found = spectrum.read().unwrap();
            assert_eq!((found.dimension, found.dropped), (count, 0), "{name}");
            assert!((found.spectrum.moment(1) - 1.0).abs() < 1e-12, "{name}");
            // Rounding to six digits leaves the mean of the file at 1 to that accuracy.
            let raw = from_bytes(spectrum.text().as_bytes()).unwrap();
            assert!((raw.spectrum.moment(1) - 1.0).abs() < 1e-6, "{name}");
            let values = found.spectrum.eigenvalues();
            assert!(values.windows(2).all(|pair| pair[0] > pair[1]), "{name}");
            assert!(spectrum.text().contains("sha256 ") && spectrum.text().contains("package "), "{name}");
            assert_eq!(MeasuredSpectrum::named(name), Some(spectrum));
        }
        assert_eq!(MeasuredSpectrum::named("cifar"), None);
    }
}
