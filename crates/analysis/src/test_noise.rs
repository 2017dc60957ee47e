//! Deterministic random numbers for the tests of this crate.

/// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014): a Weyl sequence and a mixing function.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform on (0, 1].
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.draw() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Box-Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// `points` numbers from `first` to `last`, equally spaced in their logarithm.
pub(crate) fn log_grid(first: f64, last: f64, points: usize) -> Vec<f64> {
    let step = (last / first).ln() / (points - 1) as f64;
    let mut grid: Vec<f64> = (0..points).map(|i| first * (step * i as f64).exp()).collect();
    grid[points - 1] = last;
    grid
}

#[test]
fn the_generator_gives_its_published_numbers() {
    // First outputs for seed 1234567 of the reference implementation.
    let mut noise = Noise::new(1234567);
    assert_eq!(noise.draw(), 6457827717110365317);
    assert_eq!(noise.draw(), 3203168211198807973);
    assert_eq!(noise.draw(), 9817491932198370423);
}
