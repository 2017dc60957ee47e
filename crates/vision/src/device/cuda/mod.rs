//! An NVIDIA GPU: products by cuBLAS with factors rounded to TF32 (10 bits after the first) and sums in single precision, everything else by
//! the kernels of `kernels.cu`, which NVRTC compiles when the device is opened.
//!
//! Driver, NVRTC and cuBLAS are looked for when the program runs, so that it builds without them.

use super::{AdamW, Device, DeviceError, Done, Heads, NORM_EPSILON, Operand, Patches, Product, RowBlock};
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig, StridedBatchedConfig, sys};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg, sys as driver,
};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The source of all kernels.
pub const KERNELS: &str = include_str!("kernels.cu");

/// Names of the kernels.
const NAMES: [&str; 20] = [
    "add",
    "add_row",
    "add_row4",
    "sum_rows",
    "sum_affine",
    "sum_chunks",
    "sum_parts",
    "normalise",
    "normalise_backward",
    "gelu",
    "gelu_backward",
    "softmax",
    "softmax_backward",
    "move_heads",
    "move_heads4",
    "mean_rows",
    "mean_rows_backward",
    "patches",
    "cross_entropy",
    "adamw",
];

/// Threads of a block.
const THREADS: u32 = 256;
/// Rows are summed in at most so many parts at once.
const CHUNKS: usize = 64;
/// Products whose sums are at least this long, and whose results are small, are done in parts: else most of the GPU waits.
const LONG_SUM: usize = 2048;
/// So many tiles of a result keep the GPU busy; an H200 has 132 multiprocessors.
const BUSY: usize = 264;
/// Numbers along the sides of a tile.
const TILE: usize = 128;

/// One GPU.
pub struct Cuda {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    blas: CudaBlas,
    kernels: BTreeMap<&'static str, CudaFunction>,
    /// Sums of parts of rows.
    partial: RefCell<CudaSlice<f32>>,
}

fn failed(error: impl std::fmt::Debug) -> DeviceError {
    DeviceError(format!("the GPU failed: {error:?}"))
}

/// A size as a kernel takes it.
fn int(value: usize) -> Result<i32, DeviceError> {
    i32::try_from(value).map_err(|_| {
        DeviceError(format!("{value} numbers are too many for one array\n\nhint: use fewer models"))
    })
}

/// Compiles the kernels for an architecture such as `sm_90`; what the compiler says otherwise.
pub fn compile(architecture: &'static str) -> Result<cudarc::nvrtc::Ptx, DeviceError> {
    // SAFETY: it looks for a library by name and calls nothing in it.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Err(DeviceError(
            "no NVRTC\n\nhint: install a CUDA toolkit, or put libnvrtc.so into LD_LIBRARY_PATH".into(),
        ));
    }
    let options = CompileOptions { arch: Some(architecture), ..CompileOptions::default() };
    compile_ptx_with_opts(KERNELS, options)
        .map_err(|e| DeviceError(format!("the kernels do not compile: {e:?}")))
}

/// One thread per number.
fn elements(count: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (count.div_ceil(THREADS as usize) as u32, 1, 1),
        block_dim: (THREADS, 1, 1),
        shared_mem_bytes: 0,
    }
}

/// One warp per row.
fn warps(rows: usize) -> LaunchConfig {
    elements(32 * rows)
}

/// Launches a kernel with its arguments in their order.
macro_rules! launch {
    ($device:expr, $name:literal, $shape:expr, $($argument:expr),* $(,)?) => {{
        let mut launch = $device.stream.launch_builder(&$device.kernels[$name]);
        // A name keeps what is made for the call until it is over.
        $(
            let argument = &$argument;
            launch.arg(argument);
        )*
        // SAFETY: the arguments are those of the kernel of this name, in their order and types, and the buffers hold what it reads and
        // writes: sizes are those of the same call. `didact-vision check-device` runs every kernel.
        unsafe { launch.launch($shape) }.map(|_| ()).map_err(failed)
    }};
}

