/** @file fpropDtype through whole models: which products and which of their gradients multiply in bfloat16. */
import { describe, expect, test } from 'vitest';
import {
  compile,
  type Engine,
  type HostTensor,
  type Tensor,
  tf,
  valueAndGrad,
} from '../../src/compiler/index.js';
import { optimize } from '../../src/compiler/passes/index.js';
import type { Graph } from '../../src/compiler/program/ir.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { build, type Config } from '../../src/hparams/index.js';
import { type BaseLayer, listVariables, runInContext } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { engines } from '../compiler/engines.js';
import { numbers } from './helpers.js';

type Precision = 'float32' | 'bfloat16' | null;

function model(change: (config: Config<LanguageModel>) => void = () => {}): LanguageModel {
  const sizes = { vocabSize: 11, modelDims: 8, numLayers: 2, numHeads: 2, maxSeqLength: 6 };
  const config = LanguageModel.config({ lmTpl: gpt2Lm(sizes) });
  change(config);
  return build(config);
}

const inPrecision = (fpropDtype: Precision) => model((config) => void (config.fpropDtype = fpropDtype));

type Theta = Record<string, Tensor>;
interface Step {
  readonly theta: Theta;
  readonly ids: Tensor;
}

/** Logits and loss of a model, and gradients of the loss. */
const step =
  (layer: LanguageModel) =>
  ({ theta, ids }: Step) =>
    valueAndGrad((params: Theta) => {
      const weights = tf.ones(ids.shape);
      const labels = tf.reverse(ids, 1);
      const run = () => layer.computePredictions({ ids, labels, weights, paddings: tf.zeros(ids.shape) });
      const { logits, totalLoss } = runInContext({ theta: params }, run);
      return { value: totalLoss, aux: { logits: logits! } };
    }, theta);

function inputsOf(layer: BaseLayer) {
  const theta = Object.fromEntries(
    listVariables(layer).map(({ path, shape }, i): [string, HostTensor] => {
      const size = shape.reduce((a, b) => a * b, 1);
      return [
        path,
        { shape, dtype: 'float32', data: numbers(size, i + 3).map((x) => x * 0.5) as Float32Array },
      ];
    }),
  );
  const ids: HostTensor = {
    shape: [2, 6],
    dtype: 'int32',
    data: Int32Array.from({ length: 12 }, (_, i) => (i * 7) % 11),
  };
  return { theta, ids };
}

const graphOf = (layer: LanguageModel): Graph =>
  optimize(traceProgram(step(layer) as any, inputsOf(layer) as any).graph);

/** The layers whose products, forward or backward, are of this precision. */
function multiplying({ nodes }: Graph, precision: 'float32' | 'bfloat16'): string[] {
  const products = nodes.filter(({ op }) => /MatMul|Attention/.test(op));
  const scopes = products.filter(({ attrs }) => (attrs.precision ?? 'float32') === precision);
  return [...new Set(scopes.map(({ scope }) => scope))].sort();
}

/** A graph without the identities of its values. */
function plain({ inputs, outputs, nodes }: Graph): unknown {
  const places = new Map<unknown, string>(inputs.map((value, i) => [value, `input ${i}`]));
  nodes.forEach((node, n) => {
    node.outputs.forEach((value, i) => void places.set(value, `${n}.${i}`));
  });
  const place = (value: { data?: unknown }) => places.get(value) ?? value.data;
  return {
    nodes: nodes.map(({ op, attrs, scope, inputs }) => ({ op, attrs, scope, inputs: inputs.map(place) })),
    outputs: outputs.map(place),
  };
}

describe('the graph of a training step', () => {
  test('has all products in bfloat16 where the model says so, those of gradients too', () => {
    const graph = graphOf(inPrecision('bfloat16'));
    expect(multiplying(graph, 'float32')).toEqual([]);
    expect(multiplying(graph, 'bfloat16').length).toBeGreaterThan(5);
    const others = graph.nodes.filter(({ op }) => !/MatMul|Attention/.test(op));
    expect(others.filter(({ attrs }) => 'precision' in attrs)).toEqual([]);
  });

  test('is the same in float32 as without a word, and differs by the attribute alone in bfloat16', () => {
    const none = plain(graphOf(inPrecision(null)));
    expect(plain(graphOf(inPrecision('float32')))).toEqual(none);
    expect(JSON.stringify(none)).not.toContain('precision');
    const bfloat16 = JSON.stringify(plain(graphOf(inPrecision('bfloat16'))));
    expect(bfloat16.replaceAll(',"precision":"bfloat16"', '')).toEqual(JSON.stringify(none));
  });

  test('a layer inside another has its own', () => {
    const mixed = model((config) => {
      config.fpropDtype = 'bfloat16';
      config.lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.fpropDtype = 'float32';
      config.lmTpl.softmaxTpl.fpropDtype = 'float32';
    });
    const graph = graphOf(mixed);
    const [float32, bfloat16] = [multiplying(graph, 'float32'), multiplying(graph, 'bfloat16')];
    expect(float32.filter((scope) => !/self_attention|softmax|^$/.test(scope))).toEqual([]);
    expect(float32.some((scope) => scope.includes('self_attention'))).toBe(true);
    expect(bfloat16.filter((scope) => !/ff_layer|^$/.test(scope))).toEqual([]);
    expect(bfloat16.some((scope) => scope.includes('ff_layer'))).toBe(true);
    const products = graph.nodes.filter(({ op }) => op === 'BatchMatMul');
    const counts = [true, false].map(
      (rounds) => products.filter(({ attrs }) => 'precision' in attrs === rounds).length,
    );
    // Feed-forward has two products a block and each has two gradients; the rest is the attention's and the softmax's.
    expect(counts[0]).toBe(2 * 2 * 3);
    expect(counts[1]).toBeGreaterThan(10);
  });
});

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('agrees with the oracle to a step of bfloat16, and is near float32', async () => {
    const run = async (precision: Precision, engine: Engine) => {
      const layer = inPrecision(precision);
      const executable = await compile(step(layer) as any, inputsOf(layer) as any, { engine, numThreads: 1 });
      const result: any = await executable.run(inputsOf(layer) as any);
      await executable.dispose();
      return { logits: result.aux.logits as HostTensor, grads: result.grads as Record<string, HostTensor> };
    };
    const [compiled, eager, float32] = [
      await run('bfloat16', engine),
      await run('bfloat16', 'eager'),
      await run(null, engine),
    ];
    /** Of all gradients together, relative to the second's length. */
    const distance = (a: Record<string, HostTensor>, b: Record<string, HostTensor>): number => {
      let [difference, size] = [0, 0];
      for (const [path, { data }] of Object.entries(b)) {
        data.forEach((x, i) => {
          difference += (a[path]!.data[i]! - x) ** 2;
          size += x ** 2;
        });
      }
      return Math.sqrt(difference / size);
    };
    // An operand whose last bit differs may be rounded to a neighbour, and all behind it differs by that. Attention in
    // machine code sums weights before it divides them by their sum: they are rounded as other numbers.
    const near = engine === 'onnx' ? 1e-3 : 5e-3;
    expect(distance({ logits: compiled.logits }, { logits: eager.logits })).toBeLessThan(near);
    expect(distance(compiled.grads, eager.grads)).toBeLessThan(near);
    const rounding = distance(compiled.grads, float32.grads);
    expect(rounding).toBeGreaterThan(1e-3);
    expect(rounding).toBeLessThan(1e-2);
  });
});
