/**
 * @file Architectures of GGUF: the family of published models that each one is, the keys of its settings and the names of its
 * tensors (https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/constants.py).
 */
import type { GgufEntry } from '../../../checkpoints/index.js';
import { type NameRules, nameRulesOf, type PublishedFamilyName } from '../../../models/index.js';

/** A field of config.json, and the key that holds it behind `ARCHITECTURE.`. */
type GgufField = readonly [field: string, key: string, kind: GgufEntry[1]];

/** An architecture. */
export interface GgufArchitecture {
  /** Its name in files. */
  readonly architecture: string;
  readonly family: PublishedFamilyName;
  /** The class of transformers that config.json names. */
  readonly className: string;
  readonly fields: readonly GgufField[];
  /** The family's base of the wavelengths of rotations; undefined where it has none. */
  readonly defaultTheta: number | undefined;
  /** Fields of config.json that the presence of a tensor tells. */
  readonly flags: Readonly<Record<string, string>>;
  readonly names: NameRules;
}

/** Fields of families that go back to Llama. */
const llamaFields: readonly GgufField[] = [
  ['hidden_size', 'embedding_length', 'u32'],
  ['num_hidden_layers', 'block_count', 'u32'],
  ['intermediate_size', 'feed_forward_length', 'u32'],
  ['num_attention_heads', 'attention.head_count', 'u32'],
  ['num_key_value_heads', 'attention.head_count_kv', 'u32'],
  ['head_dim', 'attention.key_length', 'u32'],
  ['max_position_embeddings', 'context_length', 'u32'],
  ['rms_norm_eps', 'attention.layer_norm_rms_epsilon', 'f32'],
];

/** Modules of Llama's layers by their names in files of Hugging Face; `{}` is the layer. */
const llamaModules: Readonly<Record<string, string>> = {
  embed_tokens: 'token_embd',
  lm_head: 'output',
  norm: 'output_norm',
  'layers.{}.input_layernorm': 'blk.{}.attn_norm',
  'layers.{}.self_attn.q_proj': 'blk.{}.attn_q',
  'layers.{}.self_attn.k_proj': 'blk.{}.attn_k',
  'layers.{}.self_attn.v_proj': 'blk.{}.attn_v',
  'layers.{}.self_attn.o_proj': 'blk.{}.attn_output',
  'layers.{}.self_attn.q_norm': 'blk.{}.attn_q_norm',
  'layers.{}.self_attn.k_norm': 'blk.{}.attn_k_norm',
  'layers.{}.post_attention_layernorm': 'blk.{}.ffn_norm',
  'layers.{}.mlp.gate_proj': 'blk.{}.ffn_gate',
  'layers.{}.mlp.up_proj': 'blk.{}.ffn_up',
  'layers.{}.mlp.down_proj': 'blk.{}.ffn_down',
};

const gpt2Modules: Readonly<Record<string, string>> = {
  wte: 'token_embd',
  wpe: 'position_embd',
  lm_head: 'output',
  ln_f: 'output_norm',
  'h.{}.ln_1': 'blk.{}.attn_norm',
  'h.{}.attn.c_attn': 'blk.{}.attn_qkv',
  'h.{}.attn.c_proj': 'blk.{}.attn_output',
  'h.{}.ln_2': 'blk.{}.ffn_norm',
  'h.{}.mlp.c_fc': 'blk.{}.ffn_up',
  'h.{}.mlp.c_proj': 'blk.{}.ffn_down',
};

/** A family's rules with the names of GGUF. @param axesOf the order of a tensor's axes there, by that of Hugging Face's */
function renamed(
  { rules, sliced = [] }: NameRules,
  modules: Readonly<Record<string, string>>,
  axesOf: (tensor: string, axes: string | undefined) => string | undefined = (_, axes) => axes,
): NameRules {
  return {
    rules: rules.flatMap(([variable, tensor, axes]) => {
      const [, module, part] = /^(.*)\.(weight|bias)$/.exec(tensor)!;
      const name = modules[module!];
      return name === undefined ? [] : [[variable, `${name}.${part}`, axesOf(`${name}.${part}`, axes)]];
    }),
    ...(sliced.length > 0 && { sliced }),
    prefixes: [],
    buffers: ['rope_freqs\\.weight'],
    copies: {},
  };
}

