/** @file Graphs of collectives for tests, and their runs on ranks that are threads. */

import { type NativeOptions, tryNative } from '../../../../src/compiler/native/compileNatively.js';
import { openThreadRanks } from '../../../../src/compiler/native/threadRanks.js';
import {
  type Attrs,
  type Graph,
  type Node,
  newValue,
  type Value,
} from '../../../../src/compiler/program/ir.js';
import type { RankCalls } from '../../../../src/compiler/program/rankCalls.js';
import {
  type DType,
  type HostArray,
  newHostArray,
  type Shape,
  sizeOf,
} from '../../../../src/compiler/program/tensors.js';
import { inferOutputs } from '../../../../src/compiler/rules/index.js';

/** Makes a graph node by node. */
export class GraphMaker {
  readonly inputs: Value[] = [];
  readonly nodes: Node[] = [];

  input(shape: Shape, dtype: DType = 'float32'): Value {
    const value = newValue({ shape, dtype }, { name: `x${this.inputs.length}` });
    this.inputs.push(value);
    return value;
  }

  add(op: string, inputs: readonly Value[], attrs: Attrs = {}, bodies?: readonly Graph[]): Value[] {
    const outputs = inferOutputs(op, inputs, attrs, bodies).map((spec) => newValue(spec));
    this.nodes.push({ op, inputs, outputs, attrs, scope: 'net', ...(bodies && { bodies }) });
    return outputs;
  }

  graph(...outputs: Value[]): Graph {
    return { inputs: this.inputs, nodes: this.nodes, outputs };
  }
}

/** Runs a graph on every rank; `given` are the inputs of each. @returns the outputs of each. */
export async function runOnThreads(
  graphs: readonly Graph[],
  given: readonly (readonly HostArray[])[],
  options: NativeOptions & { readonly times?: number } = {},
): Promise<HostArray[][]> {
  const { ranks, close } = await openThreadRanks(given.length);
  const all = await Promise.allSettled(ranks.map((each) => openOn(each, graphs, options)));
  const [failed] = all.filter((each) => each.status === 'rejected');
  if (failed) throw failed.reason;
  const backends = all.map((each) => (each as PromiseFulfilledResult<Opened>).value);
  const results = backends.map(({ newOutputs }) => newOutputs());
  const ended = await Promise.allSettled(
    backends.map(({ backend }, rank) =>
      backend.bind({ inputs: given[rank]!, outputs: results[rank]! })(options.times),
    ),
  );
  await Promise.all(backends.map(({ backend }) => backend.dispose()));
  close();
  const errors = ended.flatMap((each) => (each.status === 'rejected' ? [each.reason as Error] : []));
  if (errors.length > 0) throw new AggregateError(errors, errors.map(({ message }) => message).join('\n'));
  return results;
}

type Opened = Awaited<ReturnType<typeof openOn>>;

async function openOn(ranks: RankCalls, [first, then]: readonly Graph[], options: NativeOptions) {
  const attempt = await tryNative(first!, { ...options, ranks, ...(then && { following: () => then }) });
  if ('reason' in attempt) throw new Error(attempt.reason);
  const outputs = [first!, ...(then ? [then] : [])].flatMap((graph) => graph.outputs);
  return {
    backend: attempt.backend,
    newOutputs: () => outputs.map(({ dtype, shape }) => newHostArray(dtype, sizeOf(shape))),
  };
}
