/**
 * @file One ONNX model for dimensions of any size, from models that were traced for several sizes. They differ in constants:
 * shapes, bounds and factors. Nodes that compute them from the sizes take their places.
 */
import { CompilerError, type HostArray, type Shape, sameShape, sizeOf } from '../program/tensors.js';
import { isConstant, type OpenDimensions, type Polynomial } from './openDimensions.js';
import type { OnnxAttr, OnnxInitializer, OnnxModel, OnnxNode, OnnxTypeName, OnnxValueInfo } from './proto.js';
import { nodeBodies, OnnxType } from './proto.js';

/** Counterparts in the models. */
type Each<T> = readonly T[];

/** Two roundings of float32. */
const ROUNDING = 2 ** -22;
const isClose = (a: number, b: number): boolean => Math.abs(a - b) <= ROUNDING * Math.abs(b);

class AnySizes {
  private readonly nodes: OnnxNode[] = [];
  private readonly initializers: OnnxInitializer[] = [];
  /** Names of products of sizes that are computed, by product and type. */
  private readonly products = new Map<string, string>();

  constructor(
    private readonly dimensions: OpenDimensions,
    private readonly models: Each<OnnxModel>,
  ) {}

  /** @throws CompilerError where the models differ by more than the sizes tell */
  whole(): OnnxModel {
    const inputs = this.valueInfos(this.models.map((model) => model.inputs));
    const outputs = this.valueInfos(this.models.map((model) => model.outputs));
    // It comes first: a constant that only some sizes have is told by the operation that reads it.
    const nodes = this.listed(
      this.models.map((model) => model.nodes),
      (counterparts) => this.node(counterparts),
    );
    this.sizes(inputs);
    this.listed(
      this.models.map((model) => model.initializers),
      (counterparts) => this.constant(counterparts),
    );
    return { inputs, outputs, initializers: this.initializers, nodes: [...this.nodes, ...nodes] };
  }

  /** Reads each dimension from an input that has it. */
  private sizes(inputs: readonly OnnxValueInfo[]): void {
    this.initializers.push({ name: '/sizes/none', type: 'int64', shape: [0], data: new BigInt64Array(0) });
    this.dimensions.names.forEach((name, i) => {
      const input = inputs.find(({ dims }) => dims?.includes(name))!;
      const start = input.dims!.indexOf(name);
      this.emit('Shape', [input.name], `/sizes/${name}/shape`, { start, end: start + 1 });
      this.emit('Reshape', [`/sizes/${name}/shape`, '/sizes/none'], `/sizes/${name}`);
      this.products.set(`int64 ${1 << i}`, `/sizes/${name}`);
    });
  }

  /** The name of a product of sizes: a scalar. */
  private product(product: number, type: 'int64' | 'float32'): string {
    const key = `${type} ${product}`;
    const known = this.products.get(key);
    if (known !== undefined) return known;
    const name = `/sizes/${this.dimensions.factorsOf(product).join('*')}${type === 'float32' ? '/float' : ''}`;
    this.products.set(key, name);
    if (type === 'float32')
      this.emit('Cast', [this.product(product, 'int64')], name, { to: OnnxType.float32 });
    else {
      const last = 1 << (31 - Math.clz32(product));
      this.emit('Mul', [this.product(product - last, 'int64'), this.product(last, 'int64')], name);
    }
    return name;
  }

  private listed<T, U>(lists: Each<readonly T[]>, act: (counterparts: Each<T>) => U): U[] {
    const longest = Math.max(...lists.map((list) => list.length));
    return Array.from({ length: longest }, (_, i) => act(lists.map((list) => list[i]!)));
  }

  private unlike(what: string): CompilerError {
    return new CompilerError(
      `exportOnnx: ${this.dimensions.names.join(' and ')} can't have any size: ${what}. Compute it from the shapes of inputs by sums and products, or give the dimension a number.`,
    );
  }

  private emit(op: string, inputs: string[], output: string, attrs: OnnxNode['attrs'] = {}): void {
    this.nodes.push({
      op,
      domain: '',
      inputs,
      outputs: [output],
      attrs,
      name: `/sizes/${op}_${this.nodes.length}`,
    });
  }

