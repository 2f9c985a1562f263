/** @file NameRules: the tensors of published weights that a model's variables start from, as data. */

/**
 * A pattern of a variable's path; the tensor's name, with `{}` for the pattern's next group; and where the axes differ, their
 * order in einops' notation: `o i -> i o`.
 */
export type NameRule = readonly [variable: string, tensor: string, axes?: string | undefined];

/** Names of one family of published models. Of the rules that match a variable, the first whose tensor is there counts. */
export interface NameRules {
  readonly rules: readonly NameRule[];
  /**
   * Patterns of variables whose slices along the first axis are tensors of their own: rules know slice 3 of `PATH` as `PATH/3`.
   */
  readonly sliced?: readonly string[];
  /** What some writers put before every name. */
  readonly prefixes: readonly string[];
  /** Patterns of tensors that the network does without: masks and tables that it computes, heads for training alone. */
  readonly buffers: readonly string[];
  /** Those patterns of `buffers` that are of heads of multi-token prediction, which imports leave out. */
  readonly predictionHeads?: readonly string[];
  /**
   * Patterns of tensors that models may do without, and that exports have as they came, for readers who expect them: of heads, and
   * of tables that the network computes.
   */
  readonly kept?: readonly string[];
  /** Tensors that some writers store beside the one that they are tied to, by its name. */
  readonly copies: Readonly<Record<string, string>>;
}

/** The rules of a linear layer `[in, out]`, stored as PyTorch's `[out, in]`, and of its bias. */
export const linearRules = (variable: string, tensor: string): NameRule[] => [
  [`${variable}/linear/w`, `${tensor}.weight`, 'o i -> i o'],
  [`${variable}/bias/b`, `${tensor}.bias`],
];

/** The rules of a norm. */
export const normRules = (variable: string, tensor: string): NameRule[] => [
  [`${variable}/scale`, `${tensor}.weight`],
  [`${variable}/bias`, `${tensor}.bias`],
];

/**
 * The rules of an attention's projections, stored as PyTorch's linear layers, and of their biases.
 *
 * @param tensorOf the names of the first three, without `.weight`. @param output that of the last
 */
export const attentionRules = (
  variable: string,
  tensorOf: (part: 'query' | 'key' | 'value') => string,
  output: string,
): NameRule[] => [
  ...(['query', 'key', 'value'] as const).flatMap((part): NameRule[] => [
    [`${variable}/${part}/w`, `${tensorOf(part)}.weight`, '(n h) d -> d n h'],
    [`${variable}/${part}/b`, `${tensorOf(part)}.bias`, '(n h) -> n h'],
  ]),
  [`${variable}/post/w`, `${output}.weight`, 'd (n h) -> d n h'],
  [`${variable}/post/b`, `${output}.bias`],
];

/** The rules of an attention whose tensors are q_proj, k_proj, v_proj and `output`, in a module. */
export const projectionRules = (variable: string, module: string, output: string): NameRule[] =>
  attentionRules(variable, (part) => `${module}.${part[0]}_proj`, `${module}.${output}`);

/** The pattern of a layer's path; its group is the layer's number. */
export const LAYER = '.*/x_layers_(\\d+)';

/** The rules of the norms of queries and keys, in Llama's way of naming. */
export const headNormRules: readonly NameRule[] = ['query', 'key'].map((part): NameRule => {
  const norm = `layer_norm_${part[0]}`;
  return [`${LAYER}/self_attention/${norm}/scale`, `layers.{}.self_attn.${part[0]}_norm.weight`];
});

/** The variables of experts, which published weights have apart. */
export const SLICED_EXPERTS: readonly string[] = [`${LAYER}/ff_layer/(wi_0|wi_gate_0|wo_0)`];

/**
 * The rules of a layer of experts.
 *
 * @param tensor the name before that of the router and of the experts.
 * @param names of an expert's matrices: of the gate, of the layer that it multiplies, and of the output.
 */
export function expertRules(tensor: string, [gate, up, down]: readonly [string, string, string]): NameRule[] {
  const ofExpert = (variable: string, matrix: string): NameRule => [
    `${LAYER}/ff_layer/${variable}/(\\d+)`,
    `${tensor}.experts.{}.${matrix}.weight`,
    'o i -> i o',
  ];
  return [
    [`${LAYER}/ff_layer/gate`, `${tensor}.gate.weight`, 'e d -> d e'],
    ofExpert('wi_gate_0', gate),
    ofExpert('wi_0', up),
    ofExpert('wo_0', down),
  ];
}
