/**
 * @file One ONNX model for batches of any number of rows, from models that were traced for several numbers. They differ in
 * constants: shapes, bounds and factors, each a line over the number of rows. Nodes that compute it take its place.
 */
import { CompilerError, type HostArray, type Shape, sameShape, sizeOf } from '../tensors.js';
import type { OnnxAttr, OnnxInitializer, OnnxModel, OnnxNode, OnnxTypeName, OnnxValueInfo } from './proto.js';
import { OnnxType } from './proto.js';

/** A model, and the number of rows that it was traced for. */
export interface SizedModel {
  readonly rows: number;
  readonly model: OnnxModel;
}

/** Two models that tell the lines, and one that has to agree. */
type Sized = readonly [SizedModel, SizedModel, SizedModel];
/** Counterparts in the three models. */
type Three<T> = readonly [T, T, T];

/** Name of the dimension. */
const BATCH = 'batch';
/** Values of the number of rows: a scalar of int64, and of float32. */
const ROWS = 'batch/rows';
const ROWS_FLOAT = 'batch/rows_float';

/** `slope` times the rows, plus `start`. */
interface Line {
  readonly slope: number;
  readonly start: number;
}

const three = <T, U>([a, b, c]: Three<T>, map: (value: T) => U): Three<U> => [map(a), map(b), map(c)];

function lineThrough([r1, r2, r3]: Three<number>, [y1, y2, y3]: Three<number>): Line | undefined {
  const slope = (y2 - y1) / (r2 - r1);
  const start = y1 - slope * r1;
  return Number.isInteger(slope) && slope * r3 + start === y3 ? { slope, start } : undefined;
}

/** A dimension by the name of its line; a number where it has one size. */
function dimOf({ slope, start }: Line): number | string {
  if (slope === 0) return start;
  const product = slope === 1 ? BATCH : `${slope}*${BATCH}`;
  return start === 0 ? product : `${product} + ${start}`;
}

class AnyRows {
  private readonly nodes: OnnxNode[] = [];
  private readonly initializers: OnnxInitializer[] = [];
  private readonly rows: Three<number>;
  private readonly models: Three<OnnxModel>;

  constructor(sized: Sized) {
    this.rows = three(sized, ({ rows }) => rows);
    this.models = three(sized, ({ model }) => model);
  }

  /** @throws CompilerError where the models differ by more than lines */
  whole(): OnnxModel {
    const [first] = this.models;
    const inputs = this.valueInfos((model) => model.inputs);
    const outputs = this.valueInfos((model) => model.outputs);
    const dynamic = inputs.find(({ dims }) => dims?.[0] === BATCH);
    if (dynamic === undefined)
      throw new CompilerError(
        'An ONNX model for any number of rows has an input whose first dimension they are.',
      );
    this.emit('Shape', [dynamic.name], 'batch/shape', { start: 0, end: 1 });
    this.initializers.push({ name: 'batch/none', type: 'int64', shape: [0], data: new BigInt64Array(0) });
    this.emit('Reshape', ['batch/shape', 'batch/none'], ROWS);
    this.emit('Cast', [ROWS], ROWS_FLOAT, { to: OnnxType.float32 });
    this.each(
      this.models,
      (model) => model.initializers,
      (constants) => this.constant(constants),
    );
    const nodes = this.each(
      this.models,
      (model) => model.nodes,
      (counterparts) => this.node(counterparts),
    );
    const all = [...this.nodes, ...nodes];
    return { ...first, inputs, outputs, initializers: this.initializers, nodes: all };
  }

  private each<T, U>(
    models: Three<OnnxModel>,
    listOf: (model: OnnxModel) => readonly T[],
    act: (counterparts: Three<T>) => U,
  ): U[] {
    const [a, b, c] = three(models, listOf);
    if (a.length !== b.length || a.length !== c.length) throw this.unlike('the number of its operations');
    return a.map((value, i) => act([value, b[i]!, c[i]!]));
  }

  private unlike(what: string): CompilerError {
    return new CompilerError(
      `The model can't be exported for any number of rows: ${what} is not a line over that number.`,
    );
  }

  private emit(op: string, inputs: string[], output: string, attrs: OnnxNode['attrs'] = {}): void {
    this.nodes.push({
      op,
      domain: '',
      inputs,
      outputs: [output],
      attrs,
      name: `${BATCH}/${op}_${this.nodes.length}`,
    });
  }

  private valueInfos(listOf: (model: OnnxModel) => readonly OnnxValueInfo[]): OnnxValueInfo[] {
    return this.each(this.models, listOf, (infos) => this.valueInfo(infos));
  }

  private valueInfo(infos: Three<OnnxValueInfo>): OnnxValueInfo {
    const [first] = infos;
    const dims = first.shape.map((_, axis) =>
      dimOf(
        this.line(
          three(infos, ({ shape }) => shape[axis]!),
          first.name,
        ),
      ),
    );
    return { ...first, dims };
  }

  private line(values: Three<number>, what: string): Line {
    const line = lineThrough(this.rows, values);
    if (line === undefined)
      throw this.unlike(`${what} (${values.join(', ')} for ${this.rows.join(', ')} rows)`);
    return line;
  }

  private node(counterparts: Three<OnnxNode>): OnnxNode {
    const [first] = counterparts;
    const [a, b, c] = three(counterparts, ({ op, inputs, outputs }) => JSON.stringify([op, inputs, outputs]));
    if (a !== b || a !== c) throw this.unlike(`the operation ${first.name}`);
    const attrs = Object.entries(first.attrs).map(([name]) => [
      name,
      this.attr(
        three(counterparts, (node) => node.attrs[name]!),
        `attribute ${name} of ${first.name}`,
      ),
    ]);
    return { ...first, attrs: Object.fromEntries(attrs) };
  }

