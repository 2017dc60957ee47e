//! Compiled nodes of a graph: a list of instructions, each of which works on many samples before the next one begins.

use super::elementary::Elementary;
use super::{Graph, NodeId, Operation};
use crate::dispatch;
use crate::expression::function::power;
use crate::expression::sampled::Sampled;
use crate::memory::with_scratch;

/// Samples that are worked on together when there are many: four registers of AVX2 per operand, so that the operations of one hide
/// the delays of the others.
const WIDE: usize = 16;

/// Samples that are worked on together when there are few.
const NARROW: usize = 8;

/// The values of a variable for many samples.
#[derive(Clone, Copy, Debug)]
pub enum VariableValues<'a> {
    /// One value per sample.
    Each(&'a [f64]),
    /// The same value for all of them.
    All(f64),
}

/// A program that computes some nodes of a graph.
///
/// A sample has bitwise the same results whatever the number of samples it is computed with: the instructions are elementwise, and
/// each rounds as it does for one number.
#[derive(Clone, Debug)]
pub struct Tape {
    /// Variables that are read, and where they are put.
    loads: Vec<(usize, u32)>,
    code: Vec<Instruction>,
    /// Where the results are found.
    outputs: Vec<u32>,
    slots: usize,
}

#[derive(Clone, Copy, Debug)]
struct Instruction {
    code: Code,
    out: u32,
    a: u32,
    b: u32,
}

#[derive(Clone, Copy, Debug)]
enum Code {
    Number(f64),
    /// c a.
    Scale(f64),
    /// a + c.
    Shift(f64),
    /// c − a.
    From(f64),
    Apply(Elementary),
    Sampled(&'static Sampled),
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Max,
    Min,
    Mask,
}

/// Which nodes a tape computes, in order, and what becomes of the places of those that are no longer needed.
struct Compiler<'a> {
    graph: &'a Graph,
    /// Per node: the last node that reads it, or the end for results.
    last_use: Vec<usize>,
    place: Vec<Option<u32>>,
    free: Vec<u32>,
    slots: u32,
    code: Vec<Instruction>,
}

impl Tape {
    /// The program of these nodes. A pair (node, n) in `given` says that the values of a node are handed over as variable n; what
    /// it is made of is then not read.
    pub fn new(graph: &Graph, outputs: &[NodeId], given: &[(NodeId, usize)]) -> Self {
        let count = graph.nodes.len();
        let is_given = |place: usize| given.iter().find(|(node, _)| node.index() == place).map(|(_, n)| *n);
        let mut last_use: Vec<usize> = vec![0; count];
        let mut needed = vec![false; count];
        for output in outputs {
            needed[output.index()] = true;
            last_use[output.index()] = usize::MAX;
        }
        for place in (0..count).rev() {
            if !needed[place] || is_given(place).is_some() {
                continue;
            }
            for operand in read_operands(graph, NodeId(place as u32)) {
                needed[operand.index()] = true;
                last_use[operand.index()] = last_use[operand.index()].max(place);
            }
        }
        let mut compiler = Compiler {
            graph,
            last_use,
            place: vec![None; count],
            free: Vec::new(),
            slots: 0,
            code: Vec::new(),
        };
        let mut loads = Vec::new();
        // Variables first: they are in place before the first instruction.
        for place in (0..count).filter(|place| needed[*place]) {
            let variable = match graph.nodes[place] {
                Operation::Variable(v) => is_given(place).or(Some(v as usize)),
                _ => is_given(place),
            };
            if let Some(variable) = variable {
                loads.push((variable, compiler.allocate(place)));
            }
        }
        for place in (0..count).filter(|place| needed[*place]) {
            if compiler.place[place].is_none() {
                compiler.emit(NodeId(place as u32));
            }
        }
        let outputs = outputs.iter().map(|node| compiler.place[node.index()].expect("computed")).collect();
        Self { loads, outputs, slots: compiler.slots as usize, code: compiler.code }
    }

    /// Instructions per sample.
    pub fn len(&self) -> usize {
        self.code.len()
    }

    /// Whether the results are numbers that depend on no variable.
    pub fn reads_nothing(&self) -> bool {
        self.loads.is_empty()
    }

