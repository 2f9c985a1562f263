/** @file Experts: each kind of gating against plain loops, and the contract of layers. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type AuxLoss,
  type BaseActivation,
  ClampedLinear,
  ClampedSwish,
  GELU,
  listVariables,
  ReLU,
  TransformerFeedForwardMoe,
} from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats } from '../engineComparison.js';
import { expectClose, ints, randomTheta, run, tensor } from '../helpers.js';
import { type Matrix, matrix, multiply, softmax } from '../plain.js';
import { sums } from '../sineFill.js';

const [B, T, D, F, E] = [2, 6, 4, 5, 4];
type Values = Parameters<typeof TransformerFeedForwardMoe.config>[0];

const moe = (values: Values = {}): Config<TransformerFeedForwardMoe> =>
  TransformerFeedForwardMoe.config({
    ...{ inputDims: D, hiddenDims: F, numExperts: E, activationTpl: GELU.config() },
    ...{ unadjustedExpertCapacityFactor: 0, ...values },
  });

const gated = { useGatedActivation: true, numSharedExperts: 1, useSharedExpertGate: true };
const clamped = {
  ...{ useGatedActivation: true, hasExpertBias: true, hasRouterBias: true },
  activationTpl: ClampedSwish.config(),
  linearPathActivationTpl: ClampedLinear.config(),
};
const biased = {
  gatingFunc: 'topk',
  numExpertsPerToken: 3,
  routerScores: 'sigmoid',
  biasUpdateRate: 0.1,
} as const;

checkLayers('experts', [
  ...(
    [
      ['the two best, and a shared one', gated, true],
      [
        'three by sigmoids and a bias, of one group of two',
        { ...biased, routedScalingFactor: 2, numExperts: 8, numExpertGroups: 2, numExpertGroupsPerToken: 1 },
        true,
      ],
      ['two with biases and clamped gates', clamped, true],
      ['two with places for few tokens', { expertCapacityDim: 2, numGroups: 2 }, false],
      ['experts that choose', { gatingFunc: 'expert_choice', unadjustedExpertCapacityFactor: 2 }, false],
      ['by the mean of the row', { moeGatingEmbeddingLevel: 'sentence', numExperts: 3 }, true],
    ] as const
  ).map(([title, values, rowsApart]) =>
    layerCase({
      title,
      config: moe(values),
      inputs: { x: floats([B, T, D], 5) },
      // Far apart, so that finite differences change no choice.
      theta: (layer) => {
        const theta = randomTheta(layer);
        return { ...theta, gate: tf.mul(theta.gate!, 4) as Tensor };
      },
      call: (layer, { x }) => layer.fprop(x!),
      rowsApart,
      probes: 2,
      doEval: true,
    }),
  ),
]);

/** Σ gate · gelu(x wi_0[e]) wo_0[e] over the (token, expert, gate) given, without norm and residual connection. */
function combined(
  theta: Record<string, Tensor>,
  x: Matrix,
  taken: readonly [number, number, number][],
): number[] {
  const expert = (name: string, e: number, columns: number): Matrix =>
    matrix([...tf.slice(theta[name]!, [e, 0, 0], [1, -1, -1]).dataSync()], columns);
  const outputs = x.map((row) => row.map(() => 0));
  for (const [token, e, gate] of taken) {
    const hidden = multiply([x[token]!], expert('wi_0', e, F)).map((row) => row.map((v) => Math.max(v, 0)));
    const made = multiply(hidden, expert('wo_0', e, D))[0]!;
    outputs[token] = outputs[token]!.map((sum, i) => sum + gate * made[i]!);
  }
  return outputs.flat();
}

/** A layer that is its branch alone, on x without a norm. */
function bare(values: Values, activationTpl: Config<BaseActivation> = ReLU.config()) {
  const config = moe({ addSkipConnection: false, normPolicy: 'post', ...values });
  config.activationTpl = activationTpl;
  const layer = build(config);
  const theta = randomTheta(layer);
  const branch = (x: Tensor, paddings?: Tensor): Tensor =>
    (layer as unknown as { branch(x: Tensor, paddings?: Tensor): Tensor }).branch(x, paddings);
  const x = tensor([B, T, D], 5);
  const rows = matrix(x.dataSync(), D);
  const probabilities = multiply(rows, matrix(theta.gate!.dataSync(), E)).map(softmax);
  return { layer, theta, branch, x, rows, probabilities };
}

