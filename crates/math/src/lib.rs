//! Numerical mathematics for the theory of learning: the bottom layer of didact, which knows nothing about networks.
//!
//! | question | module |
//! |---|---|
//! | What is the average of a function of Gaussian variables? | [`gauss`] |
//! | How is an activation evaluated, differentiated and expanded in Hermite polynomials? | [`activation`] |
//! | How is a formula from a description file parsed, evaluated and differentiated? | [`expression`] |
//! | How does the solution of y' = f(t, y) evolve, and when does an event happen? | [`ode`] |
//! | Which random numbers does a replica use, and does a sample have a given law? | [`random`] |
//! | What is the limiting spectrum of a random matrix, and where are its outliers? | [`spectra`] |
//! | How are small dense matrices factorised? | [`linalg`] |
//! | Where is a root or a minimum of a function of one variable? | [`roots`] |
//! | Where is a minimum of a function of many variables in a box? | [`minimise`] |
//! | Which line or power law fits a set of points, with which standard error? | [`fits`] |
//! | What is the value of an incomplete gamma integral or of the zeta function? | [`special`] |
//! | How are elementary functions of many numbers computed fast and reproducibly? | [`simd`], [`memory`] |
//!
//! # Example
//!
//! Gradient flow of one linear unit, w' = w* − w with w* = 1, and the time at which the loss (w* − w)²/2 falls below 0.01.
//! The solution is w = 1 − e^{−t}, so the time is ln(1/√0.02).
//!
//! ```
//! use didact_math::ode::{Direction, FieldFn, OdeEvent, Options, Stop, solve};
//!
//! let mut flow = FieldFn::new(1, |_time, w: &[f64], out: &mut [f64]| out[0] = 1.0 - w[0]);
//! let learned = OdeEvent::new("learned", |_time, w: &[f64]| 0.5 * (1.0 - w[0]).powi(2) - 0.01)
//!     .direction(Direction::Falling)
//!     .terminal();
//! let solution = solve(&mut flow, 0.0, &[0.0], 100.0, &[1.0], &[learned], &Options::default())?;
//! assert!((solution.states[0][0] - (1.0 - (-1.0_f64).exp())).abs() < 1e-8);
//! let Stop::Event { time, .. } = solution.report.stop else { panic!("{}", solution.report) };
//! assert!((time - 0.02_f64.sqrt().recip().ln()).abs() < 1e-7);
//! # Ok::<(), didact_math::ode::OdeError>(())
//! ```

pub mod activation;
pub mod expression;
pub mod fits;
pub mod gauss;
pub mod linalg;
pub mod memory;
pub mod minimise;
pub mod ode;
pub mod random;
pub mod roots;
pub mod simd;
pub mod special;
pub mod spectra;