    /// Whether all results are variables.
    pub fn is_empty(&self) -> bool {
        self.code.is_empty()
    }

    /// The results of one sample: `variable(v)` gives the value of variable v, `output(i, value)` takes result i.
    #[inline]
    pub fn run_one(&self, variable: impl Fn(usize) -> f64, mut output: impl FnMut(usize, f64)) {
        let mut work = |room: &mut [f64]| {
            let (slots, _) = room.as_chunks_mut::<1>();
            for &(v, slot) in &self.loads {
                slots[slot as usize] = [variable(v)];
            }
            run_single(&self.code, slots);
            for (i, slot) in self.outputs.iter().enumerate() {
                output(i, slots[*slot as usize][0]);
            }
        };
        if self.slots <= FEW {
            work(&mut [0.0; FEW][..self.slots]);
        } else {
            with_scratch(self.slots, work);
        }
    }

    /// The results of `size` samples: `variable(v)` gives the values of variable v, and `output(i, first, values)` takes result i of
    /// the samples from `first` on.
    pub fn run<'v>(
        &self,
        size: usize,
        variable: impl Fn(usize) -> VariableValues<'v>,
        mut output: impl FnMut(usize, usize, &[f64]),
    ) {
        with_scratch(self.slots * WIDE, |room| {
            let mut from = 0;
            while from < size {
                let count = (size - from).min(WIDE);
                let samples = from..from + count;
                match count {
                    1 => self.block::<1>(room, samples, &variable, &mut output, run_single),
                    2..=NARROW => self.block(room, samples, &variable, &mut output, run_narrow),
                    _ => self.block(room, samples, &variable, &mut output, run_wide),
                }
                from += count;
            }
        });
    }

    #[inline(always)]
    fn block<'v, const W: usize>(
        &self,
        room: &mut [f64],
        samples: std::ops::Range<usize>,
        variable: &impl Fn(usize) -> VariableValues<'v>,
        output: &mut impl FnMut(usize, usize, &[f64]),
        run: fn(&[Instruction], &mut [[f64; W]]),
    ) {
        let (slots, _) = room.as_chunks_mut::<W>();
        for &(v, slot) in &self.loads {
            let slot = &mut slots[slot as usize];
            match variable(v) {
                VariableValues::All(value) => slot.fill(value),
                VariableValues::Each(values) => {
                    let values = &values[samples.clone()];
                    if let Some(whole) = values.first_chunk::<W>() {
                        *slot = *whole;
                    } else {
                        // Idle lanes repeat the first sample.
                        slot.fill(values[0]);
                        slot[..values.len()].copy_from_slice(values);
                    }
                }
            }
        }
        run(&self.code, slots);
        for (i, slot) in self.outputs.iter().enumerate() {
            output(i, samples.start, &slots[*slot as usize][..samples.len()]);
        }
    }
}

/// Slots of a tape that have room on the stack.
const FEW: usize = 64;

/// The operands that the instruction of a node reads; numbers are part of the instruction where they can be.
fn read_operands(graph: &Graph, node: NodeId) -> impl Iterator<Item = NodeId> {
    let operation = graph.nodes[node.index()];
    let built_in = move |operand: &NodeId| {
        let is_number = graph.constant(*operand).is_some();
        let takes_numbers =
            matches!(operation, Operation::Add(..) | Operation::Subtract(..) | Operation::Multiply(..));
        !(is_number && takes_numbers)
    };
    operation.operands().into_iter().flatten().filter(built_in)
}

