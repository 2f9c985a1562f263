/** @file Attention rewritten to read keys and values where memory holds them: heads that queries share, codes with scales. */
import { type Graph, ints, type Node, newValue, producers, rewrite, type Value } from '../../program/ir.js';
import { inferOutputs } from '../../rules/index.js';

/** Adds a node with one output. */
type Make = (op: string, inputs: readonly Value[], attrs: Node['attrs']) => Value;

/** Keys or values [B, S, N, H]; with scales [B, S, N, 1] in codes. */
interface Held {
  readonly x: Value;
  readonly scales?: Value;
}

class Reader {
  constructor(
    private readonly made: ReadonlyMap<Value, Node>,
    private readonly make: Make,
  ) {}

  /** The heads that are repeated for consecutive ones of queries, or the value itself. */
  unrepeated(value: Value): Value {
    const node = this.made.get(value);
    if (node?.op === 'Tile') {
      const [x] = node.inputs as [Value];
      const [, , , last] = ints(node.attrs.reps);
      const isOne = x.shape.length === 4 && x.shape[2] === 1 && last === 1;
      return isOne && x.shape[0] === value.shape[0] && x.shape[1] === value.shape[1] ? x : value;
    }
    const tile = node?.op === 'Reshape' ? this.made.get(node.inputs[0]!) : undefined;
    if (tile?.op !== 'Tile') return value;
    const [x] = tile.inputs as [Value];
    const [rows, , between, last] = ints(tile.attrs.reps);
    const [batch, keys, , depth] = value.shape as [number, number, number, number];
    const [positions, heads, one, own] = x.shape;
    const isHeads = x.shape.length === 4 && one === 1 && positions === batch * keys && own === depth;
    const isBetween = rows === 1 && ints(tile.attrs.reps)[1] === 1 && between! > 1 && last === 1;
    return isHeads && isBetween ? this.#reshaped(x, [batch, keys, heads!, depth]) : value;
  }

  /** A value as codes and their scales, where it is a product of both. */
  coded(value: Value): Held {
    const node = this.made.get(value);
    switch (node?.op) {
      case 'Multiply':
        return this.#product(node.inputs) ?? { x: value };
      case 'Reshape':
        return this.#view(node, value, (x, isScales) =>
          this.#reshaped(x, isScales ? [...value.shape.slice(0, -1), 1] : value.shape),
        );
      case 'Transpose':
        return this.#view(node, value, (x) => this.make('Transpose', [x], node.attrs));
      default:
        return { x: value };
    }
  }

  /** A view that leaves the last axis as it is. */
  #view({ op, inputs, attrs }: Node, value: Value, of: (x: Value, isScales: boolean) => Value): Held {
    const [from] = inputs as [Value];
    const isWhole =
      from.shape.at(-1) === value.shape.at(-1) &&
      (op !== 'Transpose' || ints(attrs.perm).at(-1) === from.shape.length - 1);
    const { x, scales } = isWhole ? this.coded(from) : { x: from };
    return scales === undefined ? { x: value } : { x: of(x, false), scales: of(scales, true) };
  }

  #product(inputs: readonly Value[]): Held | undefined {
    for (const [codes, scales] of [inputs, inputs.toReversed()] as [Value, Value][]) {
      const cast = this.made.get(codes);
      const isCast = cast?.op === 'Cast' && cast.inputs[0]!.dtype === 'int32';
      const { length } = codes.shape;
      const isByRow =
        length === scales.shape.length &&
        scales.shape.every((dim, axis) => dim === (axis === length - 1 ? 1 : codes.shape[axis]));
      if (isCast && isByRow) return { x: cast.inputs[0]!, scales };
    }
    return undefined;
  }

  /** A reshaped value; the one behind another reshape where that has the shape. */
  #reshaped(x: Value, shape: readonly number[]): Value {
    const node = this.made.get(x);
    const from = node?.op === 'Reshape' ? node.inputs[0]! : x;
    return from.shape.join() === shape.join() ? from : this.make('Reshape', [from], { shape: [...shape] });
  }
}

/** Rewrites the attentions whose weights nothing reads, in this graph but not in the bodies of its loops. */
export function readHeldKeys(graph: Graph): Graph {
  const isOfSums = ({ op, outputs }: Node): boolean => op === 'Attention' && outputs[1]!.shape.length === 3;
  if (!graph.nodes.some(isOfSums)) return graph;
  const made = producers(graph);
  return rewrite(graph, (node, push) => {
    const read = isOfSums(node) ? heldAttention(node, made) : undefined;
    for (const each of read ?? [node]) push(each);
    return node.outputs;
  });
}

/** The nodes of an attention that reads held keys; undefined where it does so already. */
function heldAttention(node: Node, made: ReadonlyMap<Value, Node>): readonly Node[] | undefined {
  const nodes: Node[] = [];
  const reader = new Reader(made, (op, inputs, attrs) => {
    const output = newValue(inferOutputs(op, inputs, attrs)[0]!);
    nodes.push({ op, inputs, outputs: [output], attrs, scope: node.scope });
    return output;
  });
  const [q, k, v, ...rest] = node.inputs as [Value, Value, Value, ...Value[]];
  const single = [k, v].map((value) => reader.unrepeated(value)) as [Value, Value];
  const areShared =
    single.every((value, i) => value !== [k, v][i]) && single[0].shape[2] === single[1].shape[2];
  const heads = areShared ? single : [k, v];
  const [keys, values] = heads.map((value) => reader.coded(value)) as [Held, Held];
  const isCoded = keys.scales !== undefined && values.scales !== undefined;
  if (!areShared && !isCoded) return undefined;
  const inputs = isCoded
    ? [q, keys.x, values.x, ...rest, keys.scales, values.scales]
    : [q, ...heads, ...rest];
  return [
    ...nodes,
    { ...node, op: 'HeldAttention', inputs, attrs: { ...node.attrs, ...(isCoded && { coded: true }) } },
  ];
}
