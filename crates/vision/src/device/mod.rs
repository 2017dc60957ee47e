//! What a device can do: the operations of which training is made, each over all models at once.
//!
//! A network here is many networks of one shape that are trained side by side: the first axis of every array counts models
//! (seeds, or seeds times checkpoints), so that a step of all of them costs as many launches as a step of one.
//! Arrays are flat, their last index runs fastest. [`Cpu`] is plain Rust, in `f32` or, for the checks of gradients, in
//! `f64`; `Cuda` (feature `cuda`) is an NVIDIA GPU. Each computes the same operations in the same order of arguments, and
//! `didact-vision check-device` compares them.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod product;

pub use cpu::Cpu;
#[cfg(feature = "cuda")]
pub use cuda::Cuda;

/// Something that a device could not do: its memory is too small, its libraries are not there, a launch failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// What an operation answers.
pub type Done = Result<(), DeviceError>;

/// An index that stands for no image: the row is computed and counts nowhere.
pub const PADDING: u32 = u32::MAX;

/// How one operand of a product lies in its buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// First number.
    pub offset: usize,
    /// Numbers from one stored row to the next.
    pub row_stride: usize,
    /// Numbers from one matrix of the batch to the next.
    pub batch_stride: usize,
    /// Whether the stored matrix is the transpose of the operand.
    pub transposed: bool,
}

impl Operand {
    /// Stored rows of this length without gaps, `rows` of them per matrix.
    pub fn dense(rows: usize, columns: usize) -> Self {
        Self { offset: 0, row_stride: columns, batch_stride: rows * columns, transposed: false }
    }

    /// The same, read as its transpose.
    pub fn transposed(self) -> Self {
        Self { transposed: !self.transposed, ..self }
    }

    /// The same, later in the buffer.
    pub fn at(self, offset: usize) -> Self {
        Self { offset: self.offset + offset, ..self }
    }
}

/// A batch of products C ← scale A B (+ C), with A of m × k and B of k × n.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Product {
    /// How many.
    pub batches: usize,
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Length of the sums.
    pub k: usize,
    /// A.
    pub a: Operand,
    /// B.
    pub b: Operand,
    /// C; never transposed.
    pub c: Operand,
    /// Factor of A B.
    pub scale: f64,
    /// Whether C is added to, rather than replaced.
    pub accumulate: bool,
}

/// Lengths of an array that is normalised, or summed, per model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowBlock {
    /// Models.
    pub models: usize,
    /// Rows per model.
    pub rows: usize,
    /// Numbers per row.
    pub columns: usize,
}

impl RowBlock {
    /// Numbers in all.
    pub fn len(self) -> usize {
        self.models * self.rows * self.columns
    }

    /// Whether there is nothing.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Lengths of queries, keys and values: `sequences` of `tokens`, each token with `parts` (3, or 1 for the output) of `heads` heads of
/// `width` numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heads {
    /// Images of all models.
    pub sequences: usize,
    /// Patches per image.
    pub tokens: usize,
    /// Parts beside each other in a row.
    pub parts: usize,
    /// Heads.
    pub heads: usize,
    /// Numbers per head.
    pub width: usize,
}

impl Heads {
    /// Numbers in all.
    pub fn len(self) -> usize {
        self.sequences * self.tokens * self.parts * self.heads * self.width
    }

    /// Whether there is nothing.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// How images become rows of patches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patches {
    /// Images to be taken.
    pub count: usize,
    /// Colours.
    pub channels: usize,
    /// Pixels along each side.
    pub side: usize,
    /// Pixels along each side of a patch; divides `side`.
    pub patch: usize,
    /// Subtracted from pixels of 0 to 1, per colour.
    pub mean: [f32; 3],
    /// By which they are divided then.
    pub deviation: [f32; 3],
}

impl Patches {
    /// Patches per image.
    pub fn tokens(&self) -> usize {
        (self.side / self.patch).pow(2)
    }

    /// Numbers per patch.
    pub fn width(&self) -> usize {
        self.channels * self.patch * self.patch
    }
}

/// The numbers of one step of AdamW (I. Loshchilov and F. Hutter, 2019, with the bias correction of Adam).
///
///   θ ← θ − rate decay θ,   m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²,
///   θ ← θ − rate (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    /// Learning rate of this step.
    pub rate: f64,
    /// Weight decay.
    pub decay: f64,
    /// β₁.
    pub first: f64,
    /// β₂.
    pub second: f64,
    /// ε.
    pub epsilon: f64,
    /// t, counted from 1.
    pub step: u64,
}

/// ε of layer normalisation, as PyTorch has it.
pub const NORM_EPSILON: f64 = 1e-5;

/// The operations of training.
///
/// A pair of a buffer and a number is a buffer from this number on. Unless it is said that an operation adds, it replaces.
pub trait Device {
    /// An array of numbers.
    type Buffer;
    /// An array of pixels.
    type Bytes;
    /// An array of whole numbers: labels, or indices of images.
    type Words;

    /// What it is, in words.
    fn name(&self) -> String;