impl Compiler<'_> {
    /// A place for the values of a node.
    fn allocate(&mut self, node: usize) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.place[node] = Some(slot);
        slot
    }

    fn emit(&mut self, node: NodeId) {
        let number = |operand: NodeId| self.graph.constant(operand);
        let operation = self.graph.nodes[node.index()];
        // The operands that are read, in order; their number makes the rest of the instruction.
        let (code, a, b) = match operation {
            Operation::Number(bits) => (Code::Number(f64::from_bits(bits)), None, None),
            Operation::Variable(_) => unreachable!("variables are loaded"),
            Operation::Apply(function, u) => (Code::Apply(function), Some(u), None),
            Operation::Sampled(function, u) => (Code::Sampled(function), Some(u), None),
            Operation::Add(a, b) => match (number(a), number(b)) {
                (Some(c), _) => (Code::Shift(c), Some(b), None),
                (_, Some(c)) => (Code::Shift(c), Some(a), None),
                _ => (Code::Add, Some(a), Some(b)),
            },
            Operation::Subtract(a, b) => match (number(a), number(b)) {
                (Some(c), _) => (Code::From(c), Some(b), None),
                (_, Some(c)) => (Code::Shift(-c), Some(a), None),
                _ => (Code::Subtract, Some(a), Some(b)),
            },
            Operation::Multiply(a, b) => match number(a) {
                Some(c) => (Code::Scale(c), Some(b), None),
                None => (Code::Multiply, Some(a), Some(b)),
            },
            Operation::Divide(a, b) => (Code::Divide, Some(a), Some(b)),
            Operation::Power(a, b) => (Code::Power, Some(a), Some(b)),
            Operation::Max(a, b) => (Code::Max, Some(a), Some(b)),
            Operation::Min(a, b) => (Code::Min, Some(a), Some(b)),
            Operation::Mask(a, b) => (Code::Mask, Some(a), Some(b)),
        };
        let slot = |operand: Option<NodeId>| {
            operand.map_or(0, |operand| self.place[operand.index()].expect("computed before"))
        };
        let (a_slot, b_slot) = (slot(a), slot(b));
        // An operand that is not read again leaves its place to the result: instructions read before they write.
        for operand in [a, b.filter(|b| Some(*b) != a)].into_iter().flatten() {
            if self.last_use[operand.index()] == node.index() {
                self.free.extend(self.place[operand.index()]);
            }
        }
        let out = self.allocate(node.index());
        self.code.push(Instruction { code, out, a: a_slot, b: b_slot });
    }
}

/// Runs the instructions, one after the other, on all lanes.
#[inline(always)]
fn execute<const W: usize>(code: &[Instruction], slots: &mut [[f64; W]]) {
    for instruction in code {
        let a = slots[instruction.a as usize];
        macro_rules! of_one {
            (|$l:ident| $value:expr) => {{
                let out = &mut slots[instruction.out as usize];
                for $l in 0..W {
                    out[$l] = $value;
                }
            }};
        }
        macro_rules! of_two {
            (|$x:ident, $y:ident| $value:expr) => {{
                let b = slots[instruction.b as usize];
                let out = &mut slots[instruction.out as usize];
                for l in 0..W {
                    let ($x, $y) = (a[l], b[l]);
                    out[l] = $value;
                }
            }};
        }
        match instruction.code {
            Code::Number(c) => slots[instruction.out as usize].fill(c),
            Code::Scale(c) => of_one!(|l| c * a[l]),
            Code::Shift(c) => of_one!(|l| a[l] + c),
            Code::From(c) => of_one!(|l| c - a[l]),
            Code::Apply(function) => function.values(&a, &mut slots[instruction.out as usize]),
            Code::Sampled(function) => of_one!(|l| function.value(a[l])),
            Code::Add => of_two!(|x, y| x + y),
            Code::Subtract => of_two!(|x, y| x - y),
            Code::Multiply => of_two!(|x, y| x * y),
            Code::Divide => of_two!(|x, y| x / y),
            Code::Power => of_two!(|x, y| power(x, y)),
            // Where one of them is NaN so is the result, as it is in sums and products.
            Code::Max => of_two!(|x, y| if x > y || x.is_nan() { x } else { y }),
            Code::Min => of_two!(|x, y| if x < y || x.is_nan() { x } else { y }),
            Code::Mask => of_two!(|x, y| if x == 0.0 { 0.0 } else { x * y }),
        }
    }
}

dispatch! {
    fn run_single(code: &[Instruction], slots: &mut [[f64; 1]]) {
        execute(code, slots);
    }
}

dispatch! {
    fn run_narrow(code: &[Instruction], slots: &mut [[f64; NARROW]]) {
        execute(code, slots);
    }
}

dispatch! {
    fn run_wide(code: &[Instruction], slots: &mut [[f64; WIDE]]) {
        execute(code, slots);
    }
}