impl Cuda {
    /// The first GPU.
    pub fn new() -> Result<Self, DeviceError> {
        // SAFETY: it looks for a library by name and calls nothing in it.
        if !unsafe { driver::is_culib_present() } {
            return Err(DeviceError(
                "there is no NVIDIA driver on this machine\n\nhint: use `--device cpu`".into(),
            ));
        }
        let context = CudaContext::new(0).map_err(failed)?;
        // SAFETY: all work is on one stream, which keeps its order.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed)?;
        let (major, minor) = context.compute_capability().map_err(failed)?;
        let architecture: &'static str = match (major, minor) {
            (8, 0) => "compute_80",
            (8, _) => "compute_86",
            (9, _) => "compute_90",
            (10.., _) => "compute_100",
            _ => "compute_75",
        };
        let module = context.load_module(compile(architecture)?).map_err(failed)?;
        let mut kernels = BTreeMap::new();
        for name in NAMES {
            kernels.insert(name, module.load_function(name).map_err(failed)?);
        }
        let blas = CudaBlas::new(stream.clone()).map_err(failed)?;
        // SAFETY: the handle is that of `blas`, which lives.
        let set =
            unsafe { sys::cublasSetMathMode(*blas.handle(), sys::cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH) };
        set.result().map_err(failed)?;
        let partial = RefCell::new(stream.alloc_zeros(1 << 16).map_err(failed)?);
        Ok(Self { context, stream, blas, kernels, partial })
    }

    /// The second part of a sum over rows: what the chunks gave is added to `out` from a number on.
    fn sum_up(
        &self,
        rows: RowBlock,
        (out, offset): (&mut CudaSlice<f32>, usize),
        first: impl FnOnce(LaunchConfig, i32, &mut CudaSlice<f32>) -> Done,
    ) -> Done {
        let chunk = rows.rows.div_ceil(CHUNKS).max(64);
        let chunks = rows.rows.div_ceil(chunk);
        let n = rows.models * rows.columns;
        let mut partial = self.partial.borrow_mut();
        if partial.len() < chunks * n {
            *partial = self.stream.alloc_zeros(chunks * n).map_err(failed)?;
        }
        let shape = LaunchConfig {
            grid_dim: (rows.columns.div_ceil(32) as u32, chunks as u32, rows.models as u32),
            block_dim: (32, 8, 1),
            shared_mem_bytes: 0,
        };
        first(shape, int(chunk)?, &mut partial)?;
        let out = out.slice(offset..offset + n);
        launch!(self, "sum_chunks", elements(n), int(n)?, int(chunks)?, *partial, out)
    }

    fn move_heads(&self, h: Heads, split: i32, x: &CudaSlice<f32>, out: &mut CudaSlice<f32>) -> Done {
        let sizes = [h.sequences, h.tokens, h.parts, h.heads, h.width];
        let [s, t, p, heads, width] = sizes.map(|n| n as i32);
        let n = h.len();
        if h.width.is_multiple_of(4) {
            let (n, width) = (n / 4, width / 4);
            launch!(self, "move_heads4", elements(n), int(n)?, s, t, p, heads, width, split, *x, *out)
        } else {
            launch!(self, "move_heads", elements(n), int(n)?, s, t, p, heads, width, split, *x, *out)
        }
    }

    /// Aᵀ B of many rows in parts, each part a batch of its own, whose sum is added to C.
    fn product_in_parts(
        &self,
        p: &Product,
        parts: usize,
        (a, b, c): (&CudaSlice<f32>, &CudaSlice<f32>, &mut CudaSlice<f32>),
    ) -> Done {
        let (k, size) = (p.k / parts, p.m * p.n);
        let part = |operand: Operand| Operand { batch_stride: k * operand.row_stride, ..operand };
        let c_of_parts = Operand::dense(p.m, p.n);
        let in_parts = Product {
            batches: p.batches * parts,
            k,
            a: part(p.a),
            b: part(p.b),
            c: c_of_parts,
            accumulate: false,
            ..*p
        };
        let mut partial = self.partial.borrow_mut();
        if partial.len() < in_parts.batches * size {
            *partial = self.stream.alloc_zeros(in_parts.batches * size).map_err(failed)?;
        }
        self.gemm(&in_parts, a, b, &mut partial)?;
        let (n, out, stride) = (p.batches * size, c.slice(p.c.offset..), int(p.c.batch_stride)?);
        launch!(self, "sum_parts", elements(n), int(n)?, int(size)?, int(parts)?, stride, *partial, out)
    }

    fn gemm(&self, p: &Product, a: &CudaSlice<f32>, b: &CudaSlice<f32>, c: &mut CudaSlice<f32>) -> Done {
        // cuBLAS counts along columns: row by row, Cᵀ = Bᵀ Aᵀ.
        let gemm = GemmConfig {
            transa: operation(p.b),
            transb: operation(p.a),
            m: int(p.n)?,
            n: int(p.m)?,
            k: int(p.k)?,
            alpha: p.scale as f32,
            lda: int(p.b.row_stride)?,
            ldb: int(p.a.row_stride)?,
            beta: if p.accumulate { 1.0 } else { 0.0 },
            ldc: int(p.c.row_stride)?,
        };
        let config = StridedBatchedConfig {
            gemm,
            batch_size: int(p.batches)?,
            stride_a: p.b.batch_stride as i64,
            stride_b: p.a.batch_stride as i64,
            stride_c: p.c.batch_stride as i64,
        };
        let (a, b) = (a.slice(p.a.offset..), b.slice(p.b.offset..));
        let mut c = c.slice_mut(p.c.offset..);
        // SAFETY: strides and lengths are those of the arrays, as on the processor, which checks them by its slices.
        unsafe { self.blas.gemm_strided_batched(config, &b, &a, &mut c) }.map_err(failed)
    }
}