    /// An array of zeros.
    fn zeros(&self, length: usize) -> Result<Self::Buffer, DeviceError>;
    /// An array of these numbers.
    fn upload(&self, values: &[f64]) -> Result<Self::Buffer, DeviceError>;
    /// The numbers of an array.
    fn download(&self, buffer: &Self::Buffer) -> Result<Vec<f64>, DeviceError>;
    /// An array of pixels.
    fn upload_bytes(&self, values: &[u8]) -> Result<Self::Bytes, DeviceError>;
    /// An array of whole numbers.
    fn upload_words(&self, values: &[u32]) -> Result<Self::Words, DeviceError>;
    /// Waits for all that was asked for.
    fn wait(&self) -> Done;

    /// Sets every number to zero.
    fn clear(&self, buffer: &mut Self::Buffer) -> Done;
    /// C ← scale A B (+ C), for every matrix of the batch.
    fn product(&self, product: &Product, a: &Self::Buffer, b: &Self::Buffer, c: &mut Self::Buffer) -> Done;
    /// y ← y + x over `length` numbers from the first on.
    fn add(&self, length: usize, x: &Self::Buffer, y: &mut Self::Buffer) -> Done;
    /// y ← x over `length` numbers from the first on.
    fn copy(&self, length: usize, x: &Self::Buffer, y: &mut Self::Buffer) -> Done;
    /// Adds to each row of a model a row of this model: y[m, r, c] ← y[m, r, c] + bias[m, c].
    fn add_row(&self, rows: RowBlock, bias: (&Self::Buffer, usize), y: &mut Self::Buffer) -> Done;
    /// Adds the sum over the rows of each model: out[m, c] ← out[m, c] + Σ_r x[m, r, c].
    fn sum_rows(&self, rows: RowBlock, x: &Self::Buffer, out: (&mut Self::Buffer, usize)) -> Done;

    /// Layer normalisation of every row, with a scale and a shift per model, which lie one after the other from `affine` on
    /// (all scales of all models, then all shifts). `moments` keeps mean and inverse deviation of every row.
    fn normalise(
        &self,
        rows: RowBlock,
        x: &Self::Buffer,
        affine: (&Self::Buffer, usize),
        y: &mut Self::Buffer,
        moments: &mut Self::Buffer,
    ) -> Done;
    /// Adds the derivative with respect to x to `dx`.
    fn normalise_backward(
        &self,
        rows: RowBlock,
        x_and_moments: (&Self::Buffer, &Self::Buffer),
        affine: (&Self::Buffer, usize),
        dy: &Self::Buffer,
        dx: &mut Self::Buffer,
    ) -> Done;
    /// Adds the derivatives with respect to scales and shifts.
    fn normalise_affine(
        &self,
        rows: RowBlock,
        x_and_moments: (&Self::Buffer, &Self::Buffer),
        dy: &Self::Buffer,
        daffine: (&mut Self::Buffer, usize),
    ) -> Done;

    /// y = x Φ(x), with Φ the normal distribution function.
    fn gelu(&self, length: usize, x: &Self::Buffer, y: &mut Self::Buffer) -> Done;
    /// dy ← dy d(x Φ(x))/dx.
    fn gelu_backward(&self, length: usize, x: &Self::Buffer, dy: &mut Self::Buffer) -> Done;
    /// x ← softmax(scale x) of every row.
    fn softmax(&self, rows: usize, columns: usize, scale: f64, x: &mut Self::Buffer) -> Done;
    /// dp ← scale p (dp − Σ p dp), of every row: the derivative with respect to what the softmax was of.
    fn softmax_backward(
        &self,
        rows: usize,
        columns: usize,
        scale: f64,
        p: &Self::Buffer,
        dp: &mut Self::Buffer,
    ) -> Done;

    /// From rows of tokens to one array per part: out(part)(sequence)(head)(token)(i) = x(sequence)(token)(part)(head)(i).
    fn split_heads(&self, heads: Heads, x: &Self::Buffer, out: &mut Self::Buffer) -> Done;
    /// The way back.
    fn merge_heads(&self, heads: Heads, x: &Self::Buffer, out: &mut Self::Buffer) -> Done;
    /// The mean over the rows of each sequence: out[s, c] = Σ_t x[s, t, c] / T, with `models` the sequences and `rows` their tokens.
    fn mean_rows(&self, rows: RowBlock, x: &Self::Buffer, out: &mut Self::Buffer) -> Done;
    /// The way back: dx[s, t, c] = dout[s, c] / T.
    fn mean_rows_backward(&self, rows: RowBlock, dout: &Self::Buffer, dx: &mut Self::Buffer) -> Done;

    /// Patches of images: those of `indices` from a place on, one row of colours × pixels per patch.
    fn patches(
        &self,
        patches: &Patches,
        images: &Self::Bytes,
        indices: (&Self::Words, usize),
        out: &mut Self::Buffer,
    ) -> Done;
    /// Loss and correctness of every row of logits (`scores`: two numbers per row), and `dlogits` = scale (softmax − label). The label of row r
    /// is that of the image `indices[r]`; a row of padding scores zero and has no gradient.
    fn cross_entropy(
        &self,
        rows_classes_scale: (usize, usize, f64),
        logits: &Self::Buffer,
        labels_and_indices: (&Self::Words, (&Self::Words, usize)),
        dlogits: &mut Self::Buffer,
        scores: &mut Self::Buffer,
    ) -> Done;

    /// One step of AdamW; the first `length` numbers of every array.
    fn adamw(
        &self,
        step: &AdamW,
        length: usize,
        gradient: &Self::Buffer,
        moments: (&mut Self::Buffer, &mut Self::Buffer),
        parameters: &mut Self::Buffer,
    ) -> Done;
}
