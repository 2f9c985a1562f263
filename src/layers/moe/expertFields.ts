/** @file Fields of experts. */
import { z } from 'zod';

/** Fields that a stack hands on. */
export const moeFields = {
  gatingFunc: z
    .enum(['top2', 'topk', 'dense_top2', 'expert_choice', 'expert_choice_v2'])
    .default('top2')
    .describe(
      'Who chooses: tokens their two best experts, or numExpertsPerToken; the same two without capacity and loss; experts ' +
        'their best tokens, S / E · capacity factor of each group, or as many as the capacity of top2.',
    ),
  numGroups: z.int().positive().default(1).describe('Groups of tokens, each with a capacity of its own.'),
  minGroupSize: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Least tokens of a group: there are fewer groups where they would have less.'),
};

/** Fields of TransformerFeedForwardMoe besides those of its base. */
export const expertFields = {
  hasBias: z.boolean().default(false).describe('Whether the layers of shared experts have biases.'),
  hasExpertBias: z.boolean().default(false).describe('Whether the layers of experts have biases (gpt-oss).'),
  hasRouterBias: z.boolean().default(false).describe('Whether router logits have a trained bias (gpt-oss).'),
  ...moeFields,
  numExperts: z.int().positive().describe('Number of experts.'),
  numExpertsPerToken: z.int().positive().default(2).describe("Experts of each token, for 'topk'."),
  numExpertGroups: z
    .int()
    .positive()
    .default(1)
    .describe(
      "Groups of neighbouring experts, for 'topk': a token takes from its best numExpertGroupsPerToken alone (DeepSeek-V3).",
    ),
  numExpertGroupsPerToken: z.int().positive().default(1).describe('Groups that a token takes experts of.'),
  unadjustedExpertCapacityFactor: z
    .number()
    .nonnegative()
    .default(2)
    .describe(
      'f: an expert takes at most f S / E of the S tokens of a group, rounded up to a multiple of 4; 0: no limit.',
    ),
  expertCapacityDim: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Least capacity of an expert in a group; with a factor of 0, the capacity.'),
  secondExpertPolicy: z
    .enum(['all', 'sampling', 'random'])
    .default('all')
    .describe(
      "The second expert of 'top2' in training: the next best one; one drawn by its probability; the next best one, left out by chance.",
    ),
  secondExpertThreshold: z
    .number()
    .nonnegative()
    .default(0)
    .describe("t: 'random' keeps a second expert with probability gate / t."),
  moeLoadBalanceLossWeight: z
    .number()
    .nonnegative()
    .default(1)
    .describe('Weight of the load-balancing loss; 0: none.'),
  routerZLossWeight: z
    .number()
    .nonnegative()
    .default(0)
    .describe('Weight of the loss mean(logsumexp(router logits)²) (ST-MoE, Zoph et al., 2022); 0: none.'),
  gatingLogitCap: z
    .number()
    .nonnegative()
    .default(0)
    .describe('c > 0: router logits become c tanh(logits / c).'),
  moeGatingEmbeddingLevel: z
    .enum(['token', 'sentence'])
    .default('token')
    .describe('Whether a token is routed by itself, or by the mean of its row (Kudugunta et al., 2021).'),
  routerScores: z
    .enum(['softmax', 'sigmoid'])
    .default('softmax')
    .describe('Scores of the experts: softmax over them, or a sigmoid of each.'),
  countDeadNeurons: z
    .boolean()
    .default(false)
    .describe(
      'Whether a summary counts the hidden units, of all experts, that are dead for every token of a batch: inputs of the ' +
        'activation below 0, of GELU below -3. It reads all hidden units once more.',
    ),
  biasUpdateRate: z
    .number()
    .nonnegative()
    .default(0)
    .describe(
      'u > 0: a bias on the scores, by which experts are chosen and not weighed, moves by u each step towards an even load ' +
        '(Wang et al., 2024). 0: no bias.',
    ),
  routedScalingFactor: z.number().positive().default(1).describe('Factor on the sum over chosen experts.'),
  numSharedExperts: z
    .int()
    .nonnegative()
    .default(0)
    .describe(
      'Experts that all tokens take: one layer of fflayerTpl, so many times as wide (DeepSeekMoE, 2024).',
    ),
  useSharedExpertGate: z
    .boolean()
    .default(false)
    .describe("Multiply their sum by the sigmoid of a number that is made of the token (Qwen's experts)."),
  shuffleTokens: z
    .boolean()
    .default(false)
    .describe('Whether training draws the order in which tokens take places, and their groups.'),
  internalGshardVarianceScalingFanInInit: z
    .boolean()
    .default(true)
    .describe('Whether weights begin uniform within sqrt(3 / fan-in); else as paramsInit says.'),
};