const order = (values: readonly number[]): number[] =>
  values.map((_, i) => i).sort((a, b) => values[b]! - values[a]!);

test('tokens take places in the order of their choices, and those without a place are dropped', () => {
  const { theta, branch, x, rows, probabilities } = bare({ expertCapacityDim: 2, numGroups: 2 });
  const padded = 4;
  const paddings = tf.tensor2d(
    rows.map((_, i) => (i === padded ? 1 : 0)),
    [B, T],
  );
  const places = new Map<string, number>();
  const taken: [number, number, number][] = [];
  let losses = 0;
  for (const group of [0, 1]) {
    const tokens = rows.map((_, i) => i).filter((i) => Math.floor(i / T) === group && i !== padded);
    for (const choice of [0, 1])
      for (const token of tokens) {
        const [first, second] = order(probabilities[token]!) as [number, number];
        const e = choice === 0 ? first : second;
        const place = places.get(`${group} ${e}`) ?? 0;
        places.set(`${group} ${e}`, place + 1);
        const p = probabilities[token]!;
        if (place < 2) taken.push([token, e, p[e]! / (p[first]! + p[second]!)]);
      }
    for (let e = 0; e < E; e++) {
      const density = tokens.filter((token) => order(probabilities[token]!)[0] === e).length / T;
      const proxy = tokens.reduce((sum, token) => sum + probabilities[token]![e]!, 0) / T;
      losses += (density * proxy * E * E) / (2 * E);
    }
  }
  expect(taken.length).toBeLessThan(2 * (B * T - 1));
  const auxLosses: AuxLoss[] = [];
  const summaries: Record<string, Tensor> = {};
  const outputs = run(theta, () => branch(x, paddings), { auxLosses, summaries });
  expectClose(outputs, combined(theta, rows, taken));
  expect(auxLosses.map(({ name }) => name)).toEqual(['aux_moe_load_balance_loss']);
  expectClose(auxLosses[0]!.value, [losses]);
  expect(Object.keys(summaries)).toEqual([
    'over_capacity_1_ratio_scalar',
    'over_capacity_2_ratio_scalar',
    'aux_moe_load_balance_loss_scalar',
  ]);
  const dropped = 2 * (B * T - 1) - taken.length;
  const ratios = [1, 2].map((i) => summaries[`over_capacity_${i}_ratio_scalar`]!.dataSync()[0]!);
  expect((ratios[0]! + ratios[1]!) * (B * T - 1)).toBeCloseTo(dropped, 4);
});

test.each(['expert_choice', 'expert_choice_v2'] as const)(
  '%s: experts take their best tokens',
  (gatingFunc) => {
    const { theta, branch, x, rows, probabilities } = bare({
      gatingFunc,
      numGroups: 2,
      unadjustedExpertCapacityFactor: 2,
    });
    // ⌊6 / 4⌋ 2 tokens; ⌊6 · 2 / 4⌋, rounded up to a multiple of 4.
    const count = gatingFunc === 'expert_choice' ? 2 : 4;
    const taken = [0, 1].flatMap((group) =>
      Array.from({ length: E }, (_, e) => {
        const tokens = rows.map((_, i) => i).slice(group * T, (group + 1) * T);
        const best = order(tokens.map((token) => probabilities[token]![e]!)).slice(0, count);
        return best.map((i): [number, number, number] => [tokens[i]!, e, probabilities[tokens[i]!]![e]!]);
      }).flat(),
    );
    const auxLosses: AuxLoss[] = [];
    expectClose(
      run(theta, () => branch(x), { auxLosses }),
      combined(theta, rows, taken),
    );
    expect(auxLosses).toEqual([]);
  },
);