/** Llama's queries and keys are stored with the two halves of a head's depth interleaved, as its rotations pair them here. */
const interleaved = (tensor: string, axes: string | undefined): string | undefined =>
  /attn_[qk]\./.test(tensor) ? axes?.replace('(n h)', '(n h 2)').replace(/(?<=-> .*n) h$/, ' (2 h)') : axes;

/** Linear layers of GPT-2 are stored as PyTorch's, outputs first. */
const outputsFirst = (tensor: string, axes: string | undefined): string | undefined => {
  if (!/^blk\.\{\}\.(attn|ffn)_(qkv|output|up|down)\.weight$/.test(tensor)) return axes;
  const [stored, variable] = (axes ?? 'i o -> i o').split(' -> ') as [string, string];
  const [, first, second] = /^(\(.*\)|\w+) (\(.*\)|\w+)$/.exec(stored)!;
  return `${second} ${first} -> ${variable}`;
};

const llamaNames = renamed(nameRulesOf('llama'), llamaModules, interleaved);

/** A family that goes back to Llama. */
const likeLlama = (
  architecture: string,
  className: string,
  flags: GgufArchitecture['flags'] = {},
): GgufArchitecture => ({
  ...{ architecture, className, family: architecture as PublishedFamilyName, defaultTheta: 10_000 },
  fields: llamaFields,
  flags,
  names: renamed(nameRulesOf(architecture as PublishedFamilyName), llamaModules),
});

/** All experts of a layer are one tensor. */
const mixtralNames: NameRules = {
  ...llamaNames,
  rules: [
    ...llamaNames.rules,
    ['.*/x_layers_(\\d+)/ff_layer/gate', 'blk.{}.ffn_gate_inp.weight', 'e d -> d e'],
    ['.*/x_layers_(\\d+)/ff_layer/wi_gate_0', 'blk.{}.ffn_gate_exps.weight', 'e o i -> e i o'],
    ['.*/x_layers_(\\d+)/ff_layer/wi_0', 'blk.{}.ffn_up_exps.weight', 'e o i -> e i o'],
    ['.*/x_layers_(\\d+)/ff_layer/wo_0', 'blk.{}.ffn_down_exps.weight', 'e o i -> e i o'],
  ],
};

const attentionBias = { attention_bias: 'blk.0.attn_q.bias' };

/** The architectures that are read and written. Mixtral is Llama with experts there. */
export const ggufArchitectures: readonly GgufArchitecture[] = [
  {
    ...likeLlama('llama', 'LlamaForCausalLM', { ...attentionBias, mlp_bias: 'blk.0.ffn_gate.bias' }),
    names: llamaNames,
  },
  {
    ...likeLlama('llama', 'MixtralForCausalLM'),
    ...{ family: 'mixtral', defaultTheta: 1e6 },
    fields: [
      ...llamaFields,
      ['num_local_experts', 'expert_count', 'u32'],
      ['num_experts_per_tok', 'expert_used_count', 'u32'],
    ],
    names: mixtralNames,
  },
  likeLlama('qwen2', 'Qwen2ForCausalLM'),
  likeLlama('qwen3', 'Qwen3ForCausalLM', attentionBias),
  {
    ...{
      architecture: 'gpt2',
      family: 'gpt2',
      className: 'GPT2LMHeadModel',
      defaultTheta: undefined,
      flags: {},
    },
    fields: [
      ['n_embd', 'embedding_length', 'u32'],
      ['n_layer', 'block_count', 'u32'],
      ['n_inner', 'feed_forward_length', 'u32'],
      ['n_head', 'attention.head_count', 'u32'],
      ['n_positions', 'context_length', 'u32'],
      ['layer_norm_epsilon', 'attention.layer_norm_epsilon', 'f32'],
    ],
    names: renamed(nameRulesOf('gpt2'), gpt2Modules, outputsFirst),
  },
];
