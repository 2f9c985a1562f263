/**
 * @file Gradients of complex numbers, which tfjs lacks: their parts are the gradients by the real and the imaginary part.
 * tfjs's tape takes gradients of float32 only; complex ones pass it under that name.
 */
import {
  abs,
  backend_util,
  cast,
  complex,
  div,
  engine,
  equal,
  fft,
  getGradient,
  ifft,
  imag,
  mul,
  neg,
  onesLike,
  real,
  registerGradient,
  reshape,
  scalar,
  sum,
  type Tensor,
  util,
  where,
  zeros,
  zerosLike,
} from '@tensorflow/tfjs-core';
import type { TapeKeeper } from './tape.js';

type Gradients = Record<string, () => Tensor>;

/** Inputs that an operation does without are null or undefined. */
const isComplex = (x: Tensor | null | undefined): boolean => x?.dtype === 'complex64';

/** Complex tensors that pass as float32. */
const disguised = new WeakSet<object>();

const setDtype = (x: object, dtype: Tensor['dtype']): void => void Object.assign(x, { dtype });

/** Gives complex tensors that passed the tape their own dtype again. */
export function reveal(tensors: Iterable<object | null | undefined>): void {
  for (const x of tensors) if (x && disguised.delete(x)) setDtype(x, 'complex64');
}

function disguise(x: Tensor): Tensor {
  if (!isComplex(x)) return x;
  disguised.add(x);
  setDtype(x, 'float32');
  return x;
}

/** Of complex results, gradients are complex. */
function received(dy: Tensor | null, output: Tensor): Tensor | null {
  if (!isComplex(output)) return dy;
  return dy === null ? zeros(output.shape, 'complex64') : cast(dy, 'complex64');
}

/** Operations whose results are their operand, but whose gradients tfjs takes to be real. */
const COPIES = ['Identity', 'Cast'];

/** Makes tfjs's tape take gradients of complex numbers, and gives real operands the real part. */
function carryComplexGradients(): void {
  const keeper = engine() as unknown as TapeKeeper & { clone(x: Tensor): Tensor };
  const [addTapeNode, clone] = [keeper.addTapeNode.bind(keeper), keeper.clone.bind(keeper)];
  let isCloning = false;
  // Nodes of clones, which are also made where tensors are saved, have the name of the scope that they are made in.
  keeper.clone = (x) => {
    isCloning = true;
    try {
      return clone(x);
    } finally {
      isCloning = false;
    }
  };
  keeper.addTapeNode = (name, inputs, outputs, ...rest) => {
    addTapeNode(name, inputs, outputs, ...rest);
    if (![...Object.values(inputs), ...outputs].some(isComplex)) return;
    const node = keeper.state.activeTape.findLast((each) => each.outputs === outputs)!;
    const { gradient } = node;
    if (gradient === undefined) return;
    const isCopy = (isCloning || COPIES.includes(name)) && isComplex(inputs.x) && isComplex(outputs[0]);
    node.gradient = (dys) => {
      reveal(dys);
      const given = dys.map((dy, i) => received(dy, outputs[i]!)) as Tensor[];
      const gradients: Gradients = isCopy ? { x: () => given[0]!.clone() } : gradient(given);
      const passing = (input: string, made: Tensor): Tensor =>
        isComplex(made) && !isComplex(inputs[input]) ? real(made) : disguise(made);
      return Object.fromEntries(
        Object.entries(gradients).map(([input, make]) => [input, () => passing(input, make())]),
      );
    };
  };
  const gradients = keeper.gradients.bind(keeper) as (...args: unknown[]) => { grads: (Tensor | null)[] };
  keeper.gradients = (...args) => {
    const result = gradients(...args);
    reveal(result.grads);
    return result;
  };
}

carryComplexGradients();

const conjugate = (x: Tensor): Tensor => complex(real(x), neg(imag(x)));

/** Sums over broadcast axes, back to `shape`. */
function sumTo(x: Tensor, shape: number[]): Tensor {
  if (util.arraysEqual(x.shape, shape)) return x;
  return reshape(sum(x, backend_util.getReductionAxes(shape, x.shape)), shape);
}

/** Replaces the gradient of a kernel of two operands where they are complex. */
function ofComplex(
  kernelName: string,
  by: (dy: Tensor, a: Tensor, b: Tensor) => [() => Tensor, () => Tensor],
): void {
  const original = getGradient(kernelName);
  registerGradient({
    ...original,
    gradFunc: (dy, saved, attrs) => {
      const [a, b] = saved as [Tensor, Tensor];
      if (!isComplex(dy as Tensor)) return original.gradFunc(dy, saved, attrs);
      const [first, second] = by(dy as Tensor, a, b);
      return { a: () => sumTo(first(), a.shape), b: () => sumTo(second(), b.shape) };
    },
  });
}

ofComplex('Multiply', (dy, a, b) => [() => mul(dy, conjugate(b)), () => mul(dy, conjugate(a))]);

ofComplex('RealDiv', (dy, a, b) => {
  const first = (): Tensor => div(dy, conjugate(b));
  return [first, () => neg(mul(first(), conjugate(div(a, b))))];
});

/** Registers the gradient of a kernel of one operand that saves it. */
const ofOne = (kernelName: string, input: string, by: (dy: Tensor, x: Tensor) => Tensor): void =>
  registerGradient({
    kernelName,
    inputsToSave: [input],
    gradFunc: (dy, [x]) => ({ [input]: () => by(dy as Tensor, x!) }),
  });

registerGradient({
  kernelName: 'Complex',
  gradFunc: (dy) => ({ real: () => real(dy as Tensor), imag: () => imag(dy as Tensor) }),
});
ofOne('Real', 'input', (dy) => complex(dy, zerosLike(dy)));
ofOne('Imag', 'input', (dy) => complex(zerosLike(dy), dy));
/** dy x / |x|, and 0 where x is. */
ofOne('ComplexAbs', 'x', (dy, x) => {
  const size = abs(x);
  const slope = div(dy, where(equal(size, 0), onesLike(size), size));
  return complex(mul(slope, real(x)), mul(slope, imag(x)));
});

/** The transform is symmetric: its gradient is its conjugate. */
const lengthOf = (x: Tensor): Tensor => scalar(x.shape.at(-1)!);
ofOne('FFT', 'input', (dy, x) => mul(ifft(dy), lengthOf(x)));
ofOne('IFFT', 'input', (dy, x) => div(fft(dy), lengthOf(x)));
