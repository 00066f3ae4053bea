//! The functions between the matrix products: layer norm, softmax and GELU.

use ndarray::{Array1, Array2, ArrayViewMut1, Axis};

/// Layer normalisation: normalises each row to mean 0 and variance 1, then applies the learned gain and shift.
pub(super) struct Norm {
    pub(super) gain: Array1<f32>,
    pub(super) shift: Array1<f32>,
    pub(super) epsilon: f32,
}

impl Norm {
    pub(super) fn apply(&self, rows: &mut Array2<f32>) {
        for mut row in rows.axis_iter_mut(Axis(0)) {
            let count = row.len() as f32;
            let mean = row.sum() / count;
            row -= mean;
            let variance = row.iter().map(|number| number * number).sum::<f32>() / count;
            row *= 1.0 / (variance + self.epsilon).sqrt();
            row *= &self.gain;
            row += &self.shift;
        }
    }
}

/// Normalises a row to positive values that sum to one.
pub(super) fn softmax(mut row: ArrayViewMut1<'_, f32>) {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.mapv_inplace(|number| (number - max).exp());
    let sum = row.sum();
    row /= sum;
}

/// GELU: a number times the standard normal distribution function at it.
pub(super) fn gelu(number: f32) -> f32 {
    0.5 * number * (1.0 + error_function(number * std::f32::consts::FRAC_1_SQRT_2))
}

/// Formula 7.1.26 of Abramowitz and Stegun, accurate to 1.5e-7, about the precision of `f32`.
fn error_function(number: f32) -> f32 {
    const TERMS: [f32; 5] = [1.061_405_4, -1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6];
    let size = number.abs();
    let step = 1.0 / (1.0 + 0.327_591_1 * size);
    let sum = TERMS.iter().fold(0.0, |sum, term| (sum + term) * step);
    (1.0 - sum * (-size * size).exp()).copysign(number)
}

#[cfg(test)]
mod tests {
    use super::gelu;

    #[test]
    fn gelu_matches_reference_values() {
        for (number, expected) in
            [(0.0, 0.0), (1.0, 0.841_344_7), (-1.0, -0.158_655_25), (3.0, 2.995_950_3), (-0.5, -0.154_268_77)]
        {
            assert!((gelu(number) - expected).abs() < 1e-6, "{number}: {}", gelu(number));
        }
        assert_eq!((gelu(40.0), gelu(-40.0)), (40.0, -0.0));
    }
}