  private valueInfos(lists: Each<readonly OnnxValueInfo[]>): OnnxValueInfo[] {
    return this.listed(lists, (infos) => this.valueInfo(infos));
  }

  private valueInfo(infos: Each<OnnxValueInfo>): OnnxValueInfo {
    const [first] = infos;
    const dims = first!.shape.map((_, axis) => {
      const sizes = infos.map(({ shape }) => shape[axis]!);
      return this.dimensions.format(this.fit(sizes, () => `dimension ${axis} of ${first!.name}`));
    });
    return { ...first!, dims };
  }

  private fit(values: Each<number>, what: () => string): Polynomial {
    const found = this.dimensions.fit(values);
    if (found === undefined) throw this.unlike(`${what()} is ${this.dimensions.told(values)}`);
    return found;
  }

  /** Reader of a constant, for messages. */
  private readerOf(name: string): string {
    const find = (nodes: readonly OnnxNode[]): string | undefined => {
      for (const node of nodes) {
        const at = node.inputs.indexOf(name);
        if (at >= 0) return `input ${at + 1} of the operation ${node.name}`;
        for (const body of nodeBodies(node)) {
          const within = find(body.nodes);
          if (within !== undefined) return within;
        }
      }
      return undefined;
    };
    return find(this.models[0]!.nodes) ?? `constant ${name}`;
  }

  private node(counterparts: Each<OnnxNode | undefined>): OnnxNode {
    const shown = counterparts.map(
      (node) => node && JSON.stringify([node.op, node.inputs, node.outputs, Object.keys(node.attrs)]),
    );
    const [first] = counterparts as Each<OnnxNode>;
    if (shown.some((each) => each !== shown[0])) {
      const names = counterparts.map((node) => node?.name ?? 'none');
      const isNamed = names.some((name) => name !== names[0]);
      throw this.unlike(
        isNamed
          ? `the operation is ${this.dimensions.told(names)}`
          : `what the operation ${first!.name} reads depends on the size`,
      );
    }
    const attrs = Object.keys(first!.attrs).map((name) => [
      name,
      this.attr(
        (counterparts as Each<OnnxNode>).map((node) => node.attrs[name]!),
        `attribute ${name} of the operation ${first!.name}`,
      ),
    ]);
    // A size of 0 is itself, and not that of the input.
    const zeros = first!.op === 'Reshape' ? { allowzero: 1 } : {};
    return { ...first!, attrs: { ...Object.fromEntries(attrs), ...zeros } };
  }

  private attr(values: Each<OnnxAttr>, what: string): OnnxAttr {
    const [first] = values as [OnnxAttr];
    if (typeof first === 'object' && 'graph' in first) {
      const graphs = values.map((value) => (value as typeof first).graph);
      const inputs = this.valueInfos(graphs.map((graph) => graph.inputs));
      const outputs = this.valueInfos(graphs.map((graph) => graph.outputs));
      const nodes = this.listed(
        graphs.map((graph) => graph.nodes),
        (counterparts) => this.node(counterparts),
      );
      return { graph: { ...first.graph, inputs, outputs, nodes } };
    }
    const shown = values.map((value) => JSON.stringify(value));
    if (shown.some((each) => each !== shown[0]))
      throw this.unlike(`${what} is fixed in a file, and is ${this.dimensions.told(shown)}`);
    return first;
  }

  private constant(counterparts: Each<OnnxInitializer>): void {
    const [first, ...others] = counterparts as [OnnxInitializer];
    const isSame = (others as OnnxInitializer[]).every(
      ({ shape, data }) => sameShape(first.shape, shape) && equalData(first.data, data),
    );
    if (isSame) this.initializers.push(first);
    else if (counterparts.some(({ shape }) => !sameShape(first.shape, shape))) this.expanded(counterparts);
    else if (first.type === 'float32') this.factor(counterparts);
    else this.counted(counterparts);
  }

  /** Integers: shapes, bounds of slices, counts. */
  private counted(counterparts: Each<OnnxInitializer>): void {
    const [{ name, type, shape }] = counterparts as [OnnxInitializer];
    const entries = Array.from({ length: sizeOf(shape) }, (_, i) => {
      const values = counterparts.map(({ data }) => Number(data[i]));
      return this.fit(values, () => `element ${i} of ${this.readerOf(name)}`);
    });
    this.compute(name, type, shape, entries);
  }