  private attr(values: Three<OnnxAttr>, what: string): OnnxAttr {
    const [first] = values;
    if (typeof first === 'object' && 'graph' in first) {
      const graphs = three(values, (value) => (value as typeof first).graph);
      const infosOf = (border: 'inputs' | 'outputs') =>
        this.each(
          graphs,
          (graph) => graph[border],
          (infos) => this.valueInfo(infos),
        );
      const nodes = this.each(
        graphs,
        (graph) => graph.nodes,
        (counterparts) => this.node(counterparts),
      );
      return { graph: { ...first.graph, inputs: infosOf('inputs'), outputs: infosOf('outputs'), nodes } };
    }
    const [a, b, c] = three(values, (value) => JSON.stringify(value));
    if (a !== b || a !== c) throw this.unlike(what);
    return first;
  }

  private constant(counterparts: Three<OnnxInitializer>): void {
    const [a, b, c] = counterparts;
    const isSame = [b, c].every(({ shape, data }) => sameShape(a.shape, shape) && equalData(a.data, data));
    if (isSame) this.initializers.push(a);
    else if (counterparts.some(({ shape }) => !sameShape(a.shape, shape))) this.expanded(counterparts);
    else if (a.type === 'float32') this.factor(counterparts);
    else this.counted(counterparts);
  }

  /** Integers: shapes, bounds of slices, counts. */
  private counted(counterparts: Three<OnnxInitializer>): void {
    const [{ name, type, shape }] = counterparts;
    const lines = Array.from({ length: sizeOf(shape) }, (_, i) =>
      this.line(
        three(counterparts, ({ data }) => Number(data[i])),
        `constant ${name}`,
      ),
    );
    this.compute(name, type, shape, lines);
  }

  private compute(name: string, type: OnnxTypeName, shape: Shape, lines: readonly Line[]): void {
    const list = (part: keyof Line) => BigInt64Array.from(lines, (line) => BigInt(line[part]));
    const [slopes, starts] = [`${name}/slopes`, `${name}/starts`];
    this.initializers.push({ name: slopes, type: 'int64', shape, data: list('slope') });
    this.initializers.push({ name: starts, type: 'int64', shape, data: list('start') });
    this.emit('Mul', [ROWS, slopes], `${name}/product`);
    const sum = type === 'int64' ? name : `${name}/sum`;
    this.emit('Add', [`${name}/product`, starts], sum);
    if (sum !== name) this.emit('Cast', [sum], name, { to: OnnxType[type] });
  }

  /** A number such as the rows, or one over them. */
  private factor(counterparts: Three<OnnxInitializer>): void {
    const [{ name, shape }] = counterparts;
    const values = three(counterparts, ({ data }) => Number(data[0]));
    if (sizeOf(shape) !== 1) throw this.unlike(`constant ${name}`);
    const [r1, r2, r3] = this.rows;
    const over = Math.fround(values[0] * r1);
    const isOver = [r1, r2, r3].every((rows, i) => Math.fround(over / rows) === values[i]);
    const line = lineThrough(this.rows, values);
    if (!isOver && (line === undefined || line.start !== 0)) throw this.unlike(`constant ${name}`);
    const data = Float32Array.of(isOver ? over : line!.slope);
    this.initializers.push({ name: `${name}/factor`, type: 'float32', shape, data });
    const operands = [`${name}/factor`, ROWS_FLOAT];
    this.emit(isOver ? 'Div' : 'Mul', operands, name);
  }

  /** An array that repeats along dimensions of the batch. */
  private expanded(counterparts: Three<OnnxInitializer>): void {
    const [first] = counterparts;
    const { name, type, shape, data } = first;
    const lines = shape.map((_, axis) =>
      this.line(
        three(counterparts, (each) => each.shape[axis]!),
        `the shape of constant ${name}`,
      ),
    );
    const core = shape.map((dim, axis) => (lines[axis]!.slope === 0 ? dim : 1));
    const kept = (data as HostArray).slice(0, sizeOf(core)) as HostArray;
    let to = 0;
    for (let i = 0; i < data.length; i++)
      if (placeOf(i, shape, core) === to && to < kept.length) kept[to++] = Number(data[i]);
    for (const { shape: whole, data: values } of counterparts)
      for (let i = 0; i < values.length; i++)
        if (Number(values[i]) !== kept[placeOf(i, whole, core)]) throw this.unlike(`constant ${name}`);
    this.initializers.push({ name: `${name}/core`, type, shape: core, data: kept });
    this.compute(`${name}/shape`, 'int64', [shape.length], lines);
    this.emit('Expand', [`${name}/core`, `${name}/shape`], name);
  }
}

/** Place in an array of shape `core`, with 1 for some dimensions of `shape`, of the element at `index` of the whole. */
function placeOf(index: number, shape: Shape, core: Shape): number {
  let [rest, place, stride] = [index, 0, 1];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    place += (core[axis] === 1 ? 0 : rest % shape[axis]!) * stride;
    stride *= core[axis]!;
    rest = Math.trunc(rest / shape[axis]!);
  }
  return place;
}

function equalData(a: OnnxInitializer['data'], b: OnnxInitializer['data']): boolean {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
}

/** The model for any number of rows. @throws CompilerError where the models differ by more than lines over the rows */
export function forAnyRows(sized: Sized): OnnxModel {
  return new AnyRows(sized).whole();
}
