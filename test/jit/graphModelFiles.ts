/** @file Files of graph models (model.json and weights) as tensorflowjs_converter writes them, with random weights. */
import { floats } from '../compiler/support.js';

type Attrs = Readonly<Record<string, object>>;

const encoded = (text: string): object => ({ s: Buffer.from(text).toString('base64') });
const ints = (values: readonly number[]): object => ({ list: { i: values.map(String) } });
const dims = (shape: readonly number[]): object => ({
  shape: { dim: shape.map((size) => ({ size: String(size) })) },
});
const fused = (activation: string): Attrs => ({
  fused_ops: {
    list: { s: ['BiasAdd', activation].filter(Boolean).map((op) => Buffer.from(op).toString('base64')) },
  },
  num_args: { i: '1' },
  epsilon: { f: 0 },
});
const FLOAT = { type: 'DT_FLOAT' };
const INT = { type: 'DT_INT32' };

/** A graph under construction. Its methods give the names of their nodes. */
export class GraphFile {
  private readonly nodes: object[] = [];
  private readonly specs: object[] = [];
  private readonly data: Uint8Array[] = [];
  node(op: string, input: readonly string[], attr: Attrs = {}, name = `${op}_${this.nodes.length}`): string {
    this.nodes.push({ name, op, input, attr: { T: FLOAT, ...attr } });
    return name;
  }

  input(name: string, shape: readonly number[], dtype: object = FLOAT): string {
    return this.node('Placeholder', [], { dtype, shape: dims(shape) }, name);
  }

  private constant(shape: readonly number[], values: Float32Array | Int32Array): string {
    const dtype = values instanceof Int32Array ? 'int32' : 'float32';
    const name = this.node('Const', [], { dtype: dtype === 'int32' ? INT : FLOAT, value: { tensor: {} } });
    this.specs.push({ name, shape, dtype });
    this.data.push(new Uint8Array(values.buffer));
    return name;
  }

  /** A weight of Glorot's scale; of values from `low` to `high` where given. */
  weight(shape: readonly number[], low?: number, high?: number): string {
    const size = shape.reduce((a, b) => a * b, 1);
    const bound = Math.sqrt((3 * shape.at(-1)!) / size) || 1;
    const [from, to] = [low ?? -bound, high ?? bound];
    return this.constant(shape, floats([...shape], from, to, this.specs.length).data as Float32Array);
  }

  int(...values: number[]): string {
    return this.constant([values.length], Int32Array.from(values));
  }

  int1(value: number): string {
    return this.constant([], Int32Array.of(value));
  }

  /** A table of integers, such as paddings. */
  table(rows: readonly (readonly number[])[]): string {
    return this.constant([rows.length, rows[0]!.length], Int32Array.from(rows.flat()));
  }

  scalar(value: number): string {
    return this.constant([], Float32Array.of(value));
  }

  private window(strides: number, padding: string): Attrs {
    return {
      strides: ints([1, strides, strides, 1]),
      padding: encoded(padding),
      data_format: encoded('NHWC'),
      dilations: ints([1, 1, 1, 1]),
    };
  }

  /** A convolution with bias and activation in one node, as the converter fuses them. */
  conv(x: string, kernel: readonly number[], strides = 1, activation = 'Relu6', padding = 'SAME'): string {
    return this.node('_FusedConv2D', [x, this.weight(kernel), this.weight([kernel[3]!])], {
      ...this.window(strides, padding),
      ...fused(activation),
    });
  }

  depthwise(x: string, size: number, channels: number, strides = 1, activation = 'Relu6'): string {
    const inputs = [x, this.weight([size, size, channels, 1], -0.4, 0.4), this.weight([channels])];
    return this.node('FusedDepthwiseConv2dNative', inputs, {
      ...this.window(strides, 'SAME'),
      ...fused(activation),
    });
  }

  /** Parts that are not fused: a convolution, normalization by stored moments, and an activation. */
  separateConv(x: string, kernel: readonly number[], strides: number): string {
    const depth = kernel[3]!;
    const made = this.node('Conv2D', [x, this.weight(kernel)], this.window(strides, 'SAME'));
    const normalized = this.node(
      'FusedBatchNormV3',
      [
        made,
        this.weight([depth], 0.5, 1.5),
        this.weight([depth]),
        this.weight([depth]),
        this.weight([depth], 0.5, 2),
      ],
      { epsilon: { f: 0.001 }, data_format: encoded('NHWC'), is_training: { b: false }, U: FLOAT },
    );
    return this.node('Relu6', [normalized]);
  }

  maxPool(x: string): string {
    const window = { ksize: ints([1, 2, 2, 1]), strides: ints([1, 2, 2, 1]) };
    return this.node('MaxPool', [x], { ...window, padding: encoded('SAME'), data_format: encoded('NHWC') });
  }

  dense(x: string, from: number, to: number, activation = ''): string {
    return this.node('_FusedMatMul', [x, this.weight([from, to]), this.weight([to])], {
      transpose_a: { b: false },
      transpose_b: { b: false },
      ...fused(activation),
    });
  }

  mean(x: string, axes: readonly number[], keepDims = false): string {
    return this.node('Mean', [x, this.int(...axes)], { keep_dims: { b: keepDims }, Tidx: INT });
  }

  reshape(x: string, shape: string): string {
    return this.node('Reshape', [x, shape], { Tshape: INT });
  }

  /** The size of axis `axis` of `x`, computed in the graph. */
  size(x: string, axis: number): string {
    const shape = this.node('Shape', [x], { out_type: INT });
    return this.node('StridedSlice', [shape, this.int(axis), this.int(axis + 1), this.int(1)], {
      Index: INT,
      begin_mask: { i: '0' },
      end_mask: { i: '0' },
      ellipsis_mask: { i: '0' },
      new_axis_mask: { i: '0' },
      shrink_axis_mask: { i: '1' },
    });
  }

  pack(...values: readonly string[]): string {
    return this.node('Pack', values, { N: { i: String(values.length) }, axis: { i: '0' } });
  }

  transpose(x: string, ...order: readonly number[]): string {
    return this.node('Transpose', [x, this.int(...order)], { Tperm: INT });
  }

  product(a: string, b: string, transposeB = false): string {
    return this.node('BatchMatMulV2', [a, b], { adj_x: { b: false }, adj_y: { b: transposeB } });
  }

  /** What tf.io.fromMemory takes. */
  artifacts(): object {
    return {
      format: 'graph-model',
      modelTopology: { node: this.nodes, versions: { producer: 1395, minConsumer: 12 }, library: {} },
      weightSpecs: this.specs,
      weightData: Uint8Array.from(Buffer.concat(this.data)).buffer,
    };
  }
}
