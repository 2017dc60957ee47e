//! Images that are made by a seeded program: shifted copies, the stand-in for SVHN, and small pictures for the demo.

use super::Images;
use crate::train::lanes::PICTURES;
use didact_math::random::{RngAddress, Stream};
use std::f64::consts::PI;

fn stream(seed: u64, image: usize, use_of: u32) -> Stream {
    Stream::at(RngAddress { seed, replica: use_of, step: image as u64, lane: PICTURES })
}

/// Between four pixels, zero outside.
fn between(image: &[u8], side: usize, y: f64, x: f64) -> f64 {
    let (top, left) = (y.floor(), x.floor());
    let pixel = |row: f64, column: f64| {
        let inside = row >= 0.0 && column >= 0.0 && row < side as f64 && column < side as f64;
        if inside { f64::from(image[row as usize * side + column as usize]) } else { 0.0 }
    };
    let (down, right) = (y - top, x - left);
    (1.0 - down) * ((1.0 - right) * pixel(top, left) + right * pixel(top, left + 1.0))
        + down * ((1.0 - right) * pixel(top + 1.0, left) + right * pixel(top + 1.0, left + 1.0))
}

/// The shifted task: every image rotated by an angle about its centre, plus normal noise of a deviation (pixels from 0 to 1), cut to 0 to 1 and
/// rounded to eight bits. Neither cutting nor rounding is printed in the paper.
pub fn shifted(of: &Images, degrees: f64, deviation: f64, seed: u64) -> Images {
    let (sin, cos) = (degrees * PI / 180.0).sin_cos();
    let (side, centre) = (of.side, 0.5 * (of.side as f64 - 1.0));
    let mut out = Images { name: format!("{}, shifted", of.name), ..of.empty() };
    out.labels.clone_from(&of.labels);
    for index in 0..of.len() {
        let noise = &mut stream(seed, index, 1);
        for image in of.image(index).chunks_exact(side * side) {
            for pixel in 0..side * side {
                let (y, x) = ((pixel / side) as f64 - centre, (pixel % side) as f64 - centre);
                let turned = between(image, side, cos * y - sin * x + centre, sin * y + cos * x + centre);
                let value = turned + 255.0 * deviation * noise.normal();
                out.pixels.push(value.round().clamp(0.0, 255.0) as u8);
            }
        }
    }
    out
}

/// The stand-in for SVHN: digits in a colour of their own, blended onto a picture of another set (Y. Ganin et al., 2016, blend MNIST onto
/// photographs in a similar way): each colour is (1 − m) p + m q, with m the digit as 0 to 1, p the picture at half its
/// contrast about grey and q a colour that differs from grey.
pub fn coloured_digits(digits: &Images, pictures: &Images, seed: u64) -> Result<Images, String> {
    if digits.channels != 1 || pictures.channels != 3 || digits.side > pictures.side {
        return Err("digits of one colour are blended onto larger pictures of three".into());
    }
    let (side, small) = (pictures.side, digits.side);
    let mut out = Images {
        name: format!("coloured digits ({} on {})", digits.name, pictures.name),
        classes: digits.classes,
        ..pictures.empty()
    };
    out.labels.clone_from(&digits.labels);
    for index in 0..digits.len() {
        let random = &mut stream(seed, index, 2);
        let picture = pictures.image(random.below(pictures.len() as u64) as usize);
        let room = (side - small + 1) as u64;
        let (top, left) = (random.below(room) as usize, random.below(room) as usize);
        let colour: Vec<f64> = (0..3)
            .map(|_| {
                let far = 60.0 + 67.0 * random.uniform();
                127.5 + random.sign() * far
            })
            .collect();
        let digit = digits.image(index);
        for (channel, colour) in colour.iter().enumerate() {
            for pixel in 0..side * side {
                let (y, x) = (pixel / side, pixel % side);
                let inside = (top..top + small).contains(&y) && (left..left + small).contains(&x);
                let ink = if inside { f64::from(digit[(y - top) * small + x - left]) / 255.0 } else { 0.0 };
                let ground = 127.5 + 0.5 * (f64::from(picture[channel * side * side + pixel]) - 127.5);
                out.pixels.push(((1.0 - ink) * ground + ink * colour).round() as u8);
            }
        }
    }
    Ok(out)
}

/// Small pictures for the demo and the tests: the class is the direction of stripes, with a random phase, and noise of this deviation in
/// steps of 255.
pub fn stripes(
    count: usize,
    (classes, side): (usize, usize),
    (turn, noise): (f64, f64),
    seed: u64,
) -> Images {
    let mut out = Images { name: "stripes".into(), channels: 1, side, classes, ..Images::default() };
    for index in 0..count {
        let random = &mut stream(seed, index, 3);
        let label = random.below(classes as u64);
        let angle = PI * (label as f64 + turn) / classes as f64;
        let (sin, cos) = angle.sin_cos();
        let phase = 2.0 * PI * random.uniform();
        for pixel in 0..side * side {
            let (y, x) = ((pixel / side) as f64, (pixel % side) as f64);
            let wave = (2.0 * PI * (x * cos + y * sin) / 5.0 + phase).sin();
            let value = 127.5 + 60.0 * wave + noise * random.normal();
            out.pixels.push(value.round().clamp(0.0, 255.0) as u8);
        }
        out.labels.push(label as u32);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_by_a_quarter_turns_the_image_and_noise_has_its_deviation() {
        let mut one = stripes(1, (2, 5), (0.0, 45.0), 3);
        one.pixels = (0..25).map(|i| 10 * i).collect();
        let turned = shifted(&one, 90.0, 0.0, 1);
        // The image at (y, x) is that at (−x, y) about the centre: the first row comes from a column.
        assert_eq!(&turned.pixels[..5], [200, 150, 100, 50, 0]);
        let grey = Images { pixels: vec![128; 64 * 64], side: 64, ..one };
        let noisy = shifted(&grey, 0.0, 0.2, 1);
        let mean = noisy.pixels.iter().map(|p| f64::from(*p)).sum::<f64>() / 4096.0;
        let variance = noisy.pixels.iter().map(|p| (f64::from(*p) - mean).powi(2)).sum::<f64>() / 4096.0;
        // Deviation 51 of 4096 numbers: standard error 0.8 of the mean; the tails beyond 0 and 255 (2.5 deviations) are cut.
        assert!(
            (mean - 128.0).abs() < 4.0 && (variance.sqrt() - 50.5).abs() < 3.0,
            "{mean} {}",
            variance.sqrt()
        );
    }

    #[test]
    fn coloured_digits_have_the_digit_where_there_is_ink_and_the_picture_elsewhere() {
        let digits = Images {
            channels: 1,
            side: 2,
            classes: 2,
            pixels: vec![255, 0, 0, 255],
            labels: vec![1],
            name: "d".into(),
        };
        let pictures = Images {
            channels: 3,
            side: 2,
            classes: 10,
            pixels: vec![27; 12],
            labels: vec![4],
            name: "p".into(),
        };
        let made = coloured_digits(&digits, &pictures, 1).unwrap();
        assert_eq!(made.labels, [1]);
        for colour in made.pixels.as_chunks::<4>().0 {
            assert_eq!((colour[1], colour[2]), (77, 77));
            assert!((f64::from(colour[0]) - 127.5).abs() > 59.0 && colour[0] == colour[3]);
        }
        assert_eq!(coloured_digits(&digits, &pictures, 1).unwrap(), made);
        assert!(coloured_digits(&pictures, &digits, 1).is_err());
    }
}