test('the bias goes up for experts with few tokens, chooses, and does not weigh', () => {
  const { theta, branch, x, rows } = bare({ ...biased, moeLoadBalanceLossWeight: 0, routerZLossWeight: 0.5 });
  const logits = multiply(rows, matrix(theta.gate!.dataSync(), E));
  const scores = logits.map((row) => row.map((v) => 1 / (1 + Math.exp(-v))));
  const bias = [...theta.expert_bias!.dataSync()];
  const load = [0, 0, 0, 0];
  const taken = scores.flatMap((row, token) => {
    const best = order(row.map((v, e) => v + bias[e]!)).slice(0, 3);
    const sum = best.reduce((total, e) => total + row[e]!, 0);
    for (const e of best) load[e]!++;
    return best.map((e): [number, number, number] => [token, e, row[e]! / sum]);
  });
  const updatedVars: Record<string, Tensor> = {};
  const auxLosses: AuxLoss[] = [];
  expectClose(
    run(theta, () => branch(x), { updatedVars, auxLosses }),
    combined(theta, rows, taken),
  );
  const mean = (3 * B * T) / E;
  expectClose(
    updatedVars.expert_bias!,
    bias.map((b, e) => b + 0.1 * Math.sign(mean - load[e]!)),
  );
  const logSums = logits.map((row) => Math.log(row.reduce((sum, v) => sum + Math.exp(v), 0)) ** 2);
  expectClose(auxLosses[0]!.value, [(0.5 * logSums.reduce((a, b) => a + b)) / logSums.length]);
  const evaluated: Record<string, Tensor> = {};
  run(theta, () => branch(x), { updatedVars: evaluated, doEval: true });
  expect(evaluated).toEqual({});
});

test('rows of weight 0 count in no statistic', () => {
  const { theta, branch, x: both } = bare({ ...biased });
  const one = tf.slice(both, [0, 0, 0], [1, T, D]);
  const x = tf.concat([one, tf.mul(one, -3)]);
  const statistics = (input: Tensor, rowWeights?: Tensor) => {
    const updatedVars: Record<string, Tensor> = {};
    run(theta, () => branch(input), { updatedVars, rowWeights });
    return updatedVars.expert_bias!.dataSync();
  };
  expect(statistics(x, tf.tensor1d([1, 0]))).toEqual(statistics(one));
  expect(statistics(x)).not.toEqual(statistics(one));
});

test.each([
  ['ReLU', ReLU.config(), 0, {}],
  ['GELU', GELU.config(), -3, { useGatedActivation: true, expertCapacityDim: 1 }],
  ['ReLU', ReLU.config(), 0, { expertCapacityDim: 1 }],
])('units of %s that are dead for all tokens of their expert', (name, activationTpl, threshold, values) => {
  const { theta, branch, x, rows } = bare({ countDeadNeurons: true, ...values }, activationTpl);
  const isGated = 'useGatedActivation' in values;
  const key = isGated ? 'wi_gate_0' : 'wi_0';
  // Wide enough for units below -3.
  const wide = { ...theta, [key]: tf.mul(theta[key]!, 40) as Tensor };
  const inner = matrix(wide[key]!.dataSync(), F);
  const scores = multiply(rows, matrix(theta.gate!.dataSync(), E)).map(softmax);
  const places = 'expertCapacityDim' in values ? 1 : rows.length;
  const chosen = [0, 1].flatMap((i) => scores.map((row, token) => [token, order(row)[i]!] as const));
  let dead = 0;
  for (let e = 0; e < E; e++) {
    const tokens = chosen.filter(([, expert]) => expert === e).slice(0, places);
    const hidden = multiply(
      tokens.map(([token]) => rows[token]!),
      inner.slice(e * D, (e + 1) * D),
    );
    for (let unit = 0; unit < F; unit++) if (hidden.every((row) => row[unit]! < threshold)) dead++;
  }
  const summaries: Record<string, Tensor> = {};
  run(wide, () => branch(x), { summaries });
  expect(dead).toBeGreaterThan(0);
  expect(dead).toBeLessThan(E * F);
  expect(summaries[`dead_${name}_count_scalar`]!.dataSync()[0]).toBe(dead);
});