fn operation(operand: Operand) -> sys::cublasOperation_t {
    if operand.transposed { sys::cublasOperation_t::CUBLAS_OP_T } else { sys::cublasOperation_t::CUBLAS_OP_N }
}

/// In how many parts the sums of a product are done: 1 unless it is Aᵀ B of dense arrays, added to C, with long sums and a small result.
fn parts(p: &Product) -> usize {
    let dense = |operand: Operand| operand.batch_stride == p.k * operand.row_stride;
    let rows_are_summed = p.a.transposed && !p.b.transposed && dense(p.a) && dense(p.b);
    if !(p.accumulate && rows_are_summed && p.c.row_stride == p.n && p.k >= LONG_SUM) {
        return 1;
    }
    let tiles = p.batches * p.m.div_ceil(TILE) * p.n.div_ceil(TILE);
    let fits = |parts: &usize| p.k.is_multiple_of(4 * parts) && p.k / parts >= LONG_SUM / 8;
    (1..=64).filter(fits).find(|parts| parts * tiles >= BUSY).or_else(|| (1..=64).rfind(fits)).unwrap_or(1)
}

impl Device for Cuda {
    type Buffer = CudaSlice<f32>;
    type Bytes = CudaSlice<u8>;
    type Words = CudaSlice<u32>;

    fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "an NVIDIA GPU".into())
    }

    fn zeros(&self, length: usize) -> Result<CudaSlice<f32>, DeviceError> {
        self.stream.alloc_zeros(length.max(1)).map_err(|e| {
            DeviceError(format!("no {} MB on the GPU: {e:?}\n\nhint: use fewer seeds", length >> 18))
        })
    }

    fn upload(&self, values: &[f64]) -> Result<CudaSlice<f32>, DeviceError> {
        let single: Vec<f32> = values.iter().map(|v| *v as f32).collect();
        if single.is_empty() { self.zeros(1) } else { self.stream.clone_htod(&single).map_err(failed) }
    }

    fn download(&self, buffer: &CudaSlice<f32>) -> Result<Vec<f64>, DeviceError> {
        let single = self.stream.clone_dtoh(buffer).map_err(failed)?;
        self.wait()?;
        Ok(single.into_iter().map(f64::from).collect())
    }

    fn upload_bytes(&self, values: &[u8]) -> Result<CudaSlice<u8>, DeviceError> {
        self.stream.clone_htod(values).map_err(failed)
    }

    fn upload_words(&self, values: &[u32]) -> Result<CudaSlice<u32>, DeviceError> {
        self.stream.clone_htod(values).map_err(failed)
    }

    fn wait(&self) -> Done {
        self.stream.synchronize().map_err(failed)
    }

    fn clear(&self, buffer: &mut CudaSlice<f32>) -> Done {
        self.stream.memset_zeros(buffer).map_err(failed)
    }

    fn product(&self, p: &Product, a: &CudaSlice<f32>, b: &CudaSlice<f32>, c: &mut CudaSlice<f32>) -> Done {
        match parts(p) {
            1 => self.gemm(p, a, b, c),
            parts => self.product_in_parts(p, parts, (a, b, c)),
        }
    }

    fn add(&self, length: usize, x: &CudaSlice<f32>, y: &mut CudaSlice<f32>) -> Done {
        launch!(self, "add", elements(length), int(length)?, *x, *y)
    }

    fn copy(&self, length: usize, x: &CudaSlice<f32>, y: &mut CudaSlice<f32>) -> Done {
        self.stream.memcpy_dtod(&x.slice(..length), &mut y.slice_mut(..length)).map_err(failed)
    }

    fn add_row(
        &self,
        rows: RowBlock,
        (bias, offset): (&CudaSlice<f32>, usize),
        y: &mut CudaSlice<f32>,
    ) -> Done {
        let (n, bias) = (rows.len(), bias.slice(offset..));
        if rows.columns.is_multiple_of(4) && offset.is_multiple_of(4) {
            let (n, columns) = (n / 4, int(rows.columns / 4)?);
            return launch!(self, "add_row4", elements(n), int(n)?, rows.rows as i32, columns, bias, *y);
        }
        launch!(self, "add_row", elements(n), int(n)?, rows.rows as i32, rows.columns as i32, bias, *y)
    }

    fn sum_rows(&self, rows: RowBlock, x: &CudaSlice<f32>, out: (&mut CudaSlice<f32>, usize)) -> Done {
        int(rows.len())?;
        self.sum_up(rows, out, |shape, chunk, partial| {
            launch!(self, "sum_rows", shape, rows.rows as i32, rows.columns as i32, chunk, *x, *partial)
        })
    }

    fn normalise(
        &self,
        rows: RowBlock,
        x: &CudaSlice<f32>,
        (affine, offset): (&CudaSlice<f32>, usize),
        y: &mut CudaSlice<f32>,
        moments: &mut CudaSlice<f32>,
    ) -> Done {
        int(rows.len())?;
        let all = rows.models * rows.rows;
        let scale = affine.slice(offset..);
        let shift = affine.slice(offset + rows.models * rows.columns..);
        let (per_model, columns, epsilon) = (rows.rows as i32, rows.columns as i32, NORM_EPSILON as f32);
        launch!(
            self,
            "normalise",
            warps(all),
            int(all)?,
            per_model,
            columns,
            *x,
            scale,
            shift,
            epsilon,
            *y,
            *moments
        )
    }

    fn normalise_backward(
        &self,
        rows: RowBlock,
        (x, moments): (&CudaSlice<f32>, &CudaSlice<f32>),
        (affine, offset): (&CudaSlice<f32>, usize),
        dy: &CudaSlice<f32>,
        dx: &mut CudaSlice<f32>,
    ) -> Done {
        let all = rows.models * rows.rows;
        let scale = affine.slice(offset..);
        let (per_model, columns) = (rows.rows as i32, rows.columns as i32);
        launch!(
            self,
            "normalise_backward",
            warps(all),
            int(all)?,
            per_model,
            columns,
            *x,
            *moments,
            scale,
            *dy,
            *dx
        )
    }

    fn normalise_affine(
        &self,
        rows: RowBlock,
        (x, moments): (&CudaSlice<f32>, &CudaSlice<f32>),
        dy: &CudaSlice<f32>,
        (daffine, offset): (&mut CudaSlice<f32>, usize),
    ) -> Done {
        self.sum_up(rows, (&mut *daffine, offset), |shape, chunk, partial| {
            let (per_model, columns) = (rows.rows as i32, rows.columns as i32);
            launch!(self, "sum_affine", shape, per_model, columns, chunk, *x, *moments, *dy, *partial)
        })?;
        self.sum_rows(rows, dy, (daffine, offset + rows.models * rows.columns))
    }

    fn gelu(&self, length: usize, x: &CudaSlice<f32>, y: &mut CudaSlice<f32>) -> Done {
        launch!(self, "gelu", elements(length.div_ceil(4)), int(length)?, *x, *y)
    }

    fn gelu_backward(&self, length: usize, x: &CudaSlice<f32>, dy: &mut CudaSlice<f32>) -> Done {
        launch!(self, "gelu_backward", elements(length.div_ceil(4)), int(length)?, *x, *dy)
    }

    fn softmax(&self, rows: usize, columns: usize, scale: f64, x: &mut CudaSlice<f32>) -> Done {
        launch!(self, "softmax", warps(rows), int(rows)?, int(columns)?, scale as f32, *x)
    }

    fn softmax_backward(
        &self,
        rows: usize,
        columns: usize,
        scale: f64,
        p: &CudaSlice<f32>,
        dp: &mut CudaSlice<f32>,
    ) -> Done {
        launch!(self, "softmax_backward", warps(rows), int(rows)?, int(columns)?, scale as f32, *p, *dp)
    }

    fn split_heads(&self, heads: Heads, x: &CudaSlice<f32>, out: &mut CudaSlice<f32>) -> Done {
        self.move_heads(heads, 1, x, out)
    }

    fn merge_heads(&self, heads: Heads, x: &CudaSlice<f32>, out: &mut CudaSlice<f32>) -> Done {
        self.move_heads(heads, 0, x, out)
    }

    fn mean_rows(&self, rows: RowBlock, x: &CudaSlice<f32>, out: &mut CudaSlice<f32>) -> Done {
        let n = rows.models * rows.columns;
        launch!(self, "mean_rows", elements(n), int(n)?, rows.rows as i32, rows.columns as i32, *x, *out)
    }

    fn mean_rows_backward(&self, rows: RowBlock, dout: &CudaSlice<f32>, dx: &mut CudaSlice<f32>) -> Done {
        let n = rows.len();
        launch!(
            self,
            "mean_rows_backward",
            elements(n),
            int(n)?,
            rows.rows as i32,
            rows.columns as i32,
            *dout,
            *dx
        )
    }

    fn patches(
        &self,
        p: &Patches,
        images: &CudaSlice<u8>,
        (indices, first): (&CudaSlice<u32>, usize),
        out: &mut CudaSlice<f32>,
    ) -> Done {
        let n = p.count * p.channels * p.side * p.side;
        let ([m0, m1, m2], [d0, d1, d2]) = (p.mean, p.deviation);
        let [channels, side, patch] = [p.channels, p.side, p.patch].map(|n| n as i32);
        launch!(
            self,
            "patches",
            elements(n),
            int(n)?,
            channels,
            side,
            patch,
            m0,
            m1,
            m2,
            d0,
            d1,
            d2,
            *images,
            *indices,
            int(first)?,
            *out,
        )
    }

    fn cross_entropy(
        &self,
        (rows, classes, scale): (usize, usize, f64),
        logits: &CudaSlice<f32>,
        (labels, (indices, first)): (&CudaSlice<u32>, (&CudaSlice<u32>, usize)),
        dlogits: &mut CudaSlice<f32>,
        scores: &mut CudaSlice<f32>,
    ) -> Done {
        launch!(
            self,
            "cross_entropy",
            elements(rows),
            int(rows)?,
            int(classes)?,
            scale as f32,
            *logits,
            *labels,
            *indices,
            int(first)?,
            *dlogits,
            *scores,
        )
    }

    fn adamw(
        &self,
        step: &AdamW,
        length: usize,
        gradient: &CudaSlice<f32>,
        (first, second): (&mut CudaSlice<f32>, &mut CudaSlice<f32>),
        parameters: &mut CudaSlice<f32>,
    ) -> Done {
        let t = step.step as f64;
        let [rate, kept, b1, b2, rest1, rest2, c1, c2, epsilon] = [
            step.rate,
            1.0 - step.rate * step.decay,
            step.first,
            step.second,
            1.0 - step.first,
            1.0 - step.second,
            1.0 - step.first.powf(t),
            1.0 - step.second.powf(t),
            step.epsilon,
        ]
        .map(|v| v as f32);
        launch!(
            self,
            "adamw",
            elements(length),
            int(length)?,
            rate,
            kept,
            b1,
            b2,
            rest1,
            rest2,
            c1,
            c2,
            epsilon,
            *gradient,
            *first,
            *second,
            *parameters,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs NVRTC, but no GPU: `pip install nvidia-cuda-nvrtc`, and its folder in LD_LIBRARY_PATH.
    #[test]
    fn every_kernel_compiles_for_an_h200() {
        // SAFETY: it looks for a library by name and calls nothing in it.
        if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
            #[allow(clippy::print_stderr, reason = "the reason why nothing is tested")]
            {
                eprintln!("skipped: there is no libnvrtc here");
            }
            return;
        }
        for architecture in ["compute_80", "compute_90"] {
            let text = compile(architecture).unwrap().to_src();
            for name in NAMES {
                assert!(text.contains(&format!(".entry {name}(")), "{name}");
            }
        }
    }
}