  private compute(name: string, type: OnnxTypeName, shape: Shape, entries: readonly Polynomial[]): void {
    const constant = (product: number): string => {
      const data = BigInt64Array.from(entries, (factors) => BigInt(factors[product]!));
      this.initializers.push({ name: `${name}/factors_${product}`, type: 'int64', shape, data });
      return `${name}/factors_${product}`;
    };
    let sum = constant(0);
    for (let product = 1; product < this.dimensions.numProducts; product++) {
      if (entries.every((factors) => factors[product] === 0)) continue;
      this.emit('Mul', [this.product(product, 'int64'), constant(product)], `${name}/product_${product}`);
      this.emit('Add', [sum, `${name}/product_${product}`], `${name}/sum_${product}`);
      sum = `${name}/sum_${product}`;
    }
    this.emit('Cast', [sum], name, { to: OnnxType[type] });
  }

  /** A number such as the rows, or one over them. */
  private factor(counterparts: Each<OnnxInitializer>): void {
    const [{ name, shape }] = counterparts as [OnnxInitializer];
    const told = (): string => this.readerOf(name);
    if (sizeOf(shape) !== 1)
      throw this.unlike(`${told()} is an array [${shape}] of other values for each size`);
    const values = counterparts.map(({ data }) => Number(data[0]));
    for (let product = 1; product < this.dimensions.numProducts; product++) {
      const sizes = this.dimensions.productIn(product);
      for (const [op, scale] of [
        ['Mul', values[0]! / sizes[0]!],
        ['Div', values[0]! * sizes[0]!],
      ] as const) {
        const factor = Math.fround(scale);
        if (
          !values.every((value, i) => isClose(op === 'Mul' ? factor * sizes[i]! : factor / sizes[i]!, value))
        )
          continue;
        const data = Float32Array.of(factor);
        this.initializers.push({ name: `${name}/factor`, type: 'float32', shape, data });
        this.emit(op, [`${name}/factor`, this.product(product, 'float32')], name);
        return;
      }
    }
    throw this.unlike(`${told()} is ${this.dimensions.told(values)}`);
  }

  /** An array that repeats along dimensions of any size. */
  private expanded(counterparts: Each<OnnxInitializer>): void {
    const [{ name, type, shape, data }] = counterparts as [OnnxInitializer];
    if (counterparts.some((each) => each.shape.length !== shape.length))
      throw this.unlike(`${this.readerOf(name)} has another rank for each size`);
    const sizes = shape.map((_, axis) =>
      this.fit(
        counterparts.map((each) => each.shape[axis]!),
        () => `dimension ${axis} of ${this.readerOf(name)}`,
      ),
    );
    const core = shape.map((dim, axis) => (isConstant(sizes[axis]!) ? dim : 1));
    const kept = (data as HostArray).slice(0, sizeOf(core)) as HostArray;
    let to = 0;
    for (let i = 0; i < data.length; i++)
      if (placeOf(i, shape, core) === to && to < kept.length) kept[to++] = Number(data[i]);
    for (const { shape: whole, data: values } of counterparts)
      for (let i = 0; i < values.length; i++)
        if (Number(values[i]) !== kept[placeOf(i, whole, core)])
          throw this.unlike(
            `${this.readerOf(name)} is a constant [${shape}] that has other values along a dimension that would have any size`,
          );
    this.initializers.push({ name: `${name}/core`, type, shape: core, data: kept });
    this.compute(`${name}/shape`, 'int64', [shape.length], sizes);
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
  return a === b || (a.length === b.length && a.every((value, i) => Object.is(value, b[i])));
}

/**
 * The model for dimensions of any size.
 *
 * @param models those of `dimensions.samples`.
 * @throws CompilerError, that names the operation, where the models differ by more than the sizes tell
 */
export function forAnySizes(dimensions: OpenDimensions, models: readonly OnnxModel[]): OnnxModel {
  return dimensions.names.length === 0 ? models[0]! : new AnySizes(dimensions, models).whole();
}