test('drawn second experts and orders: the mean output, and places for all', () => {
  const prngKey = ints([3, 4], [2]);
  const outputs = (values: Values) => {
    const { theta, branch, x } = bare(values);
    return run(theta, () => branch(x), { prngKey });
  };
  const plain = outputs({});
  // Without a capacity, the order of tokens and their groups has no effect.
  expectClose(outputs({ shuffleTokens: true, numGroups: 3 }), plain.dataSync());
  const differs = (other: Tensor) => sums(tf.sub(other, plain)).q > 1e-3;
  expect(differs(outputs({ shuffleTokens: true, expertCapacityDim: 2 }))).toBe(true);
  expect(differs(outputs({ secondExpertPolicy: 'sampling' }))).toBe(true);
  expect(differs(outputs({ secondExpertPolicy: 'random', secondExpertThreshold: 1 }))).toBe(true);
  // At Pax's threshold, 0, whatever has a weight stays.
  expectClose(outputs({ secondExpertPolicy: 'random' }), plain.dataSync());
});

test('variables and settings that do not fit', () => {
  const shapes = (values: Values) =>
    listVariables(build(moe(values))).map(({ path, shape }) => `${path} [${shape}]`);
  expect(shapes({ useGatedActivation: true, numSharedExperts: 2 })).toEqual([
    'gate [4,4]',
    'wi_gate_0 [4,4,5]',
    'wi_0 [4,4,5]',
    'wo_0 [4,5,4]',
    'layer_norm/scale [4]',
    'layer_norm/bias [4]',
    'ffn_layer1_gate/linear/w [4,10]',
    'ffn_layer1/linear/w [4,10]',
    'ffn_layer2/linear/w [10,4]',
  ]);
  const { activationTpl: _, ...values } = clamped;
  expect(shapes(values).slice(0, 9)).toEqual([
    'gate [4,4]',
    'gate_bias [4]',
    'wi_gate_0 [4,4,5]',
    'wi_gate_0_bias [4,5]',
    'wi_0 [4,4,5]',
    'wi_0_bias [4,5]',
    'wo_0 [4,5,4]',
    'wo_0_bias [4,4]',
    'layer_norm/scale [4]',
  ]);
  expect(() => build(moe({ ...values, useGatedActivation: false }))).toThrow(
    'model (TransformerFeedForwardMoe): linearPathActivationTpl is set, and useGatedActivation is not.',
  );
  const groups = { ...biased, numExperts: 6, numExpertGroups: 3, numExpertGroupsPerToken: 1 };
  expect(() => build(moe(groups))).toThrow(
    'model (TransformerFeedForwardMoe): numExpertGroupsPerToken is 1: expected 2 to 3, as tokens take 3 experts from groups of 2.',
  );
  expect(() => build(moe({ ...groups, numExpertGroups: 4 }))).toThrow(
    'model (TransformerFeedForwardMoe): numExperts is 6: expected 2 or more for each of numExpertGroups 4.',
  );
  expect(() => build(moe({ ...groups, gatingFunc: 'top2' }))).toThrow(
    "model (TransformerFeedForwardMoe): numExpertGroups is 3, and gatingFunc 'top2': expected 'topk'.",
  );
  expect(() => build(moe({ useSharedExpertGate: true }))).toThrow(
    'model (TransformerFeedForwardMoe): useSharedExpertGate is set, and numSharedExperts is 0.',
  );
  expect(() => build(moe({ numExperts: 1 }))).toThrow(
    'model (TransformerFeedForwardMoe): numExperts is 1: expected 2 or more, as tokens take 2.',
  );
  const layer = build(moe({ numGroups: 5 }));
  expect(() => run(randomTheta(layer), () => layer.fprop(tensor([B, T, D])))).toThrow(
    'model (TransformerFeedForwardMoe): the 12 tokens of a batch do not divide into numGroups 5 equal groups.',
  );
});
